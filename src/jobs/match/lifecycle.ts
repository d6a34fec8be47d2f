/**
 * The life cycle of a posting, as a pure function of what is observed.
 *
 *   (new) ──seen──▶ active ──valid_through past──▶ expired
 *                    │  ▲                            │
 *     absent from a  │  └────────── seen again ──────┤
 *     whole listing, ▼            (relisted)         │
 *     or 404/410    gone ◀───────────────────────────┘
 *
 * Two sources can report `gone`: a listing that was read to its end, and the posting's own page. Failures prove nothing: a
 * failed, truncated or suspiciously empty listing, a block and a timeout leave everything as it was.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../read/identity.ts'
import type { Posting } from '../read/posting.ts'
import type { CycleVerdict, ListingKind } from './listing-cycle.ts'

/** Fields whose changes are reported with their values. For the description, only the fact of a change is reported. */
const TOLD = ['title', 'locations', 'salary', 'employment_type', 'workplace', 'apply_url'] as const
type Told = (typeof TOLD)[number]

export interface PostingState {
  status: 'active' | 'expired' | 'gone'
  gone_by: 'listing' | 'detail' | null
  /** ISO 8601. */
  first_seen_at: string
  last_seen_at: string
  /** Number of complete listings in a row without it, and the time of the last one. */
  missing_count: number
  missed_at: string | null
  /** Odd client errors from its own page, in a row. */
  strikes: number
  cluster: string | null
  content: Pick<Posting, Told | 'content_hash' | 'valid_through' | 'date_posted'> & { description_hash: string }
}

export type Observation =
  | {
      kind: 'seen'
      at: Date
      by: 'listing' | 'detail'
      posting: Posting
      /** Cluster of the job, if it shares one with other postings. */
      cluster?: string | null
      /** When the same job was last seen on this source under another id. */
      twinSeenAt?: Date | null
    }
  | { kind: 'absent'; at: Date; listing: ListingKind; cycle: CycleVerdict }
  /** The answer of its own page; `closed` if the platform says so explicitly. */
  | { kind: 'detail'; at: Date; answer: number | 'closed' | 'timeout' | 'empty' }
  /** Time has passed. */
  | { kind: 'clock'; at: Date }

export type LifecycleEvent =
  | { type: 'created' | 'reposted' | 'relisted' | 'expired'; at: string }
  | { type: 'gone'; at: string; by: 'listing' | 'detail' }
  | { type: 'updated'; at: string; fields: string[]; before: Partial<Posting>; after: Partial<Posting> }
  | { type: 'salary_changed'; at: string; before: Posting['salary']; after: Posting['salary'] }
  | { type: 'cluster_joined'; at: string; cluster: string }

interface Step {
  /** Null: never seen, so there is nothing to store. */
  state: PostingState | null
  events: LifecycleEvent[]
}

/** An API or a sitemap is complete by nature; an HTML list may change order while it is being read. */
const GONE_AFTER: Readonly<Record<ListingKind, number>> = { api: 1, sitemap: 1, html: 3 }
const STRIKES_MAX = 3
const REPOST_GAP_MS = 14 * 86_400_000
const DAY_MS = 86_400_000

/** Duplicate or late observations change nothing. */
export function nextState(previous: PostingState | null, observation: Observation): Step {
  if (observation.kind === 'seen') return previous === null ? created(observation) : seenAgain(previous, observation)
  if (previous === null || observation.at.toISOString() <= previous.last_seen_at) return { state: previous, events: [] }
  switch (observation.kind) {
    case 'absent':
      return absent(previous, observation)
    case 'detail':
      return answered(previous, observation)
    case 'clock':
      return aged(previous, observation.at)
    default:
      return observation satisfies never
  }
}

type Seen = Extract<Observation, { kind: 'seen' }>

function created({ at, posting, cluster = null, twinSeenAt }: Seen): Step {
  const now = at.toISOString()
  const isExpired = isPast(posting.valid_through, at)
  const isRepost =
    twinSeenAt !== null && twinSeenAt !== undefined && at.getTime() - twinSeenAt.getTime() > REPOST_GAP_MS
  const events: LifecycleEvent[] = [{ type: 'created', at: now }]
  if (isRepost) events.push({ type: 'reposted', at: now })
  if (isExpired) events.push({ type: 'expired', at: now })
  if (cluster !== null) events.push({ type: 'cluster_joined', at: now, cluster })
  const state: PostingState = {
    status: isExpired ? 'expired' : 'active',
    gone_by: null,
    first_seen_at: now,
    last_seen_at: now,
    missing_count: 0,
    missed_at: null,
    strikes: 0,
    cluster,
    content: contentOf(posting),
  }
  return { state, events }
}

