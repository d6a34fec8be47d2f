/**
 * Fleet slots in PostgreSQL: request rates and pauses of hosts for all workers on one database, over all their runs.
 *
 *   here ──a query fails──▶ away: own share of the rate, and a try every second ──one succeeds──▶ here
 *
 * Only the database's clock counts. Every statement stands alone and has no name, so a pooler in transaction mode may be in
 * between. Questions that come while one is under way travel together in the next: the busier, the fewer round trips for each.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { ScrapeError } from '../core/errors.ts'
import { createLocalSlots } from './local-slots.ts'
import { CLEAN, LEAVE, LOOK, MEET, PAUSE, prepareSlotTables, TAKE } from './postgres-slots-sql.ts'
import { type FleetSlots, SLOT_HORIZON_MS, type SlotAsk, type SlotGrant } from './spacing.ts'

/** As much of a `pg` pool as is used. */
export interface SlotPool {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<{ rows: Row[] }>
}

export interface PostgresSlotsOptions {
  /** Either this one, which stays the caller's (also its `error` events) … */
  pool?: SlotPool
  /** … or the database to open a small one on. */
  url?: string
  /** The database cannot be asked. Once, until it could be again. */
  onAway?: (error: ScrapeError) => void
  onBack?: () => void
  random?: () => number
}

/** A worker that waits looks again at least this often, so that it learns of a pause. */
const ASK_AGAIN_MS_MAX = 1000
/** The database has this long to answer; then the own share will do. */
const ANSWER_MS_MAX = 1500
const TRY_AGAIN_MS = 1000
const MEET_EVERY_MS = 5000
const CLEAN_EVERY_MS = 600_000
const CONNECTIONS_MAX = 2
/** Hosts in one statement. */
const ASKS_MAX = 200

