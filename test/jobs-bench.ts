/** Both databases with the jobs in them, and custom postings. */
import { join } from 'node:path'
import type { RunRecord } from '../src/core/run.ts'
import type { Json } from '../src/core/task.ts'
import type { SqlDatabase } from '../src/drivers/sql.ts'
import { type Posting, postingKey, type RawPosting, type Source } from '../src/jobs/read/posting.ts'
import { toPosting } from '../src/jobs/read/to-posting.ts'
import { ROLLUPS } from '../src/jobs/store/contract.ts'
import { JobsProjection } from '../src/jobs/store/projection.ts'
import type { HistoryEvent } from '../src/server/history/contract.ts'
import { openPostgresDatabase } from '../src/store/postgres.ts'
import { openSqliteDatabase } from '../src/store/sqlite.ts'
import { postgresForTests } from './services/postgres.ts'
import { temporaryFolder } from './sluice.ts'

export const DAY = 86_400_000
export const T0 = Date.UTC(2026, 9, 5, 8)

/** Opened once for all tests of a file, which start with empty tables. */
export const OPEN: Record<string, () => Promise<Bench>> = {
  async 'sqlite:'() {
    const folder = temporaryFolder()
    return new Bench(openSqliteDatabase(join(folder.path, 'store.db')), async () => folder[Symbol.dispose]())
  },
  async 'postgres:'() {
    const database = await postgresForTests()
    return new Bench(await openPostgresDatabase(database.url), async () => await database[Symbol.asyncDispose]())
  },
}

const TABLES = [
  ...ROLLUPS.map(({ name }) => `${name}_rollup`),
  ...'job_observation job_event job_location job_source job_block job_board job_metric job company location'.split(' '),
  'rollup_dirty',
  'scrape_health',
]

export interface Run {
  scraper?: Source
  isComplete?: boolean
  args?: Json
}

export class Bench implements AsyncDisposable {
  readonly db: SqlDatabase
  readonly projection: JobsProjection
  readonly #end: () => Promise<void>
  #runs = 0

  constructor(db: SqlDatabase, end: () => Promise<void>) {
    this.db = db
    this.projection = new JobsProjection(db.dialect)
    this.#end = end
  }

  /** A whole run at one moment, as the reader of runs passes it on. Returns its events. */
  async run(atMs: number, postings: readonly Posting[], options: Run = {}): Promise<HistoryEvent[]> {
    const { scraper = 'greenhouse', isComplete = true, args = { board: 'acme' } } = options
    const runId = `run-${++this.#runs}`
    const items = postings.map((item) => ({ key: postingKey(item), item, content: item.content_hash }))
    const batch = { runId, scraper, scope: 's', isFirst: false, atMs, items }
    const events = await this.db.transaction((rows) => this.projection.project(rows, batch))
    const isWhole = isComplete
    const ended = {
      runId,
      scraper,
      scope: 's',
      record: { args } as RunRecord,
      startedAtMs: atMs,
      atMs: atMs + 1000,
      items: items.length,
      isWhole,
    }
    await this.db.transaction(async (rows) => {
      const run = { ...ended, isComplete: isComplete && items.length > 0 }
      for await (const more of this.projection.finish(rows, run)) events.push(...more)
    })
    return events
  }

  /** Rows of a statement with `@` before table names. */
  async ask(sql: string, values: (string | number)[] = []): Promise<Record<string, unknown>[]> {
    return (await this.db.rows(sql.replaceAll('@', this.db.dialect.prefix), values)).map((row) => ({ ...row }))
  }

  async clear(): Promise<void> {
    for (const table of TABLES) await this.ask(`delete from @${table}`)
    await this.ask(`update @rollup_watermark set day = '1970-01-01', starts_at = '1970-01-01T00:00:00.000Z'`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.db.close()
    await this.#end()
  }
}

const LOREM = 'You will design, build and run the services that our customers depend on every day of the year. '

export function posting(n: number, more: Partial<RawPosting> = {}, source: Source = 'greenhouse'): Posting {
  const raw: RawPosting = {
    source_job_id: `${source}-${n}`,
    board_token: 'acme',
    title: ['Backend Engineer', 'Account Manager', 'Nurse', 'Data Analyst', 'Truck Driver', 'Chef'][n % 6]!,
    company: `Company ${Math.floor(n / 6)}`,
    locations: [['Berlin, Germany', 'London, United Kingdom', 'New York, NY'][n % 3]!],
    employment_type: n % 4 === 0 ? 'part-time' : 'full-time',
    workplace: n % 5 === 0 ? 'hybrid' : null,
    salary: n % 2 === 0 ? { min: 50_000 + n * 1000, max: 60_000 + n * 1000, currency: 'EUR', interval: 'year' } : null,
    date_posted: '2026-10-01',
    description_text: `${LOREM.repeat(3)} Number ${n}.`,
    job_url: `https://${source}.example/acme/jobs/x${n}`,
    ...more,
  }
  return toPosting(source, raw, { now: new Date(T0) })
}

export const typesOf = (events: readonly HistoryEvent[]) => events.map(({ type }) => type.replace('job.', '')).sort()
