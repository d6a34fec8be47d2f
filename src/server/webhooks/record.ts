/** Stores events and the deliveries they cause, in the transaction of the change they report. */
import { hash, randomBytes } from 'node:crypto'
import type { Dialect, Row, Rows } from '../../drivers/sql.ts'
import { type EventData, isBulk, type Mode, type NewEvent, type RecordEvents, type Subscription } from './contract.ts'
import { newEventId } from './event-id.ts'
import { isWanted } from './filter.ts'

const EVENTS_AT_ONCE = 200
/** Larger payloads are too much for a receiver. */
const DATA_BYTES_MAX = 256 * 1024
const FIELD_BYTES_MAX = 1024
const DEDUPE_CHARS_MAX = 300
const HOUR_MS = 3_600_000

interface RecorderOptions {
  dialect: Dialect
  /** Called when there is something to deliver. */
  onRecorded?: () => void
  now?: () => number
}

/** Pass it the transaction's own `rows`. An event whose key is known changes nothing. */
export function eventRecorder({ dialect, onRecorded, now = Date.now }: RecorderOptions): RecordEvents {
  return async (rows, events) => {
    if (events.length === 0) return
    const wanted = await activeSubscriptions(rows, dialect)
    const told = events
      .map((event) => ({ event, to: wanted.filter((one) => isTold(event, one)) }))
      .filter(({ event, to }) => to.length > 0 || !isBulk(event.type))
    for (let at = 0; at < told.length; at += EVENTS_AT_ONCE)
      await recordSome(rows, dialect, told.slice(at, at + EVENTS_AT_ONCE), now())
    onRecorded?.()
  }
}

/** Each test is a separate event. */
export function testEvent({ id, name }: Pick<Subscription, 'id' | 'name'>): NewEvent {
  const dedupeKey = `webhook.test:${randomBytes(8).toString('hex')}`
  return { type: 'webhook.test', data: { webhook: { id, name } }, dedupeKey, webhookId: id }
}

interface Active {
  id: string
  events: string[]
  filter: Parameters<typeof isWanted>[1]['filter']
  mode: Mode
}

interface Told {
  event: NewEvent
  to: Active[]
}

function isTold(event: NewEvent, subscription: Active): boolean {
  if (event.webhookId !== undefined) return event.webhookId === subscription.id
  return isWanted(event, subscription)
}

async function activeSubscriptions(rows: Rows, { prefix }: Dialect): Promise<Active[]> {
  const found = await rows(`select id, events, filter, mode from ${prefix}webhook where is_active = 1 order by id`, [])
  return found.map((row: Row) => ({
    id: String(row['id']),
    events: JSON.parse(String(row['events'])),
    filter: JSON.parse(String(row['filter'])),
    mode: row['mode'] as Mode,
  }))
}

async function recordSome(rows: Rows, { prefix }: Dialect, told: readonly Told[], nowMs: number): Promise<void> {
  const made = told.map(({ event, to }) => ({ id: newEventId(nowMs), event, to }))
  const added = await rows(
    `insert into ${prefix}event (id, type, created_ms, data, dedupe, webhook_id)
     values ${places(made.length, 6)} on conflict do nothing returning id`,
    made.flatMap(({ id, event }) => [
      id,
      event.type,
      nowMs,
      dataText(event.data),
      dedupeText(event.dedupeKey),
      event.webhookId ?? null,
    ]),
  )
  const fresh = new Set(added.map((row) => String(row['id'])))
  const due = made
    .filter(({ id }) => fresh.has(id))
    .flatMap(({ id, event, to }) => to.map((one) => ({ id, event, one })))
  // An event meant for one subscription is sent at once, not collected in a digest.
  const isAtOnce = ({ event, one }: (typeof due)[number]) => one.mode === 'instant' || event.webhookId !== undefined
  await insertAll(rows, `${prefix}delivery (event_id, webhook_id, created_ms, next_ms)`, [
    ...due.filter(isAtOnce).map(({ id, one }) => [id, one.id, nowMs, nowMs]),
  ])
  await insertAll(rows, `${prefix}digest_event (event_id, webhook_id, due_ms)`, [
    ...due.filter((each) => !isAtOnce(each)).map(({ id, one }) => [id, one.id, endOfTime(one.mode, nowMs)]),
  ])
}

async function insertAll(rows: Rows, into: string, values: (string | number)[][]): Promise<void> {
  for (let at = 0; at < values.length; at += EVENTS_AT_ONCE) {
    const some = values.slice(at, at + EVENTS_AT_ONCE)
    await rows(`insert into ${into} values ${places(some.length, some[0]!.length)}`, some.flat())
  }
}

function places(count: number, columns: number): string {
  const row = (i: number) => `(${Array.from({ length: columns }, (_, j) => `$${i * columns + j + 1}`).join(', ')})`
  return Array.from({ length: count }, (_, i) => row(i)).join(', ')
}

/** When the current hour or day (UTC) ends. */
function endOfTime(mode: Mode, nowMs: number): number {
  const lengthMs = mode === 'daily' ? 24 * HOUR_MS : HOUR_MS
  return (Math.floor(nowMs / lengthMs) + 1) * lengthMs
}

/** Keys may contain text from a site: an index limits their length, and PostgreSQL refuses NUL. */
function dedupeText(key: string): string {
  return key.length > DEDUPE_CHARS_MAX || key.includes('\0') ? hash('sha256', key) : key
}

/** If the data is too large, only the small fields are kept, and the event says so. */
function dataText(data: EventData): string {
  const text = JSON.stringify(data)
  const bytes = Buffer.byteLength(text)
  if (bytes <= DATA_BYTES_MAX) return text
  const small = Object.entries(data)
    .filter(([, value]) => value !== undefined && JSON.stringify(value).length <= FIELD_BYTES_MAX)
    .slice(0, 50)
  return JSON.stringify({ ...Object.fromEntries(small), isTruncated: true, bytes })
}
