/** How far each run has been read, and how it ended. */
import type { Rows, SqlDatabase } from '../../drivers/sql.ts'
import type { SourceRun } from './contract.ts'

/** How far one run has been read. */
export interface Cursor {
  readonly runId: string
  /** No run of its scope had ended when it was opened. */
  readonly isFirst: boolean
  /** The version of its end that was processed; undefined if none was. */
  readonly doneVersion: string | undefined
  position: string
  items: number
}

/** With a smaller share of the last complete run's items than this, the site or the scraper is probably broken. */
const SHARE_MIN = 0.5
/** Unless this many runs in a row agree: then the site really has fewer items. A run without items is never believed. */
const FEW_RUNS_BELIEVED = 3
const FOUND = 'it found'

/** Another server got there first: there is nothing to do. */
export class Overtaken extends Error {}

export class IngestRuns {
  readonly #db: SqlDatabase
  readonly #prefix: string

  constructor(db: SqlDatabase) {
    this.#db = db
    this.#prefix = db.dialect.prefix
  }

  async open(runId: string, { scraper, scope, startedAtMs }: SourceRun): Promise<Cursor> {
    await this.#db.rows(
      `insert into ${this.#prefix}ingest_run (run_id, scraper, scope, started_ms) values ($1, $2, $3, $4)
       on conflict do nothing`,
      [runId, scraper, scope, startedAtMs],
    )
    const [row] = await this.#db.rows(`select * from ${this.#prefix}ingest_run where run_id = $1`, [runId])
    const ended = await this.#db.rows(
      `select 1 as one from ${this.#prefix}ingest_run where scraper = $1 and scope = $2 and is_finished = 1 and run_id <> $3
       limit 1`,
      [scraper, scope, runId],
    )
    return {
      runId,
      isFirst: ended.length === 0,
      doneVersion: Number(row!['is_done']) === 1 ? String(row!['version']) : undefined,
      position: String(row!['position']),
      items: Number(row!['items']),
    }
  }

  /** Serializes runs of the same scraper: until the transaction ends, no other server changes what is known about it. */
  async takeTurn(rows: Rows, scraper: string, nowMs: number): Promise<void> {
    await rows(
      `insert into ${this.#prefix}ingest_turn (scraper, at_ms) values ($1, $2)
       on conflict (scraper) do update set at_ms = excluded.at_ms`,
      [scraper, nowMs],
    )
  }

  /** Throws `Overtaken` if another server has moved it. */
  async move(rows: Rows, { runId, position }: Cursor, to: string, items: number): Promise<void> {
    const moved = await rows(
      `update ${this.#prefix}ingest_run set position = $3, items = items + $4, is_done = 0
       where run_id = $1 and position = $2 returning run_id`,
      [runId, position, to, items],
    )
    if (moved.length === 0) throw new Overtaken(`another server reads run ${runId}`)
  }

  async finish(
    rows: Rows,
    { runId, position }: Cursor,
    { version, isFinished }: SourceRun,
    gap: string | undefined,
  ): Promise<void> {
    const ended = await rows(
      `update ${this.#prefix}ingest_run set is_done = 1, version = $3, is_finished = $4, is_complete = $5, why = $6
       where run_id = $1 and position = $2 and (is_done = 0 or version <> $3) returning run_id`,
      [runId, position, version, isFinished ? 1 : 0, gap === undefined ? 1 : 0, gap ?? null],
    )
    if (ended.length === 0) throw new Overtaken(`another server reads run ${runId}`)
  }

  /** Why a run that saw everything is not believed; undefined if it is. */
  async tooFew(rows: Rows, { runId, items }: Cursor, { scraper, scope }: SourceRun): Promise<string | undefined> {
    if (items === 0) return `${FOUND} nothing`
    const before = await rows(
      `select items, is_complete, why from ${this.#prefix}ingest_run
       where scraper = $1 and scope = $2 and run_id < $3 and is_done = 1 and is_finished = 1
       order by run_id desc limit 50`,
      [scraper, scope, runId],
    )
    const last = before.findIndex((row) => Number(row['is_complete']) === 1)
    const expected = last === -1 ? 0 : Number(before[last]!['items'])
    if (items >= expected * SHARE_MIN) return undefined
    const alike = before
      .slice(0, last)
      .filter((row) => Number(row['items']) > 0 && String(row['why']).startsWith(FOUND))
    if (alike.length >= FEW_RUNS_BELIEVED - 1) return undefined
    return `${FOUND} ${items} items, the last complete run ${expected}`
  }
}
