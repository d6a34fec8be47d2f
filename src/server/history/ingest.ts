/**
 * Reads the items of runs into the tables derived from them. A batch is one transaction: the cursor of the run advances, the
 * projections update their tables, the events are recorded. So a batch counts once, even after a crash, and two servers that read
 * the same run do not count it twice: the cursor advances from where the reader found it, or not at all.
 */

import { setImmediate as breathe } from 'node:timers/promises'
import { every } from '../../core/every.ts'
import type { Rows, SqlDatabase } from '../../drivers/sql.ts'
import { contentOf, type Item, readAtMs, storableKey } from './content.ts'
import type { IngestedItem, NewsOfRun, Projection, RunSource, SourceItem, SourceRun, TellEvents } from './contract.ts'
import { type Cursor, IngestRuns, Overtaken } from './ingest-runs.ts'

interface IngestParts {
  db: SqlDatabase
  source: RunSource
  projections: readonly Projection[]
  /** Called in the transaction that makes the change. */
  tell?: TellEvents
  say: (level: 'info' | 'warn', message: string) => void
  /** Time from reading a page to its items being in these tables, for each item that says when it was read. */
  onLatency?: (ms: number) => void
  now?: () => number
}

const LOOK_MS = 1_000
/** Small enough that a SQLite transaction does not keep a request waiting. */
const ITEMS_AT_ONCE = 100
/** A run that cannot be read is skipped: for this long at first, then longer each time. */
const REST_MS_MIN = 30_000
const REST_MS_MAX = 3_600_000

const tellNobody: TellEvents = async () => {}

export class Ingest implements AsyncDisposable {
  readonly #parts: Required<IngestParts>
  readonly #runs: IngestRuns
  readonly #looking: NodeJS.Timeout
  readonly #resting = new Map<string, { untilMs: number; ms: number }>()
  readonly #openedAtMs: number
  #look: Promise<void> | undefined
  #isStopping = false
  #items = 0

  constructor(parts: IngestParts) {
    this.#parts = { tell: tellNobody, onLatency: () => {}, now: Date.now, ...parts }
    this.#runs = new IngestRuns(parts.db)
    this.#openedAtMs = this.#parts.now()
    this.#looking = every(() => this.look(), LOOK_MS)
  }

  /** Items read since this server started. */
  get items(): number {
    return this.#items
  }

  /** Called once a second; calls do not overlap. */
  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#parts.say('warn', `history: runs cannot be read: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  async #lookOnce(): Promise<void> {
    for (const news of await this.#parts.source.news()) {
      if (this.#isStopping) return
      if ((this.#resting.get(news.runId)?.untilMs ?? 0) > this.#parts.now()) continue
      try {
        await this.#read(news)
        this.#resting.delete(news.runId)
      } catch (error) {
        if (error instanceof Overtaken) continue
        const ms = Math.min(REST_MS_MAX, 2 * (this.#resting.get(news.runId)?.ms ?? REST_MS_MIN / 2))
        this.#resting.set(news.runId, { untilMs: this.#parts.now() + ms, ms })
        this.#parts.say('warn', `history: run ${news.runId} cannot be read: ${(error as Error).message}`)
      }
    }
  }

  async #read(news: NewsOfRun): Promise<void> {
    const run = await news.open()
    const cursor = await this.#runs.open(news.runId, run)
    if (cursor.doneVersion !== run.version) {
      // The end was checked before the items: if the run is over, these are all of its items.
      const isReadable = await this.#readItems(run, cursor)
      if (this.#isStopping || run.endedAtMs === undefined) return
      await this.#finish(run, cursor, isReadable)
    }
    if (run.endedAtMs !== undefined) await news.settle()
  }

  /** False if the run keeps no items that can be read. */
  async #readItems(run: SourceRun, cursor: Cursor): Promise<boolean> {
    const batches = await run.after(cursor.position)
    if (batches === undefined) return false
    for await (const batch of batches) {
      for (let at = 0; at < batch.length; at += ITEMS_AT_ONCE) {
        if (this.#isStopping) return true
        await this.#take(run, cursor, batch.slice(at, at + ITEMS_AT_ONCE))
        await breathe() // SQLite calls never yield, so nothing else would get to run
      }
    }
    return true
  }

  async #take(run: SourceRun, cursor: Cursor, lines: readonly SourceItem[]): Promise<void> {
    const { db, tell, now } = this.#parts
    const items = itemsOf(lines)
    const atMs = Math.min(now(), run.endedAtMs ?? Number.POSITIVE_INFINITY)
    const { runId, isFirst } = cursor
    const { scraper, scope, record } = run
    const batch = { runId, scraper, scope, isFirst, atMs, items, fields: record?.fields }
    const position = lines.at(-1)!.position
    await db.transaction(async (rows) => {
      await this.#runs.takeTurn(rows, run.scraper, now())
      await this.#runs.move(rows, cursor, position, lines.length)
      if (items.length === 0) return
      for (const projection of this.#fitting(run)) await tell(rows, await projection.project(rows, batch))
    })
    cursor.position = position
    cursor.items += lines.length
    this.#items += lines.length
    this.#measure(run, items)
  }

  async #finish(run: SourceRun, cursor: Cursor, isReadable: boolean): Promise<void> {
    const { db, tell, now } = this.#parts
    await db.transaction(async (rows) => {
      await this.#runs.takeTurn(rows, run.scraper, now())
      const gap = isReadable ? (run.gap ?? (await this.#runs.tooFew(rows, cursor, run))) : 'its items are not kept'
      await this.#runs.finish(rows, cursor, run, gap)
      const { runId, items } = cursor
      const { scraper, scope, startedAtMs, endedAtMs, record } = run
      const isWhole = isReadable && run.gap === undefined
      const ended = {
        runId,
        scraper,
        scope,
        record,
        startedAtMs,
        atMs: endedAtMs ?? now(),
        isComplete: gap === undefined,
        isWhole,
        items,
      }
      for (const projection of this.#fitting(run)) await tellAll(tell, rows, projection.finish(rows, ended))
    })
  }

  #fitting({ scraper }: SourceRun): Projection[] {
    return this.#parts.projections.filter((projection) => projection.accepts(scraper))
  }

  /** Skips runs that ended before this server started: that delay says nothing about it. */
  #measure(run: SourceRun, items: readonly IngestedItem[]): void {
    if ((run.endedAtMs ?? Number.POSITIVE_INFINITY) < this.#openedAtMs) return
    const nowMs = this.#parts.now()
    for (const { item } of items) {
      const ms = readAtMs(item)
      if (ms !== undefined && ms >= this.#openedAtMs) this.#parts.onLatency(Math.max(0, nowMs - ms))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#looking)
    await this.#look
  }
}

async function tellAll(tell: TellEvents, rows: Rows, events: ReturnType<Projection['finish']>): Promise<void> {
  if (Symbol.asyncIterator in events) for await (const some of events) await tell(rows, some)
  else await tell(rows, await events)
}

/** A line that is not an object, or has no key, has no history. The first item with a key wins, as in the run itself. */
function itemsOf(lines: readonly SourceItem[]): IngestedItem[] {
  const items = new Map<string, IngestedItem>()
  for (const { key: given, json } of lines) {
    if (given === undefined) continue
    const key = storableKey(given)
    const item = parsed(json)
    if (item !== undefined && !items.has(key)) items.set(key, { key, item, content: contentOf(item) })
  }
  return [...items.values()]
}

function parsed(json: string): Item | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Item) : undefined
  } catch {
    return undefined
  }
}
