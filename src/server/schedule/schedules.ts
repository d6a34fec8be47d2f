/** Schedules in the store. A fire is claimed by inserting a row: only one of several servers succeeds. */
import { randomBytes } from 'node:crypto'
import { ScrapeError } from '../../core/errors.ts'
import type { Row, Rows, SqlDatabase } from '../../drivers/sql.ts'
import type { Fire, FireOutcome, NewSchedule, Schedule } from './contract.ts'
import { checkCron, nextTimes } from './cron.ts'

const FIRES_KEPT = 200

export class Schedules {
  readonly #db: SqlDatabase
  readonly #prefix: string
  readonly #now: () => number

  constructor(db: SqlDatabase, now: () => number = Date.now) {
    this.#db = db
    this.#now = now
    this.#prefix = db.dialect.prefix
  }

  /** Throws `E_OPTION` for a schedule that never fires, or a name that is already taken. */
  async create(given: NewSchedule): Promise<Schedule> {
    const cron = checkCron(given.cron, given.tz)
    const id = randomBytes(6).toString('hex')
    const nextMs = nextOf({ ...given, cron }, this.#now())
    const rows = await this.#db.rows(
      `insert into ${this.#prefix}schedule
         (id, name, scraper, args, limits, cron, tz, overlap, jitter_ms, is_catch_up, region, next_ms)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing returning *`,
      [id, ...columnsOf({ ...given, cron }), nextMs],
    )
    if (rows.length > 0) return toSchedule(rows[0]!)
    throw new ScrapeError('E_OPTION', `there is a schedule named ${JSON.stringify(given.name)}`)
  }

  async list(): Promise<Schedule[]> {
    return (await this.#db.rows(`select * from ${this.#prefix}schedule order by name`, [])).map(toSchedule)
  }

  /** By id or name. Throws `E_SCHEDULE_NOT_FOUND`. */
  async get(word: string): Promise<Schedule> {
    const [row] = await this.#db.rows(`select * from ${this.#prefix}schedule where id = $1 or name = $1`, [word])
    if (row !== undefined) return toSchedule(row)
    throw new ScrapeError('E_SCHEDULE_NOT_FOUND', `no schedule ${JSON.stringify(word)}`)
  }

  async update(id: string, given: NewSchedule): Promise<Schedule> {
    const cron = checkCron(given.cron, given.tz)
    const nextMs = nextOf({ ...given, cron }, this.#now())
    const rows = await this.#db.rows(
      `update ${this.#prefix}schedule set name = $2, scraper = $3, args = $4, limits = $5, cron = $6, tz = $7, overlap = $8,
         jitter_ms = $9, is_catch_up = $10, region = $11, next_ms = $12 where id = $1 returning *`,
      [id, ...columnsOf({ ...given, cron }), nextMs],
    )
    if (rows.length > 0) return toSchedule(rows[0]!)
    throw new ScrapeError('E_SCHEDULE_NOT_FOUND', `no schedule ${JSON.stringify(id)}`)
  }

  /** Fires due while it was paused are not made up for. */
  async setPaused(id: string, isPaused: boolean): Promise<void> {
    const schedule = await this.get(id)
    await this.#db.rows(`update ${this.#prefix}schedule set is_paused = $2, next_ms = $3 where id = $1`, [
      schedule.id,
      isPaused ? 1 : 0,
      nextOf(schedule, this.#now()),
    ])
  }

