/**
 * Waiting deliveries, in order per subscription: a delivery is sent only when all earlier ones are delivered or dead. The
 * exception is a test, which does not wait for failing deliveries before it. A subscription is claimed by one server at a time,
 * for as long as a request may take.
 */
import type { Row, Rows, SqlDatabase } from '../../drivers/sql.ts'
import type { Mode, RecordEvents, WebhookEvent } from './contract.ts'
import { toEvent } from './delivery-log.ts'
import { DIGEST_EVENTS_MAX, digestOf, fitting } from './payload.ts'

/** A server that is silent for this long is dead: another one takes over its subscriptions. */
const CLAIM_MS = 30_000
/** Tests are searched for only among the newest deliveries: there may be millions that cannot be delivered. */
const NEWEST_LOOKED_AT = 20

export interface Claimed {
  id: string
  name: string
  url: string
  mode: Mode
  secrets: string[]
  failingSinceMs: number | undefined
}

export interface Waiting {
  deliveryId: number
  attempts: number
  nextAtMs: number
  event: WebhookEvent
}

export interface Try {
  atMs: number
  durationMs: number
  status: number | undefined
  answer: string | undefined
  error: string | undefined
}

export class Outbox {
  readonly #db: SqlDatabase
  readonly #prefix: string
  readonly #holder: string
  readonly #record: RecordEvents

  constructor(db: SqlDatabase, { holder, record }: { holder: string; record: RecordEvents }) {
    this.#db = db
    this.#prefix = db.dialect.prefix
    this.#holder = holder
    this.#record = record
  }

