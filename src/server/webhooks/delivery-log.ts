/** The log of deliveries: listing them, and redelivering. */
import { ScrapeError } from '../../core/errors.ts'
import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import type { Delivery, DeliveryState, EventType, WebhookEvent } from './contract.ts'

export class DeliveryLog {
  readonly #db: SqlDatabase
  readonly #prefix: string

  constructor(db: SqlDatabase) {
    this.#db = db
    this.#prefix = db.dialect.prefix
  }

  /** Newest first, starting before the id `before`. */
  async deliveries(webhookId: string, { before, max }: { before?: number; max: number }): Promise<Delivery[]> {
    const rows = await this.#db.rows(
      `select d.*, e.type from ${this.#prefix}delivery d join ${this.#prefix}event e on e.id = d.event_id
       where d.webhook_id = $1 and d.id < $2 order by d.id desc limit $3`,
      [webhookId, before ?? Number.MAX_SAFE_INTEGER, max],
    )
    return rows.map(toDelivery)
  }

  async delivery(id: number): Promise<Delivery | undefined> {
    const [row] = await this.#db.rows(
      `select d.*, e.type from ${this.#prefix}delivery d join ${this.#prefix}event e on e.id = d.event_id where d.id = $1`,
      [id],
    )
    return row === undefined ? undefined : toDelivery(row)
  }

  /** Newest first, without events meant for a single subscription. */
  async events({ before, max, type }: { before?: string; max: number; type?: string }): Promise<WebhookEvent[]> {
    const rows = await this.#db.rows(
      `select * from ${this.#prefix}event where webhook_id is null and (cast($1 as text) is null or id < $1)
       and (cast($2 as text) is null or type = $2) order by id desc limit $3`,
      [before ?? null, type ?? null, max],
    )
    return rows.map(toEvent)
  }

  /** Sends the same event again as a new delivery. Throws `E_DELIVERY_NOT_FOUND`. */
  async redeliver(id: number, nowMs: number): Promise<Delivery> {
    const [row] = await this.#db.rows(
      `insert into ${this.#prefix}delivery (webhook_id, event_id, created_ms, next_ms)
       select d.webhook_id, d.event_id, cast($2 as bigint), cast($2 as bigint) from ${this.#prefix}delivery d
       where d.id = $1 returning id`,
      [id, nowMs],
    )
    const made = row === undefined ? undefined : await this.delivery(Number(row['id']))
    if (made === undefined) throw new ScrapeError('E_DELIVERY_NOT_FOUND', `no delivery ${id}`)
    return made
  }
}

export function toEvent(row: Row): WebhookEvent {
  return {
    id: String(row['id']),
    type: row['type'] as EventType,
    createdAtMs: Number(row['created_ms']),
    data: JSON.parse(String(row['data'])),
  }
}

const number = (value: unknown) => (value === null ? undefined : Number(value))
const text = (value: unknown) => (value === null ? undefined : String(value))

function toDelivery(row: Row): Delivery {
  const state = row['state'] as DeliveryState
  return {
    id: Number(row['id']),
    webhookId: String(row['webhook_id']),
    eventId: String(row['event_id']),
    type: row['type'] as EventType,
    state,
    attempts: Number(row['attempts']),
    createdAtMs: Number(row['created_ms']),
    nextAtMs: state === 'pending' || state === 'failed' ? Number(row['next_ms']) : undefined,
    lastAtMs: number(row['last_ms']),
    status: number(row['status']),
    durationMs: number(row['duration_ms']),
    answer: text(row['answer']),
    error: text(row['error']),
  }
}