function seenAgain(previous: PostingState, { at, by, posting, cluster }: Seen): Step {
  const now = at.toISOString()
  const isOld = now <= previous.last_seen_at || (previous.missed_at !== null && now < previous.missed_at)
  // A list may show a posting for days after its page is gone; only the page itself can bring it back.
  const isStale = previous.gone_by === 'detail' && by === 'listing'
  if (isOld || isStale) return { state: previous, events: [] }
  const isExpired = isPast(posting.valid_through, at)
  const events: LifecycleEvent[] = []
  if (previous.status !== 'active' && !isExpired) events.push({ type: 'relisted', at: now })
  if (previous.status !== 'expired' && isExpired) events.push({ type: 'expired', at: now })
  if (isReposted(previous.content.date_posted, posting)) events.push({ type: 'reposted', at: now })
  const content = contentOf(posting)
  if (content.content_hash !== previous.content.content_hash) events.push(...changes(previous.content, content, now))
  const joined = cluster ?? previous.cluster
  if (joined !== null && joined !== previous.cluster) events.push({ type: 'cluster_joined', at: now, cluster: joined })
  const state: PostingState = {
    ...previous,
    status: isExpired ? 'expired' : 'active',
    gone_by: null,
    last_seen_at: now,
    missing_count: 0,
    missed_at: null,
    strikes: 0,
    cluster: joined,
    content,
  }
  return { state, events }
}

function absent(previous: PostingState, { at, listing, cycle }: Extract<Observation, { kind: 'absent' }>): Step {
  const now = at.toISOString()
  const isCounted = previous.missed_at !== null && now <= previous.missed_at
  if (cycle !== 'conclusive' || isCounted || previous.status === 'gone') return { state: previous, events: [] }
  const state = { ...previous, missing_count: previous.missing_count + 1, missed_at: now }
  return state.missing_count >= GONE_AFTER[listing] ? gone(state, 'listing', now) : { state, events: [] }
}

/** 401, 403, 408, 425, 429 and every 5xx are transient problems and say nothing about the posting. */
const TRANSIENT = new Set([401, 403, 408, 425, 429])

function answered(previous: PostingState, { at, answer }: Extract<Observation, { kind: 'detail' }>): Step {
  if (previous.status === 'gone') return { state: previous, events: [] }
  if (answer === 404 || answer === 410 || answer === 'closed') return gone(previous, 'detail', at.toISOString())
  const isStrike = typeof answer === 'number' && answer >= 400 && answer < 500 && !TRANSIENT.has(answer)
  if (!isStrike) return { state: previous, events: [] }
  const state = { ...previous, strikes: previous.strikes + 1 }
  return state.strikes >= STRIKES_MAX ? gone(state, 'detail', at.toISOString()) : { state, events: [] }
}

function aged(previous: PostingState, at: Date): Step {
  if (previous.status !== 'active' || !isPast(previous.content.valid_through, at))
    return { state: previous, events: [] }
  return { state: { ...previous, status: 'expired' }, events: [{ type: 'expired', at: at.toISOString() }] }
}

function gone(state: PostingState, by: 'listing' | 'detail', at: string): Step {
  return { state: { ...state, status: 'gone', gone_by: by }, events: [{ type: 'gone', at, by }] }
}

/** A date without a time is valid until that day ends in UTC. */
function isPast(validThrough: string | null, at: Date): boolean {
  if (validThrough === null) return false
  const endMs = Date.parse(validThrough) + (validThrough.length === 10 ? DAY_MS : 0)
  return endMs < at.getTime()
}

/** The same id with a much newer date means a repost. "30+ days ago" moves with the clock and proves nothing. */
function isReposted(before: string | null, { date_posted, date_posted_precision }: Posting): boolean {
  if (before === null || date_posted === null || date_posted_precision === 'relative') return false
  return Date.parse(date_posted) - Date.parse(before) > REPOST_GAP_MS
}

function contentOf(posting: Posting): PostingState['content'] {
  const { title, locations, salary, employment_type, workplace, apply_url, content_hash, valid_through, date_posted } =
    posting
  const words = posting.description_text?.replace(/\s+/g, ' ').trim() ?? ''
  const description_hash = hash('sha256', words, 'hex')
  return {
    title,
    locations,
    salary,
    employment_type,
    workplace,
    apply_url,
    content_hash,
    valid_through,
    date_posted,
    description_hash,
  }
}

function changes(before: PostingState['content'], after: PostingState['content'], at: string): LifecycleEvent[] {
  const fields = TOLD.filter((field) => canonicalJson(before[field]) !== canonicalJson(after[field]))
  const pick = (content: PostingState['content']): Partial<Posting> =>
    Object.fromEntries(fields.map((field) => [field, content[field]]))
  const isDescription = before.description_hash !== after.description_hash
  const updated: LifecycleEvent = {
    type: 'updated',
    at,
    fields: isDescription ? [...fields, 'description_text'] : fields,
    before: pick(before),
    after: pick(after),
  }
  if (!fields.includes('salary')) return [updated]
  return [updated, { type: 'salary_changed', at, before: before.salary, after: after.salary }]
}
