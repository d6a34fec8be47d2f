/** Webhooks: an event is stored together with the change it reports, and delivered, signed, until the receiver answers 2xx. */
import type { Json } from '../../core/task.ts'
import type { Rows } from '../../drivers/sql.ts'

/** Version of the payload. Receivers written for an older version ignore fields they do not know. */
export const API_VERSION = '2026-11-01'

/** Every event type. A subscription lists types or groups of types: `run.*`, `*`. */
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

/** There may be millions of these, and history keeps them anyway: they are stored only if a subscription wants them. */
export const isBulk = (type: EventType) => type.startsWith('item.') || type.startsWith('job.')

/**
 * The data of an event, for filters and receivers. `job` is the posting as it is now, `item` any other item; `before` and `after`
 * contain the fields named in `changed` and no others.
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
  /** Two events with the same key are one event: `run.finished:RUN:TIME`. */
  dedupeKey: string
  /** Sent to this subscription only, whatever its event types. */
  webhookId?: string
}

export interface WebhookEvent {
  /** UUIDv7: sorts by time. The same in every attempt; sent as the header `webhook-id`. */
  id: string
  type: EventType
  createdAtMs: number
  data: EventData
}

/** Uses the `rows` of the transaction that makes the change, so that both are stored or neither is. */
export type RecordEvents = (rows: Rows, events: readonly NewEvent[]) => Promise<void>

/** instant: each event separately · hourly, daily: all events of an hour or a day (UTC) in one delivery of type `digest`. */
export const MODES = ['instant', 'hourly', 'daily'] as const
export type Mode = (typeof MODES)[number]

/**
 * Values in a list are alternatives; all given parts must match. Conditions on jobs and items apply only to events that have one,
 * `scrapers` only to events that name one.
 */
export interface EventFilter {
  /** At least one of them is in the title, the description or any other text of the item. */
  keywords?: string[] | undefined
  companies?: string[] | undefined
  /** Part of a place as written on the board, or a country code such as `DE`. */
  locations?: string[] | undefined
  sources?: string[] | undefined
  employment_type?: string[] | undefined
  workplace?: string[] | undefined
  /** The annual pay reaches this. Postings without pay do not match. */
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
  /** Why we disabled it; undefined if it is active, or a person disabled it. */
  disabledReason: string | undefined
  /** When deliveries started to fail; undefined after a success. */
  failingSinceMs: number | undefined
}

/**
 *   pending ──2xx──► delivered
 *      │  └─else─► failed ──2xx──► delivered
 *      │             └─── the last try, or the subscription was disabled ──► dead (a refusal: the third try, a test: the first)
 *      └───────────────── the subscription was disabled ──────────────────► dead
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
  /** Undefined once it is delivered or dead. */
  nextAtMs: number | undefined
  lastAtMs: number | undefined
  /** Status code of the last answer. */
  status: number | undefined
  durationMs: number | undefined
  /** The beginning of the answer's body. */
  answer: string | undefined
  error: string | undefined
}

interface PostRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** One POST that follows no redirects and refuses private addresses. Throws `ScrapeError` if there was no answer. */
export type Post = (request: PostRequest, signal: AbortSignal) => Promise<{ status: number; body: string }>
