/**
 * Fleet slots in PostgreSQL: request rates and pauses of hosts, for all workers and runs on one database.
 *
 * Only the database's clock counts. Every statement is independent and unnamed, so a connection pooler in transaction mode may be
 * in between.
 */
import { randomUUID } from 'node:crypto'
import type { QueryResultRow } from 'pg'
import { ScrapeError } from '../../core/errors.ts'
import { pg } from '../../drivers/postgres/client.ts'
import { goPlain, postgresTls } from '../../drivers/postgres/tls.ts'
import {
  type BatchedSlotsOptions,
  type HostAnswer,
  openBatchedSlots,
  SLOT_ANSWER_MS_MAX,
  type SlotAnswer,
  type SlotServer,
} from './batched-slots.ts'
import { CLEAN, LEAVE, LOOK, MEET, PAUSE, prepareSlotTables, TAKE } from './postgres-slots-sql.ts'
import { type FleetSlots, SLOT_HORIZON_MS, type SlotAsk } from './spacing.ts'

/** The part of a `pg` pool that is used. */
export interface SlotPool {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<{ rows: Row[] }>
}

interface PostgresSlotsOptions extends Omit<BatchedSlotsOptions, 'perMinute'> {
  /** Either this pool, which still belongs to the caller (including its `error` events) … */
  pool?: SlotPool
  /** … or the database to open a small pool on. */
  url?: string
}

const CONNECTIONS_MAX = 2

/** Throws `E_SERVICE` if the database cannot be reached now; later outages are tolerated. */
export async function openPostgresSlots(options: PostgresSlotsOptions): Promise<FleetSlots> {
  const own = options.pool === undefined ? openPool(options.url) : undefined
  return await openBatchedSlots(new SlotDatabase(options.pool ?? own!, async () => await own?.end()), options)
}

function openPool(url: string | undefined): SlotPool & { end(): Promise<void> } {
  if (url === undefined) throw new ScrapeError('E_OPTION', 'rate limits in PostgreSQL need a URL or a pool')
  const tls = postgresTls(url)
  const pool = new pg.Pool({
    connectionString: tls.connectionString,
    ssl: tls.ssl,
    sslnegotiation: 'postgres',
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: SLOT_ANSWER_MS_MAX,
    query_timeout: SLOT_ANSWER_MS_MAX,
    idleTimeoutMillis: 10_000,
    allowExitOnIdle: true,
  })
  pool.on('error', () => {}) // an idle connection was cut: the next query reports it
  return {
    query: (text, values) =>
      pool.query(text, values).catch((error) => {
        if (!goPlain(pool, tls, error)) throw error
        return pool.query(text, values)
      }),
    end: () => pool.end(),
  }
}

interface SlotRow {
  host: string
  wait_ms: number
  taken: number
  paused_ms: number
  workers: number
}

class SlotDatabase implements SlotServer {
  readonly name = 'the rate limits’ database'
  readonly close: () => Promise<void>
  readonly #pool: SlotPool
  readonly #workerId = randomUUID()
  #isPrepared = false

  constructor(pool: SlotPool, close: () => Promise<void>) {
    this.#pool = pool
    this.close = close
  }

  async take(asks: readonly SlotAsk[]): Promise<SlotAnswer> {
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
    const hosts = rows.map((row): [string, HostAnswer] => {
      return [row.host, { waitMs: row.wait_ms, taken: row.taken, pausedMs: row.paused_ms }]
    })
    return { hosts: new Map(hosts), workers: rows[0]?.workers }
  }

  async pause(pauses: readonly { host: string; pausedMs: number }[]): Promise<void> {
    await this.#query(PAUSE, [pauses.map(({ host }) => host), pauses.map(({ pausedMs }) => pausedMs)])
  }

  async meet(): Promise<void> {
    if (!this.#isPrepared) await prepareSlotTables(this.#pool)
    this.#isPrepared = true
    await this.#query(MEET, [this.#workerId])
  }

  async leave(): Promise<void> {
    await this.#query(LEAVE, [this.#workerId])
  }

  async clean(): Promise<void> {
    await this.#query(CLEAN)
  }

  /** A pool that is not ours may have no timeout. Later results are discarded. */
  async #query<Row extends QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    const tooLate = Promise.withResolvers<never>()
    const reject = () => tooLate.reject(new Error(`no answer within ${SLOT_ANSWER_MS_MAX} ms`))
    const timer = setTimeout(reject, SLOT_ANSWER_MS_MAX)
    try {
      return (await Promise.race([this.#pool.query<Row>(text, values), tooLate.promise])).rows
    } finally {
      clearTimeout(timer)
    }
  }
}
