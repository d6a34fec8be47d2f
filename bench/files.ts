/**
 * How files affect the loop that fetches pages: its event-loop lag while the pool downloads files, while the process does so
 * itself, and without any; and how fast the pool is, and how large its processes are before and after.
 *
 *   node bench/files.ts [--files 100] [--mb 5] [--json]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { taskId } from '../src/core/url.ts'
import { type ByteStreamOptions, openByteStream } from '../src/fetch/http/byte-stream.ts'
import { openHttp } from '../src/fetch/http/http.ts'
import type { FileJob, StoredFile } from '../src/files/contract.ts'
import { openFileStore } from '../src/files/open-store.ts'
import { openFilePool } from '../src/files/pool.ts'
import { workOn } from '../src/files/worker.ts'
import { compileCache } from './sluice-run.ts'

type Way = 'no files' | 'in the pool' | 'in the same process'

export interface FilesRow {
  readonly way: Way
  readonly pagesPerSecond: number
  /** Event-loop lag of the process that fetches pages. */
  readonly lagMs: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number }
  readonly megabytesPerSecond?: number
  readonly seconds: number
  readonly rssMb: number
  /** All processes of the pool together: after their first file, and after the last. */
  readonly poolRssMb?: { readonly processes: number; readonly before: number; readonly after: number }
}

interface Measure {
  way: Way
  site: string
  files: number
}

const AT_ONCE = 8
const PAGES_AT_ONCE = 8
const PAGE_DELAY_MS = 10
const BASELINE_MS = 3000
const MEGABYTE = 1_000_000
const SELF = fileURLToPath(import.meta.url)
const never = new AbortController().signal