  async remove(id: string): Promise<void> {
    const schedule = await this.get(id)
    await this.#db.transaction(async (rows) => {
      await rows(`delete from ${this.#prefix}schedule_fire where schedule_id = $1`, [schedule.id])
      await rows(`delete from ${this.#prefix}schedule where id = $1`, [schedule.id])
    })
  }

  async due(nowMs: number): Promise<Schedule[]> {
    const found = `select * from ${this.#prefix}schedule where is_paused = 0 and next_ms <= $1 order by next_ms limit 100`
    return (await this.#db.rows(found, [nowMs])).map(toSchedule)
  }

  /** Stores the fire and sets the next time. Undefined if another server was first. */
  async claim(schedule: Schedule, outcome: FireOutcome, nowMs: number, reason?: string): Promise<Fire | undefined> {
    return await this.#db.transaction(async (rows) => {
      const [moved] = await rows(
        `update ${this.#prefix}schedule set next_ms = $3 where id = $1 and next_ms = $2 and is_paused = 0 returning id`,
        [schedule.id, schedule.nextAtMs, nextOf(schedule, nowMs)],
      )
      return moved === undefined
        ? undefined
        : await this.#addFire(rows, schedule.id, schedule.nextAtMs, outcome, reason)
    })
  }

  /** A fire on request: started by the caller, or by whichever server looks next. */
  async fireNow(schedule: Schedule, nowMs: number, outcome: 'starting' | 'queued' = 'starting'): Promise<Fire> {
    const fire = await this.#db.transaction((rows) => this.#addFire(rows, schedule.id, nowMs, outcome, 'asked for'))
    if (fire === undefined) throw new ScrapeError('E_OPTION', 'it has just been fired')
    return fire
  }

  async #addFire(
    rows: Rows,
    id: string,
    dueMs: number,
    outcome: FireOutcome,
    reason?: string,
  ): Promise<Fire | undefined> {
    const [fire] = await rows(
      `insert into ${this.#prefix}schedule_fire (schedule_id, due_ms, outcome, reason) values ($1, $2, $3, $4)
       on conflict do nothing returning *`,
      [id, dueMs, outcome, reason ?? null],
    )
    await rows(
      `delete from ${this.#prefix}schedule_fire where schedule_id = $1 and id <=
         (select id from ${this.#prefix}schedule_fire where schedule_id = $1 order by id desc limit 1 offset ${FIRES_KEPT})`,
      [id],
    )
    return fire === undefined ? undefined : toFire(fire)
  }

  /** Takes a queued fire for this server. False if another one has it. */
  async take(fire: Fire): Promise<boolean> {
    const { prefix, now } = this.#db.dialect
    const taken = await this.#db.rows(
      `update ${prefix}schedule_fire set outcome = 'starting', at_ms = ${now} where id = $1 and outcome = 'queued' returning id`,
      [fire.id],
    )
    return taken.length > 0
  }

  async settle(fire: Fire, outcome: FireOutcome, more: { runId?: string; reason?: string } = {}): Promise<void> {
    await this.#db.rows(
      `update ${this.#prefix}schedule_fire set outcome = $2, run_id = coalesce($3, run_id), reason = coalesce($4, reason)
       where id = $1`,
      [fire.id, outcome, more.runId ?? null, more.reason ?? null],
    )
  }

  /** Newest first. */
  async fires(scheduleId: string, limit = 20): Promise<Fire[]> {
    const rows = await this.#db.rows(
      `select * from ${this.#prefix}schedule_fire where schedule_id = $1 order by id desc limit $2`,
      [scheduleId, limit],
    )
    return rows.map(toFire)
  }

  /** Fires that wait, or whose server may have died before their run was known. */
  async open(): Promise<Fire[]> {
    const rows = await this.#db.rows(
      `select * from ${this.#prefix}schedule_fire where outcome in ('queued', 'starting') order by id limit 100`,
      [],
    )
    return rows.map(toFire)
  }
}

function nextOf({ cron, tz, jitterMs }: Pick<Schedule, 'cron' | 'tz' | 'jitterMs'>, afterMs: number): number {
  const [next] = nextTimes(cron, tz, afterMs, 1)
  return (next ?? Number.MAX_SAFE_INTEGER) + Math.floor(Math.random() * jitterMs)
}

const columnsOf = ({ name, scraper, args, limits, cron, tz, overlap, jitterMs, isCatchUp, region }: NewSchedule) => [
  name,
  scraper,
  JSON.stringify(args),
  JSON.stringify(limits),
  cron,
  tz,
  overlap,
  jitterMs,
  isCatchUp ? 1 : 0,
  region ?? null,
]

function toSchedule(row: Row): Schedule {
  return {
    id: String(row['id']),
    name: String(row['name']),
    scraper: String(row['scraper']),
    args: JSON.parse(String(row['args'])),
    limits: JSON.parse(String(row['limits'])),
    cron: String(row['cron']),
    tz: String(row['tz']),
    overlap: row['overlap'] as Schedule['overlap'],
    jitterMs: Number(row['jitter_ms']),
    isCatchUp: Number(row['is_catch_up']) === 1,
    isPaused: Number(row['is_paused']) === 1,
    ...(row['region'] === null ? {} : { region: String(row['region']) }),
    createdAtMs: Number(row['created_ms']),
    nextAtMs: Number(row['next_ms']),
  }
}

function toFire(row: Row): Fire {
  return {
    id: Number(row['id']),
    scheduleId: String(row['schedule_id']),
    dueAtMs: Number(row['due_ms']),
    atMs: Number(row['at_ms']),
    outcome: row['outcome'] as FireOutcome,
    runId: row['run_id'] === null ? undefined : String(row['run_id']),
    reason: row['reason'] === null ? undefined : String(row['reason']),
  }
}