  /** Unclaimed subscriptions that have something to send now, longest waiting first. */
  async due(nowMs: number, max: number): Promise<string[]> {
    const head = `select min(h.id) from ${this.#prefix}delivery h
      where h.webhook_id = w.id and h.state in ('pending', 'failed')`
    const rows = await this.#db.rows(
      `select w.id from ${this.#prefix}webhook w where w.is_active = 1 and w.claimed_until_ms <= $1 and (
         exists (select 1 from ${this.#prefix}delivery d where d.id = (${head}) and d.next_ms <= $1)
         or exists (select 1 from ${this.#prefix}digest_event g where g.webhook_id = w.id and g.due_ms <= $1)
         or exists (${this.#tests('w.id', '$1')}))
       order by w.claimed_until_ms, w.id limit $2`,
      [nowMs, max],
    )
    return rows.map((row) => String(row['id']))
  }

  /** Claims it, or extends the claim. Undefined if another server has it, or it was disabled or removed. */
  async claim(webhookId: string, nowMs: number): Promise<Claimed | undefined> {
    const [row] = await this.#db.rows(
      `update ${this.#prefix}webhook set claimed_by = $2, claimed_until_ms = $3
       where id = $1 and is_active = 1 and (claimed_until_ms <= $4 or claimed_by = $2) returning *`,
      [webhookId, this.#holder, nowMs + CLAIM_MS, nowMs],
    )
    return row === undefined ? undefined : toClaimed(row, nowMs)
  }

  async release(webhookId: string, nowMs: number): Promise<void> {
    await this.#db.rows(
      `update ${this.#prefix}webhook set claimed_by = null, claimed_until_ms = $3 where id = $1 and claimed_by = $2`,
      [webhookId, this.#holder, nowMs],
    )
  }

  /** For a server that has the database to itself: releases what a dead server held. */
  async releaseAll(): Promise<void> {
    await this.#db.rows(`update ${this.#prefix}webhook set claimed_by = null, claimed_until_ms = 0`, [])
  }

  /** A waiting test, otherwise the first unfinished delivery, whether it is due or not. */
  async head(webhookId: string, nowMs: number): Promise<Waiting | undefined> {
    const first = `select min(id) from ${this.#prefix}delivery where webhook_id = $1 and state in ('pending', 'failed')`
    const [row] = await this.#db.rows(
      `select d.id as delivery_id, d.attempts, d.next_ms, e.* from ${this.#prefix}delivery d
       join ${this.#prefix}event e on e.id = d.event_id
       where d.id = coalesce((${this.#tests('$1', '$2')} order by t.id limit 1), (${first}))`,
      [webhookId, nowMs],
    )
    if (row === undefined) return undefined
    const { delivery_id: id, attempts, next_ms: next } = row
    return { deliveryId: Number(id), attempts: Number(attempts), nextAtMs: Number(next), event: toEvent(row) }
  }

  #tests(webhookId: string, nowMs: string): string {
    return `select t.id from (select n.id, n.event_id, n.next_ms from ${this.#prefix}delivery n
        where n.webhook_id = ${webhookId} and n.state in ('pending', 'failed') order by n.id desc limit ${NEWEST_LOOKED_AT}) t
      join ${this.#prefix}event te on te.id = t.event_id
      where te.type = 'webhook.test' and t.next_ms <= ${nowMs}`
  }

  async delivered({ deliveryId }: Waiting, { id, failingSinceMs }: Claimed, tried: Try): Promise<void> {
    await this.#db.transaction(async (rows) => {
      await this.#settle(rows, deliveryId, 'delivered', tried)
      if (failingSinceMs !== undefined)
        await rows(`update ${this.#prefix}webhook set failing_since_ms = null where id = $1`, [id])
    })
  }

  /** Without a time for the next try, the delivery is dead. */
  async failed(
    { deliveryId, event }: Waiting,
    { id }: Claimed,
    tried: Try,
    nextAtMs: number | undefined,
  ): Promise<void> {
    await this.#db.transaction(async (rows) => {
      await this.#settle(rows, deliveryId, nextAtMs === undefined ? 'dead' : 'failed', tried, nextAtMs)
      if (event.type === 'webhook.test') return // a test must not get the subscription disabled
      await rows(`update ${this.#prefix}webhook set failing_since_ms = coalesce(failing_since_ms, $2) where id = $1`, [
        id,
        tried.atMs,
      ])
    })
  }

  /** Its waiting deliveries become dead, and other subscriptions are notified. */
  async disable({ deliveryId }: Waiting, { id, name, url }: Claimed, tried: Try, reason: string): Promise<void> {
    await this.#db.transaction(async (rows) => {
      await this.#settle(rows, deliveryId, 'dead', tried)
      const turnedOff = await rows(
        `update ${this.#prefix}webhook set is_active = 0, disabled_reason = $2 where id = $1 and is_active = 1 returning id`,
        [id, reason],
      )
      if (turnedOff.length === 0) return
      const given = await rows(
        `update ${this.#prefix}delivery set state = 'dead', error = coalesce(error, $2)
         where webhook_id = $1 and state in ('pending', 'failed') returning id`,
        [id, reason],
      )
      await rows(`delete from ${this.#prefix}digest_event where webhook_id = $1`, [id])
      const data = { webhook: { id, name, url }, reason, undelivered: given.length + 1 }
      await this.#record(rows, [{ type: 'webhook.disabled', data, dedupeKey: `webhook.disabled:${id}:${tried.atMs}` }])
    })
  }

  async #settle(rows: Rows, deliveryId: number, state: string, tried: Try, nextAtMs = 0): Promise<void> {
    await rows(
      `update ${this.#prefix}delivery set state = $2, attempts = attempts + 1, next_ms = $3, last_ms = $4, duration_ms = $5,
         status = $6, answer = $7, error = $8 where id = $1 and state in ('pending', 'failed')`,
      [
        deliveryId,
        state,
        nextAtMs,
        tried.atMs,
        Math.round(tried.durationMs),
        tried.status ?? null,
        tried.answer ?? null,
        tried.error ?? null,
      ],
    )
  }

  /** Collects events whose hour or day is over into one event, as many as fit. False if there are none left. */
  async collectDigest(webhookId: string, nowMs: number): Promise<boolean> {
    return await this.#db.transaction(async (rows) => {
      const found = await rows(
        `select e.* from ${this.#prefix}digest_event g join ${this.#prefix}event e on e.id = g.event_id
         where g.webhook_id = $1 and g.due_ms <= $2 order by e.id limit ${DIGEST_EVENTS_MAX}`,
        [webhookId, nowMs],
      )
      const events = fitting(found.map(toEvent))
      const [first] = events
      if (first === undefined) return false
      await this.#record(rows, [
        { type: 'digest', webhookId, data: digestOf(events), dedupeKey: `digest:${webhookId}:${first.id}` },
      ])
      await rows(
        `delete from ${this.#prefix}digest_event where webhook_id = $1 and ${this.#db.dialect.oneOf('event_id', '$2')}`,
        [webhookId, JSON.stringify(events.map(({ id }) => id))],
      )
      return true
    })
  }
}

function toClaimed(row: Row, nowMs: number): Claimed {
  const { secret, old_secret: old, old_secret_until_ms: oldUntil, failing_since_ms: since } = row
  const secrets = [String(secret)]
  if (old !== null && Number(oldUntil) > nowMs) secrets.push(String(old))
  return {
    id: String(row['id']),
    name: String(row['name']),
    url: String(row['url']),
    mode: row['mode'] as Mode,
    secrets,
    failingSinceMs: since === null ? undefined : Number(since),
  }
}