export async function benchFiles(options: { files: number; megabytes: number }): Promise<FilesRow[]> {
  const server = fork(SELF, ['--serve', String(options.megabytes)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  try {
    const [site] = (await once(server, 'message')) as [string]
    const rows: FilesRow[] = []
    for (const way of ['no files', 'in the pool', 'in the same process'] as const)
      rows.push(await inChild({ way, site, files: options.files }))
    return rows
  } finally {
    server.kill()
  }
}

/** Each variant in a fresh process, with the flags of a crawl. */
async function inChild(measure: Measure): Promise<FilesRow> {
  const flags = ['--max-semi-space-size=4', '--min-semi-space-size=4', '--initial-old-space-size=40']
  const env = { ...process.env, ...compileCache }
  const execArgv = ['--disable-warning=ExperimentalWarning', ...flags]
  const child: ChildProcess = fork(SELF, ['--measure', JSON.stringify(measure)], { execArgv, env })
  const [row] = (await once(child, 'message')) as [FilesRow]
  await once(child, 'exit')
  return row
}

async function serve(megabytes: number): Promise<void> {
  const page = `<html><title>page</title>${'<p>some words of a page</p>'.repeat(200)}`
  const chunk = Buffer.alloc(65_536, 'a file, byte after byte. ')
  const server = createServer((request, response) => {
    if (!request.url!.startsWith('/file')) return void setTimeout(() => response.end(page), PAGE_DELAY_MS)
    let left = megabytes * MEGABYTE
    response.writeHead(200, { 'content-length': left, etag: '"1"' })
    const head = Buffer.from(request.url!.padEnd(100)) // no two files are the same
    response.write(head)
    left -= head.length
    const more = () => {
      while (left > 0) {
        const piece = chunk.subarray(0, Math.min(left, chunk.length))
        left -= piece.length
        if (!response.write(piece)) return void response.once('drain', more)
      }
      response.end()
    }
    more()
  })
  server.listen(0, '127.0.0.1', () => process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  process.on('disconnect', () => process.exit())
}

async function measure({ way, site, files }: Measure): Promise<FilesRow> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-files-'))
  try {
    const stop = new AbortController()
    const pages = fetchPages(site, stop.signal)
    const jobs = Array.from({ length: files }, (_, i) => jobFor(`${site}/file-${i}`))
    await new Promise((resolve) => setTimeout(resolve, 1000)) // both loops are warm
    const lag = monitorEventLoopDelay({ resolution: 1 })
    const pagesBefore = pages.count()
    let startedMs = performance.now()
    let poolRssMb: FilesRow['poolRssMb']
    let bytes = 0
    const begin = () => {
      lag.enable()
      startedMs = performance.now()
    }
    if (way === 'in the pool') {
      await using pool = openFilePool({
        entry: fileURLToPath(new URL('../src/app/run/file-process.ts', import.meta.url)),
        orders: { store: join(folder, 'store'), spool: join(folder, 'spool'), bytesMax: 1e10, http: HTTP, steps: [] },
        workers: 2,
        findStored: async () => undefined,
      })
      await Promise.all([0, 1].map((i) => pool.run(jobFor(`${site}/file-warm-${i}`), never)))
      const before = rssMbOf(pool.pids)
      begin()
      bytes = await allOf(jobs, (job) => pool.run(job, never))
      lag.disable()
      poolRssMb = { processes: pool.pids.length, before, after: rssMbOf(pool.pids) }
    } else if (way === 'in the same process') {
      await using source = openByteStream(HTTP)
      await using store = await openFileStore(join(folder, 'store'))
      const parts = { source, store, spool: join(folder, 'spool'), steps: [], bytesMax: 1e10 }
      const asks = {
        onRedirect: async () => {},
        onReceived: async () => {},
        findStored: async () => undefined,
        beforeStore: async () => {},
      }
      begin()
      bytes = await allOf(jobs, (job) => workOn(job, parts, asks, never))
    } else {
      begin()
      await new Promise((resolve) => setTimeout(resolve, BASELINE_MS))
    }
    lag.disable()
    const seconds = (performance.now() - startedMs) / 1000
    const pageCount = pages.count() - pagesBefore
    stop.abort()
    await pages.ended
    const at = (percentile: number) => Number((lag.percentile(percentile) / 1e6).toFixed(1))
    return {
      way,
      pagesPerSecond: Math.round(pageCount / seconds),
      lagMs: { p50: at(50), p95: at(95), p99: at(99), max: Number((lag.max / 1e6).toFixed(1)) },
      ...(bytes === 0 ? {} : { megabytesPerSecond: Math.round(bytes / MEGABYTE / seconds) }),
      seconds: Number(seconds.toFixed(1)),
      rssMb: rssMbOf([process.pid]),
      ...(poolRssMb === undefined ? {} : { poolRssMb }),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const HTTP: ByteStreamOptions = {
  userAgent: 'SluiceBench/1.0',
  headersMsMax: 30_000,
  idleMsMax: 30_000,
  totalMsMax: 600_000,
  connectTimeoutMs: 10_000,
  redirectsMax: 5,
  connectionsPerHost: AT_ONCE,
  retryAfterMsMax: 1000,
  allowPrivate: true,
  allowAddresses: [],
}

export function jobFor(url: string): FileJob {
  const task = { id: taskId({ url }), url, session: undefined }
  return { task, order: { type: 'download' }, runId: 'bench', scraper: 'bench', headers: {} }
}

/** `AT_ONCE` at a time; returns the total number of bytes. */
export async function allOf(jobs: FileJob[], run: (job: FileJob) => Promise<StoredFile>): Promise<number> {
  const left = jobs.values()
  let bytes = 0
  const worker = async () => {
    for (const job of left) {
      const stored = await run(job)
      bytes += stored.bytes
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return bytes
}

/** What a crawl does in the meantime, without parsing, which would add lag itself. */
function fetchPages(site: string, stop: AbortSignal): { count(): number; ended: Promise<unknown> } {
  const http = openHttp({
    ...{ userAgent: 'SluiceBench/1.0', timeoutMs: 30_000, connectTimeoutMs: 10_000, bodyBytesMax: MEGABYTE },
    ...{
      redirectsMax: 5,
      connectionsPerHost: PAGES_AT_ONCE,
      retryAfterMsMax: 1000,
      allowPrivate: true,
      allowAddresses: [],
    },
  })
  let count = 0
  const worker = async () => {
    while (!stop.aborted) {
      const page = await http.exchange({ url: `${site}/page-${count}` }, never)
      page.release()
      count++
    }
  }
  const ended = Promise.all(Array.from({ length: PAGES_AT_ONCE }, worker)).finally(() => http[Symbol.asyncDispose]())
  return { count: () => count, ended }
}

function rssMbOf(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0),
  )
  return Math.round(kilobytes.reduce((sum, one) => sum + one, 0) / 1024)
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      files: { type: 'string', default: '100' },
      mb: { type: 'string', default: '5' },
      json: { type: 'boolean', default: false },
      serve: { type: 'string' },
      measure: { type: 'string' },
    },
  })
  if (values.serve !== undefined) await serve(Number(values.serve))
  else if (values.measure !== undefined) {
    const row = await measure(JSON.parse(values.measure) as Measure)
    process.send!(row, () => process.disconnect())
  } else {
    const rows = await benchFiles({ files: Number(values.files), megabytes: Number(values.mb) })
    if (values.json) console.log(JSON.stringify(rows))
    else console.dir(rows, { depth: 3 })
  }
}
