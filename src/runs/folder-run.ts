/** A local run, seen from outside: its folder. Reading never takes the run's lock. */
import { closeSync, createReadStream, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import type { RunRecord } from '../core/run.ts'
import type { FileRecord } from '../files/contract.ts'
import type { Frontier } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import { isLineStart, linesOf, placedLinesOf, wholeLines } from './file-lines.ts'
import { listFiles } from './file-records.ts'
import { pictureOf, RunFolder } from './run-folder.ts'
import { urlOfPlace, withoutPassword } from './run-identity.ts'
import { PROCESS_LOST } from './run-record.ts'
import {
  type ItemLine,
  noPosition,
  numberOfPosition,
  type OpenRun,
  outFlag,
  type PlacedLine,
  type RunItems,
  type RunLogLines,
  type RunPlaces,
} from './run-view.ts'

/** A running run saves its record twice a second: if it is this old, its process is gone or badly stuck. */
const RECORD_FRESH_MS = 5_000
const SNAPSHOT_HEAD_BYTES = 16 * 1024

export async function openFolderRun(found: RunFolder, places: RunPlaces): Promise<OpenRun> {
  const folder = new RunFolder(realpathSync(found.path)) // `books/latest` is a link, not a run id
  const record = folder.readRecord()!
  return new FolderRun(folder, record, await openExisting(folder, queueOf(record, places)), places.out)
}

class FolderRun implements OpenRun {
  readonly #folder: RunFolder
  readonly #out: string
  readonly frontier: Frontier | undefined
  readonly broker = undefined
  readonly filling = undefined
  readonly log: RunLogLines
  readonly workers = undefined
  record: RunRecord
  isAlive: boolean

  constructor(folder: RunFolder, record: RunRecord, frontier: Frontier | undefined, out: string) {
    this.#folder = folder
    this.#out = out
    this.frontier = frontier
    this.isAlive = isWorkedOn(folder, record)
    this.record = this.isAlive ? record : { ...record, ...lostState(record) }
    this.log = new FileLog(folder, () => this.isOver)
  }

  get isOver(): boolean {
    return !this.isAlive
  }

  get place(): string {
    return this.#folder.path
  }

  get folder(): string {
    return this.#folder.path
  }

  get word(): string {
    return this.#folder.path
  }

  async refresh(): Promise<void> {
    const record = this.#folder.readRecord() ?? this.record
    this.isAlive = isWorkedOn(this.#folder, record)
    this.record = this.isAlive ? record : { ...record, ...lostState(record) }
  }

  async askBroker(): Promise<void> {}

  async snapshot(name: string): Promise<{ place: string; head: string | undefined }> {
    const place = this.#folder.file(name)
    return { place, head: headOf(place) }
  }

  async picture(snapshot: string): Promise<string | undefined> {
    const path = this.#folder.file(pictureOf(snapshot))
    return existsSync(path) ? path : undefined
  }

  files(): AsyncIterable<readonly FileRecord[]> {
    return listFiles(this.#folder.file('files.db'), this.#folder.runId)
  }

  /** The run's items as JSON Lines: its own output, or the source of a Parquet file to come. */
  async items(): Promise<RunItems | undefined> {
    const confirmed = await this.frontier?.items.confirmed()
    for (const [sink, name] of [
      ['jsonl', 'items.jsonl'],
      ['parquet', 'items.parquet.part'],
    ] as const) {
      const path = this.#folder.file(name)
      if (!existsSync(path)) continue
      // Without the queue it is not known how much is confirmed; whole lines are the next best thing.
      if (confirmed === undefined) return this.#itemsIn(path, await wholeLines(path))
      return this.#itemsIn(path, Number(confirmed.positions[sink]?.split(':')[0] ?? 0))
    }
    return undefined
  }

  #itemsIn(path: string, bytes: number): RunItems {
    return {
      isKeyed: false,
      batches: async function* () {
        for await (const lines of linesOf(path, 0, bytes)) yield lines.map((json): ItemLine => ({ json }))
      },
      after: async (position) => {
        const start = numberOfPosition(position)
        if (!(await isLineStart(path, start))) throw noPosition(position)
        return placedItems(path, start, bytes)
      },
      text: () => (bytes === 0 ? nothing() : createReadStream(path, { end: bytes - 1 })),
      columns: () => headerOf(this.#folder.file('items.csv')),
    }
  }

  finishedFile(format: string): string | undefined {
    const path = this.#folder.file(`items.${format}`)
    return this.isAlive || !existsSync(path) ? undefined : path
  }

  async saveRecord(record: RunRecord): Promise<boolean> {
    await this.refresh()
    if (this.isAlive) return false // it saves its own record
    this.#folder.writeRecord(record)
    this.record = record
    return true
  }

  /** Marks the run as stopped, so that `--resume` finds it. */
  async reopen(reason: string): Promise<void> {
    const { failed, remaining, dead } = (await this.frontier?.stats()) ?? this.record.pages
    await this.saveRecord({
      ...this.record,
      state: 'stopped',
      reason,
      exitCode: 4,
      pages: { ...this.record.pages, failed, remaining, dead },
    })
  }

  resumeCommand(): string[] {
    const { scraper, source, id } = this.record
    if (scraper.startsWith('crawl-')) return ['crawl', '--resume', id, ...outFlag(this.#out)]
    return ['run', source, '--resume', id, ...outFlag(this.#out)]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.frontier?.[Symbol.asyncDispose]()
  }
}

/** If no queue is configured, the run's own is meant. A fleet's queue in the environment does not belong to every run here. */
function queueOf(record: RunRecord, { frontier, store }: RunPlaces): string {
  const { url, isShared } = parseEngineUrl(frontier)
  if (url !== 'sqlite:' && !isShared) return url
  return urlOfPlace(urlOfPlace(record.frontier, frontier), store ?? '')
}

async function openExisting(folder: RunFolder, given: string): Promise<Frontier | undefined> {
  const { url, engine, path: file } = parseEngineUrl(given)
  if (url === 'sqlite:') {
    const path = folder.file('frontier.db')
    return existsSync(path) ? await openFrontier(`sqlite:${path}`) : undefined
  }
  if (engine === 'memory') return undefined
  if (file !== undefined && !existsSync(file)) return undefined // opening it would create an empty one
  const frontier = await openFrontier(url, { runId: folder.runId, mustExist: true })
  const owner = await frontier.getMeta('run')
  if (owner === folder.runId) return frontier
  await frontier[Symbol.asyncDispose]()
  throw new ScrapeError(
    'E_OPTION',
    `the frontier ${withoutPassword(url)} belongs to run ${owner ?? '(none)'}, not to ${folder.runId}`,
  )
}

function isWorkedOn(folder: RunFolder, record: RunRecord): boolean {
  if (record.state !== 'running') return false
  if (Date.now() - statSync(folder.file('run.json')).mtimeMs < RECORD_FRESH_MS) return true
  return isLocked(folder.file('lock.db'))
}

/** Briefly tries to take the lock, which its holder prevents. Only done for a silent run, so that it never disturbs a start. */
function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const lock = new DatabaseSync(path, { readOnly: true })
  try {
    lock.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch {
    return true
  } finally {
    lock.close()
  }
}

function lostState(record: RunRecord): Partial<RunRecord> {
  return record.state === 'running' ? { state: 'stopped', reason: PROCESS_LOST } : {}
}

function headOf(path: string): string | undefined {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const buffer = Buffer.alloc(SNAPSHOT_HEAD_BYTES)
    return buffer.subarray(0, readSync(file, buffer, 0, SNAPSHOT_HEAD_BYTES, 0)).toString('utf8')
  } finally {
    closeSync(file)
  }
}

async function headerOf(path: string): Promise<string[] | undefined> {
  if (!existsSync(path)) return undefined
  for await (const chunk of createReadStream(path, { end: 64 * 1024 }) as AsyncIterable<Buffer>) {
    const header = /^([^"\r\n]+)\r?\n/.exec(chunk.toString('utf8'))?.[1]
    return header?.split(',') // quoted names are rare enough to read the items instead
  }
  return undefined
}

async function* nothing(): AsyncGenerator<never> {}

async function* placedItems(path: string, start: number, end: number): AsyncGenerator<PlacedLine[]> {
  for await (const lines of placedLinesOf(path, start, end))
    yield lines.map(({ text, end: behind }) => ({ json: text, position: String(behind) }))
}

/** `log.jsonl`, read from the last position. A half-written line waits for its end. */
class FileLog implements RunLogLines {
  readonly #folder: RunFolder
  readonly #isOver: () => boolean
  #at = 0

  constructor(folder: RunFolder, isOver: () => boolean) {
    this.#folder = folder
    this.#isOver = isOver
  }

  async *read(): AsyncGenerator<readonly string[]> {
    const path = this.#folder.file('log.jsonl')
    if (!existsSync(path)) return
    const end = await wholeLines(path)
    yield* linesOf(path, this.#at, end)
    this.#at = Math.max(this.#at, end)
  }

  /** A run records its result before it closes its log; the lock goes last. */
  isComplete(): boolean {
    return this.#isOver() && !isLocked(this.#folder.file('lock.db'))
  }

  fromStart(): FileLog {
    return new FileLog(this.#folder, this.#isOver)
  }
}