/** Throws `E_SERVICE` when the database cannot be reached now: later it may come and go. */
export async function openPostgresSlots(options: PostgresSlotsOptions): Promise<FleetSlots> {
  const own = options.pool === undefined ? openPool(options.url) : undefined
  try {
    const slots = new PostgresSlots(options.pool ?? own!, options, async () => await own?.end())
    await slots.open()
    return slots
  } catch (error) {
    await own?.end()
    throw new ScrapeError('E_SERVICE', `the rate limits’ database does not answer: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function openPool(url: string | undefined): pg.Pool {
  if (url === undefined) throw new ScrapeError('E_OPTION', 'rate limits in PostgreSQL need a URL or a pool')
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: ANSWER_MS_MAX,
    query_timeout: ANSWER_MS_MAX,
    idleTimeoutMillis: 10_000,
    allowExitOnIdle: true,
  })
  pool.on('error', () => {}) // an idle connection was cut: the next query says so
  return pool
}

interface Question {
  ask: SlotAsk
  answer: (grant: SlotGrant) => void
}

interface SlotRow {
  host: string
  /** Before the first start, not counting `earlyMs`. */
  wait_ms: number
  taken: number
  paused_ms: number
  workers: number
}

class PostgresSlots implements FleetSlots {
  readonly #pool: SlotPool
  readonly #options: PostgresSlotsOptions
  readonly #random: () => number
  readonly #closePool: () => Promise<void>
  readonly #workerId = randomUUID()
  readonly #local = createLocalSlots()
  #questions: Question[] = []
  /** Host and local time; kept until the database has them. */
  readonly #pauses = new Map<string, number>()
  #flight: Promise<void> | undefined
  #isAway = false
  #tryAtMs = 0
  #meetAtMs = 0
  #cleanAtMs = performance.now() + CLEAN_EVERY_MS
  #isDisposed = false

  constructor(pool: SlotPool, options: PostgresSlotsOptions, closePool: () => Promise<void>) {
    this.#pool = pool
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#closePool = closePool
  }

  async open(): Promise<void> {
    await prepareSlotTables(this.#pool)
    await this.#meet()
  }

  take(ask: SlotAsk): Promise<SlotGrant> {
    const { promise, resolve } = Promise.withResolvers<SlotGrant>()
    this.#questions.push({ ask, answer: resolve })
    this.#fly()
    return promise
  }

  pause(host: string, pausedMs: number): void {
    this.#pauses.set(host, Math.max(this.#pauses.get(host) ?? 0, performance.now() + pausedMs))
    this.#fly()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    await this.#flight
    if (!this.#isAway) await this.#leave().catch(() => {}) // then the others forget us by themselves
    await this.#closePool()
  }

  /** One flight at a time; what comes meanwhile waits for the next. */
  #fly(): void {
    if (this.#flight !== undefined) return
    this.#flight = this.#round().finally(() => {
      this.#flight = undefined
      if (this.#questions.length > 0 || (this.#pauses.size > 0 && !this.#isAway && !this.#isDisposed)) this.#fly()
    })
  }

  async #round(): Promise<void> {
    await Promise.resolve() // those who ask in the same turn of the event loop come along
    const questions = this.#nextQuestions()
    if (this.#isDisposed || (this.#isAway && performance.now() < this.#tryAtMs)) {
      this.#answerAlone(questions)
      return
    }
    try {
      await this.#sendPauses()
      const rows = await this.#ask(questions.map(({ ask }) => ask))
      for (const { ask, answer } of questions) answer(this.#toGrant(ask, rows.get(ask.host)))
      if (performance.now() >= this.#meetAtMs) await this.#meet()
      if (performance.now() >= this.#cleanAtMs) await this.#clean()
      if (this.#isAway) this.#comeBack()
    } catch (error) {
      this.#tryAtMs = performance.now() + TRY_AGAIN_MS
      const wasAway = this.#isAway
      this.#isAway = true
      this.#answerAlone(questions)
      if (!wasAway) this.#options.onAway?.(awayError(error, this.#local.workers))
    }
  }

  #comeBack(): void {
    this.#isAway = false
    this.#local.forget()
    this.#options.onBack?.()
  }

  /** One of each host, because a statement changes a row only once. */
  #nextQuestions(): Question[] {
    const chosen = new Map<string, Question>()
    const later: Question[] = []
    for (const question of this.#questions) {
      if (chosen.size < ASKS_MAX && !chosen.has(question.ask.host)) chosen.set(question.ask.host, question)
      else later.push(question)
    }
    this.#questions = later
    // In one order for all workers: two statements that lock the same rows in different order would wait for each other.
    return [...chosen.values()].sort((a, b) => (a.ask.host < b.ask.host ? -1 : 1))
  }

  async #ask(asks: readonly SlotAsk[]): Promise<Map<string, SlotRow>> {
    const spaced = asks.filter(({ intervalMs }) => intervalMs > 0)
    const free = asks.filter(({ intervalMs }) => intervalMs === 0)
    const rows: SlotRow[] = []
    if (spaced.length > 0) {
      const columns = [
        spaced.map(({ host }) => host),
        spaced.map(({ intervalMs }) => intervalMs),
        spaced.map(({ earlyMs }) => earlyMs),
        spaced.map(({ count }) => count),
      ]
      rows.push(...(await this.#query<SlotRow>(TAKE, [...columns, SLOT_HORIZON_MS])))
    }
    if (free.length > 0) {
      rows.push(...(await this.#query<SlotRow>(LOOK, [free.map(({ host }) => host)])))
    }
    if (rows[0] !== undefined) this.#local.workers = Math.max(1, rows[0].workers)
    return new Map(rows.map((row) => [row.host, row]))
  }

  #toGrant({ intervalMs, earlyMs }: SlotAsk, row: SlotRow | undefined): SlotGrant {
    if (row === undefined) return { startsInMs: [], againInMs: 0, pausedMs: 0 } // a free host nobody ever paused
    const { wait_ms: waitMs, taken, paused_ms: pausedMs } = row
    const startsInMs = Array.from({ length: taken }, (_, i) => Math.max(0, waitMs + i * intervalMs - earlyMs))
    // Those who wait for the same slot should not all ask at once.
    const nearMs = waitMs - earlyMs - SLOT_HORIZON_MS + this.#random() * 100
    return { startsInMs, againInMs: Math.min(ASK_AGAIN_MS_MAX, Math.max(1, nearMs)), pausedMs }
  }

  #answerAlone(questions: readonly Question[]): void {
    for (const { ask, answer } of questions) answer(this.#local.take(ask))
  }

  async #sendPauses(): Promise<void> {
    if (this.#pauses.size === 0) return
    const sent = [...this.#pauses].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, ASKS_MAX)
    const nowMs = performance.now()
    const values = [sent.map(([host]) => host), sent.map(([, untilMs]) => Math.max(0, untilMs - nowMs))]
    await this.#query(PAUSE, values)
    for (const [host, untilMs] of sent) if (this.#pauses.get(host) === untilMs) this.#pauses.delete(host)
  }

  /** Says that we are there: the others count us, for the day nobody can be asked. */
  async #meet(): Promise<void> {
    await this.#query(MEET, [this.#workerId])
    this.#meetAtMs = performance.now() + MEET_EVERY_MS
  }

  async #leave(): Promise<void> {
    await this.#sendPauses()
    await this.#query(LEAVE, [this.#workerId])
  }

  /** A pool that is not ours may have no limit of its own. What comes later than that is void. */
  async #query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    const tooLate = Promise.withResolvers<never>()
    const reject = () => tooLate.reject(new Error(`no answer within ${ANSWER_MS_MAX} ms`))
    const timer = setTimeout(reject, ANSWER_MS_MAX)
    try {
      return (await Promise.race([this.#pool.query<Row>(text, values), tooLate.promise])).rows
    } finally {
      clearTimeout(timer)
    }
  }

  async #clean(): Promise<void> {
    this.#cleanAtMs = performance.now() + CLEAN_EVERY_MS
    await this.#query(CLEAN)
  }
}

function awayError(cause: unknown, workers: number): ScrapeError {
  const reason = cause instanceof Error && cause.message !== '' ? cause.message : String((cause as NodeJS.ErrnoException)?.code) // biome-ignore format: one line reads better
  const message = `the rate limits’ database does not answer (${reason}); this worker keeps to 1/${workers} of each host’s rate`
  return new ScrapeError('E_SERVICE', message, { cause })
}
