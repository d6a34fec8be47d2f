/** Webhooks: what happened is written down with the change it tells of, and delivered, signed, until it is answered with 2xx. */
import type { Json } from '../../core/task.ts'
import type { Rows } from '../../drivers/sql.ts'

/** Of the payload. A receiver that knows an older one ignores fields it does not know. */
export const API_VERSION = '2026-11-01'

/** Every type of event. A subscription names them, or groups of them: `run.*`, `*`. */
export const EVENT_TYPES = [
  'run.started',
  'run.finished',
  'run.stopped',
  'run.failed',
  'run.error_rate',
  'run.layout_changed',
  'run.schema_changed',
  'circuit.opened',
  'schedule.missed',
  'schedule.failed',
  'webhook.disabled',
  'webhook.test',
  'item.new',
  'item.changed',
  'item.gone',
  'job.created',
  'job.updated',
  'job.salary_changed',
  'job.reposted',
  'job.relisted',
  'job.expired',
  'job.gone',
  'job.cluster_joined',
  'digest',
] as const

export type EventType = (typeof EVENT_TYPES)[number]

/** Of these there may be millions, and they have a history of their own: they are kept only when somebody is to be told. */
export const isBulk = (type: EventType) => type.startsWith('item.') || type.startsWith('job.')

/**
 * What a filter and a receiver find in an event. `job` is the posting as it is now, `item` any other item; `before` and `after`
 * have the fields named in `changed` and no others.
 */
export interface EventData {
  scraper?: string
  runId?: string
  job?: Record<string, Json>
  item?: Record<string, Json>
  before?: Record<string, Json>
  after?: Record<string, Json>
  changed?: string[]
  [more: string]: Json | undefined
}

export interface NewEvent {
  type: EventType
  data: EventData
  /** The same thing told twice is one event: `run.finished:RUN:TIME`. */
  dedupeKey: string
  /** Told to this subscription only, whatever it subscribed to. */
  webhookId?: string
}

export interface WebhookEvent {
  /** UUIDv7: sorts by time. The same in every try, and the header `webhook-id`. */
  id: string
  type: EventType
  createdAtMs: number
  data: EventData
}

/** With the `rows` of the transaction that makes the change: both become true, or neither. */
export type RecordEvents = (rows: Rows, events: readonly NewEvent[]) => Promise<void>

/** instant: each event by itself · hourly, daily: all of an hour or a day (UTC) in one delivery of type `digest`. */
export const MODES = ['instant', 'hourly', 'daily'] as const
export type Mode = (typeof MODES)[number]

/**
 * Lists are alternatives, all given parts must fit. What concerns jobs and items holds for events that have one; `scrapers` for
 * those that name one.
 */
export interface EventFilter {
  /** One of them is in the title, the description or any other text of the item. */
  keywords?: string[] | undefined
  companies?: string[] | undefined
  /** Part of a place as the board writes it, or a country as `DE`. */
  locations?: string[] | undefined
  sources?: string[] | undefined
  employment_type?: string[] | undefined
  workplace?: string[] | undefined
  /** A year's pay reaches this. What names no pay does not fit. */
  salary_min?: number | undefined
  salary_currency?: string | undefined
  /** None of these words. */
  exclude?: string[] | undefined
  scrapers?: string[] | undefined
}

export interface NewSubscription {
  name: string
  url: string
  events: string[]
  filter: EventFilter
  mode: Mode
  isActive: boolean
}

export interface Subscription extends NewSubscription {
  id: string
  createdAtMs: number
  /** Why we turned it off; undefined when it is on, or a person turned it off. */
  disabledReason: string | undefined
  /** Since when nothing has been delivered. */
  failingSinceMs: number | undefined
}

/**
 *   pending ──2xx──► delivered
 *      │  └─else─► failed ──2xx──► delivered
 *      │             └─── the last try, or the subscription was turned off ──► dead (of a refusal the third, of a test the first)
 *      └───────────────── the subscription was turned off ──────────────────► dead
 */
export type DeliveryState = 'pending' | 'failed' | 'delivered' | 'dead'

export interface Delivery {
  id: number
  webhookId: string
  eventId: string
  type: EventType
  state: DeliveryState
  attempts: number
  createdAtMs: number
  /** Undefined once it is over. */
  nextAtMs: number | undefined
  lastAtMs: number | undefined
  /** Of the last answer. */
  status: number | undefined
  durationMs: number | undefined
  /** The beginning of what was answered. */
  answer: string | undefined
  error: string | undefined
}

interface PostRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** One POST that follows no redirect and goes to no private address. Throws `ScrapeError` when there was no answer. */
export type Post = (request: PostRequest, signal: AbortSignal) => Promise<{ status: number; body: string }>
