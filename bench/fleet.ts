/**
 * A run from a file of URLs to completion with several workers on PostgreSQL (fsync on): rate, memory of each worker over time,
 * and proof that no URL was lost or done twice. Then the speed-up from one worker to two on slow pages.
 *
 *   node bench/fleet.ts [--urls 1000000] [--workers 4] [--json]
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from 'pg'
import { startPostgres } from '../test/services/postgres.ts'
import { runMeasured, statusMb } from './process-tree.ts'

const SLUICE = fileURLToPath(new URL('../bin/sluice', import.meta.url))
const SCRAPER = fileURLToPath(new URL('./scrapers/tiny.ts', import.meta.url))
const TIMEOUT_MS = 1_800_000

interface Place {
  site: string
  frontier: string
  folder: string
}

async function startSite(delayMs: number): Promise<AsyncDisposable & { url: string }> {
  const script = fileURLToPath(new URL('./tiny-site.ts', import.meta.url))
  const child = spawn(process.execPath, [script, String(delayMs)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    url,
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit')
      child.stdin.end()
      await exited
    },
  }
}

async function writeUrls(path: string, site: string, count: number): Promise<void> {
  const file = createWriteStream(path)
  for (let i = 0; i < count; i++) if (!file.write(`${site}p/${i}\n`)) await once(file, 'drain')
  file.end()
  await once(file, 'finish')
}

/** Creates the run and fills its queue. */
async function enqueue({ site, frontier, folder }: Place, urls: number) {
  const file = join(folder, 'urls.txt')
  await writeUrls(file, site, urls)
  const args = ['start', SCRAPER, '--urls-file', file, '--frontier', frontier, '--json']
  const cost = await runMeasured(SLUICE, args, { cwd: folder, timeoutMs: TIMEOUT_MS })
  if (cost.exitCode !== 0) throw new Error(cost.stderr)
  const { run_id: runId, enqueued } = JSON.parse(cost.stdout) as { run_id: string; enqueued: number }
  if (enqueued !== urls) throw new Error(`${enqueued} URLs in the queue, not ${urls}`)
  return { runId, urlsPerS: Math.round(urls / (cost.wallMs / 1000)), peakRssMb: Math.round(cost.peakRssMb) }
}

interface WorkerMemory {
  /** MB at a tenth, half and the end of the run. */
  rssMb: number[]
}

/** Runs workers until nothing is left, and samples their memory along the way. */
async function work({ frontier, folder }: Place, runId: string, workers: number, concurrency: number) {
  const args = ['worker', '--scraper', SCRAPER, '--run-id', runId, '--frontier', frontier, '--json']
  args.push('--concurrency', String(concurrency), '--batch-size', String(2 * concurrency))
  const startedMs = performance.now()
  const children = Array.from({ length: workers }, () =>
    spawn(SLUICE, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  const memory: WorkerMemory[] = children.map(() => ({ rssMb: [] }))
  const sampler = setInterval(() => {
    for (const [i, { pid }] of children.entries()) memory[i]!.rssMb.push(Math.round(statusMb(pid!, 'VmRSS')))
  }, 1000)
  const reports = await Promise.all(children.map(reportOf))
  clearInterval(sampler)
  const at = (samples: number[], share: number) => samples[Math.floor((samples.length - 1) * share)] ?? 0
  return {
    wallMs: performance.now() - startedMs,
    pages: reports.map(({ pages }) => pages),
    rssMb: memory.map(({ rssMb }) =>
      [0.1, 0.5, 1].map((share) =>
        at(
          rssMb.filter((mb) => mb > 0),
          share,
        ),
      ),
    ),
  }
}

async function reportOf(child: ChildProcess): Promise<{ pages: number }> {
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`a worker ended with ${code}: ${text}`)
  return JSON.parse(text) as { pages: number }
}

/** Read from the tables themselves. */
async function proof(frontier: string, runId: string) {
  const client = new Client({ connectionString: frontier })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select count(*)::int as done, count(distinct url_hash)::int as distinct, count(*) filter (where status <> 'completed')::int as other
       from sluice.url_work_queue where run_id = $1`,
      [runId],
    )
    const { rows: items } = await client.query(
      `select count(*)::int as items, count(distinct key)::int as keys from sluice.item i join sluice.run r using (run_id) where r.name = $1`,
      [runId],
    )
    return { ...rows[0], ...items[0] } as { done: number; distinct: number; other: number; items: number; keys: number }
  } finally {
    await client.end()
  }
}

async function fileToDone(frontier: string, folder: string, urls: number, workers: number) {
  await using site = await startSite(0)
  const place = { site: site.url, frontier, folder }
  const { runId, ...filled } = await enqueue(place, urls)
  const worked = await work(place, runId, workers, 32)
  const found = await proof(frontier, runId)
  const isExact =
    found.done === urls && found.distinct === urls && found.other === 0 && found.items === urls && found.keys === urls
  if (!isExact) throw new Error(`lost or doubled: ${JSON.stringify(found)}`)
  return {
    urls,
    workers,
    enqueue: filled,
    pagesPerS: Math.round(urls / (worked.wallMs / 1000)),
    pagesOfEachWorker: worked.pages,
    rssMbOfEachWorkerAtTenthHalfEnd: worked.rssMb,
    proof: found,
  }
}

/** Every response takes 50 ms, so that the pages are the bottleneck, not the two cores that everything shares. */
async function speedUp(frontier: string, folder: string) {
  await using site = await startSite(50)
  const place = { site: site.url, frontier, folder }
  const rates: number[] = []
  for (const workers of [1, 2]) {
    const urls = workers * 4000
    const { runId } = await enqueue(place, urls)
    const { wallMs } = await work(place, runId, workers, 16)
    rates.push(urls / (wallMs / 1000))
  }
  return { pagesPerS: rates.map(Math.round), speedUp: Math.round((rates[1]! / rates[0]!) * 100) / 100 }
}

const { values } = parseArgs({
  options: {
    urls: { type: 'string', default: '20000' },
    workers: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
  },
})
const folder = await mkdtemp(join(tmpdir(), 'sluice-fleet-'))
try {
  await using server = await startPostgres({ fsync: true })
  await using database = await server.createDatabase()
  const result = {
    fileToDone: await fileToDone(database.url, folder, Number(values.urls), Number(values.workers)),
    delayedPages: await speedUp(database.url, folder),
  }
  process.stdout.write(`${JSON.stringify(result, null, values.json ? 0 : 2)}\n`)
} finally {
  await rm(folder, { recursive: true, force: true })
}
