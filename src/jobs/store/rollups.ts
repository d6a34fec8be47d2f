/**
 * Keeps the daily numbers fresh: only days that were written to are recomputed. Today is read from the raw rows and computed once
 * it is over. On PostgreSQL this also creates partitions for the coming weeks and drops those past retention.
 */
import { every } from '../../core/every.ts'
import type { Rows, SqlDatabase } from '../../drivers/sql.ts'
import { KEEP_DAYS, ROLLUPS, type Rollup, TIME_TABLES, type TimeTable, wordsOf } from './contract.ts'
import { timeOf } from './rows.ts'

const DAY_MS = 86_400_000
const LOOK_MS = 10_000
/** Days computed per pass: the rest waits for the next one. */
const DAYS_AT_ONCE = 30
const WEEKS_AHEAD = 3
/** How often partitions and retention are checked. */
const KEEPING_MS = 3_600_000

interface RollupParts {
  db: SqlDatabase
  say: (level: 'info' | 'warn', message: string) => void
  /** How long rows are kept. Rollups are kept for good. */
  keepDays?: Readonly<Record<TimeTable, number>>
  now?: () => number
}

export class Rollups implements AsyncDisposable {
  readonly #parts: Required<RollupParts>
  readonly #looking: NodeJS.Timeout
  #look: Promise<void> | undefined
  #keptAtMs = Number.NEGATIVE_INFINITY

  constructor(parts: RollupParts) {
    this.#parts = { now: Date.now, keepDays: KEEP_DAYS, ...parts }
    this.#looking = every(() => this.look(), LOOK_MS)
  }

  /** Called every ten seconds; calls do not overlap. */
  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#parts.say('warn', `analytics cannot be brought up to date: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  async #lookOnce(): Promise<void> {
    const nowMs = this.#parts.now()
    if (nowMs - this.#keptAtMs >= KEEPING_MS) {
      await this.keep()
      this.#keptAtMs = nowMs
    }
    await this.refresh()
  }

  /** Computes the days before today that were written to; returns how many. */
  async refresh(): Promise<number> {
    const { db, now } = this.#parts
    const { prefix } = db.dialect
    const today = dayOf(now())
    const dirty = await db.rows(
      `select distinct cast(bucket as text) as day from ${prefix}rollup_dirty where bucket < $1 order by 1 limit ${DAYS_AT_ONCE}`,
      [today],
    )
    for (const { day } of dirty) await db.transaction((rows) => this.#compute(rows, String(day)))
    if (dirty.length < DAYS_AT_ONCE) await this.#moveWatermark(today)
    return dirty.length
  }

  async #compute(rows: Rows, day: string): Promise<void> {
    const { prefix } = this.#parts.db.dialect
    // First, because this waits for any transaction still writing to this day: it holds locks on these rows.
    const dirty = await rows(`delete from ${prefix}rollup_dirty where bucket = $1 returning rollup`, [day])
    const ours = await rows(`select rollup from ${prefix}rollup_watermark`, [])
    const [names, kept] = [dirty, ours].map((found) => new Set(found.map(({ rollup }) => String(rollup))))
    for (const rollup of ROLLUPS)
      if (names!.has(rollup.name) && kept!.has(rollup.name)) await this.#computeOne(rows, rollup, day)
  }

  async #computeOne(rows: Rows, rollup: Rollup, day: string): Promise<void> {
    const { dialect } = this.#parts.db
    const { prefix } = dialect
    const table = `${prefix}${rollup.name}_rollup`
    await rows(`delete from ${table} where day = $1`, [day])
    const time = TIME_TABLES[rollup.from]
    const source = `(select * from ${prefix}${rollup.from} where ${time} >= $1 and ${time} < $2)`
    const select = rollup.select({ prefix, source, day: wordsOf(dialect).dayOf(time) })
    await rows(`insert into ${table} ${select}`, rangeOf(day))
  }

  /** From the watermark on, raw rows are read. It does not move past a day that has not been computed. */
  async #moveWatermark(today: string): Promise<void> {
    const { prefix } = this.#parts.db.dialect
    await this.#parts.db.rows(
      `update ${prefix}rollup_watermark set day = $1, starts_at = $2
       where day < $1 and not exists (
         select 1 from ${prefix}rollup_dirty d
         where d.rollup = rollup_watermark.rollup and d.bucket >= rollup_watermark.day and d.bucket < $1)`,
      [today, `${today}T00:00:00.000Z`],
    )
  }

  /** Creates partitions ahead and deletes what is past retention. Returns how many partitions were dropped. */
  async keep(): Promise<number> {
    const { db, now, keepDays } = this.#parts
    const { name, prefix } = db.dialect
    let dropped = 0
    for (const [table, time] of Object.entries(TIME_TABLES) as [TimeTable, string][]) {
      const before = new Date(now() - keepDays[table] * DAY_MS).toISOString()
      if (name === 'sqlite') {
        await db.rows(`delete from ${prefix}${table} where ${time} < $1`, [before])
        continue
      }
      await db.rows('select sluice.ensure_partitions($1, $2, $3)', [table, new Date(now()).toISOString(), WEEKS_AHEAD])
      const [row] = await db.rows('select sluice.drop_partitions($1, $2) as dropped', [table, before])
      dropped += Number(row!['dropped'])
    }
    return dropped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking)
    await this.#look
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

function rangeOf(day: string): [string, string] {
  const start = new Date(`${day}T00:00:00.000Z`)
  return [timeOf(start), timeOf(new Date(start.getTime() + DAY_MS))]
}
