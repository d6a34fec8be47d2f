/** A history whose runs are written by the test, on either database. */
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { RunRecord } from '../src/core/run.ts'
import type { SqlDatabase } from '../src/drivers/sql.ts'
import type { HistoryEvent, NewsOfRun, Projection, SourceItem, SourceRun } from '../src/server/history/contract.ts'
import { Ingest } from '../src/server/history/ingest.ts'
import { type ItemsOptions, ItemsProjection } from '../src/server/history/items.ts'
import { History } from '../src/server/history/read.ts'
import { openPostgresDatabase } from '../src/store/postgres.ts'
import { openSqliteDatabase } from '../src/store/sqlite.ts'
import { postgresForTests } from './services/postgres.ts'
import { temporaryFolder } from './sluice.ts'

export interface Book {
  url: string
  price?: number | null
  scraped_at?: string
  [more: string]: unknown
}

/** A run whose items and end are set manually. */
export class WrittenRun {
  readonly id: string
  readonly lines: SourceItem[] = []
  readonly startedAtMs: number
  scope: string
  scraper: string
  endedAtMs: number | undefined
  gap: string | undefined
  isFinished = false
  version = 'running'
  isSettled = false
  /** The fields of its schema, if known. */
  fields: readonly string[] | undefined

  constructor(id: string, startedAtMs: number, { scope = 'aaaa', scraper = 'books' } = {}) {
    this.id = id
    this.startedAtMs = startedAtMs
    this.scope = scope
    this.scraper = scraper
  }

  add(...books: Book[]): this {
    for (const book of books)
      this.lines.push({ key: book.url, json: JSON.stringify(book), position: String(this.lines.length + 1) })
    return this
  }

  end(atMs: number, { isFinished = true, gap }: { isFinished?: boolean; gap?: string } = {}): this {
    this.endedAtMs = atMs
    this.isFinished = isFinished
    this.gap = gap ?? (isFinished ? undefined : 'it stopped')
    this.version = `${isFinished ? 'finished' : 'stopped'} ${atMs}`
    return this
  }

  /** Resumes the run. */
  goOn(): this {
    this.endedAtMs = undefined
    this.version = 'running'
    this.isSettled = false
    return this
  }

  news(): NewsOfRun {
    return {
      runId: this.id,
      open: async () => this.#now(),
      settle: async () => {
        this.isSettled = true
      },
    }
  }

  #now(): SourceRun {
    const { scraper, scope, startedAtMs, endedAtMs, version, isFinished, gap, lines } = this
    const after = async (position: string) =>
      (async function* () {
        const rest = lines.slice(Number(position))
        if (rest.length > 0) yield rest
      })()
    const record = this.fields === undefined ? undefined : ({ fields: this.fields } as unknown as RunRecord)
    return { scraper, scope, startedAtMs, endedAtMs, version, isFinished, gap, after, record }
  }
}

export interface BenchOptions extends ItemsOptions {
  /** Used in addition to the items themselves. */
  projection?: Projection
}

export class Bench implements AsyncDisposable {
  readonly db: SqlDatabase
  readonly history: History
  readonly ingest: Ingest
  readonly events: HistoryEvent[] = []
  readonly warnings: string[] = []
  readonly latencies: number[] = []
  readonly runs: WrittenRun[] = []
  nowMs: number

  constructor(
    db: SqlDatabase,
    nowMs = Date.parse('2026-11-01T00:00:00Z'),
    { projection, ...items }: BenchOptions = {},
  ) {
    this.db = db
    this.nowMs = nowMs
    this.history = new History(db)
    this.ingest = new Ingest({
      db,
      source: { news: async () => this.runs.filter((run) => !run.isSettled).map((run) => run.news()) },
      projections: [new ItemsProjection(db.dialect, items), ...(projection === undefined ? [] : [projection])],
      tell: async (_, events) => void this.events.push(...events),
      say: (_, message) => this.warnings.push(message),
      onLatency: (ms) => this.latencies.push(ms),
      now: () => this.nowMs,
    })
  }

  /** Creates a run a day later. */
  run(id: string, more?: { scope?: string; scraper?: string }): WrittenRun {
    this.nowMs += 86_400_000
    const run = new WrittenRun(id, this.nowMs, more)
    this.runs.push(run)
    return run
  }

  /** A run that found these items and ended normally. */
  async complete(
    id: string,
    books: readonly Book[],
    more?: { scope?: string; gap?: string; fields?: readonly string[] },
  ): Promise<void> {
    const run = this.run(id, more).add(...books)
    run.fields = more?.fields
    run.end(this.nowMs + 1000, more)
    await this.look()
  }

  async look(): Promise<void> {
    this.nowMs += 2000
    await this.ingest.look()
  }

  /** `new /1`, `gone /2`. */
  told(): string[] {
    return this.events.splice(0).map(({ type, data }) => `${type.replace('item.', '')} ${data['key'] ?? sidesOf(data)}`)
  }

  async kinds(key: string): Promise<string[]> {
    return (await this.history.of('books', key)).changes.map(({ kind }) => kind)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ingest[Symbol.asyncDispose]()
  }
}

const sidesOf = ({ added, removed }: Readonly<Record<string, unknown>>) => `+${added} -${removed}`

export type Check = (title: string, test: (db: SqlDatabase) => Promise<void>) => void

const TABLES =
  'entity entity_change entity_field ingest_run ingest_turn run_record run_log run_item event delivery digest_event'.split(
    ' ',
  )

const OPEN: Readonly<Record<string, (parts: AsyncDisposableStack) => Promise<SqlDatabase>>> = {
  SQLite: async (parts) => openSqliteDatabase(join(parts.use(temporaryFolder()).path, 'store.db')),
  PostgreSQL: async (parts) => await openPostgresDatabase(parts.use(await postgresForTests()).url),
}

/** The same tests on SQLite and PostgreSQL, each with empty tables. */
export function onBothDatabases(title: string, define: (check: Check) => void): void {
  for (const [name, open] of Object.entries(OPEN))
    describe(`${title} on ${name}`, () => {
      const parts = new AsyncDisposableStack()
      let db: SqlDatabase
      before(async () => {
        db = await open(parts)
        parts.defer(() => db.close())
      })
      after(() => parts.disposeAsync())
      define((what, test) =>
        it(what, async () => {
          for (const table of TABLES) await db.rows(`delete from ${db.dialect.prefix}${table}`, [])
          await test(db)
        }))
    })
}
