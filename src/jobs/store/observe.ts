/** One observation of one posting: the next state of its source, and the effect on the job. */
import { type LifecycleEvent, nextState, type Observation } from '../match/lifecycle.ts'
import type { Posting } from '../read/posting.ts'
import { postingKey } from '../read/posting.ts'
import { type Happening, type JobEntry, preferredOf, type SourceEntry, statusOf } from './entries.ts'

/** Adds an unknown posting: the first source of a new job, or another source of a known one. */
export function addSource(job: JobEntry, posting: Posting, at: Date): void {
  const isNew = job.sources.length === 0
  const twins = job.sources.filter(({ source }) => source === posting.source)
  const twinSeenAt = twins
    .map(({ state }) => state.last_seen_at)
    .sort()
    .at(-1)
  const { state, events } = nextState(null, {
    kind: 'seen',
    at,
    by: 'listing',
    posting,
    cluster: isNew ? null : job.key,
    twinSeenAt: twinSeenAt === undefined ? null : new Date(twinSeenAt),
  })
  const { source, board_token } = posting
  const entry: SourceEntry = {
    key: postingKey(posting),
    source,
    boardToken: board_token,
    job,
    state: state!,
    posting,
    stale: 'all',
  }
  job.sources.push(entry)
  // Another source of a known job is not a new job.
  const told = events.filter(({ type }) => (type === 'created') === isNew || type === 'reposted')
  settle(entry, told, { isSeen: true, wasStatus: isNew ? undefined : job.status })
}

/** A known posting was seen again. False if that changes nothing: a duplicate, or late. */
export function seeAgain(entry: SourceEntry, posting: Posting, at: Date): boolean {
  const { job, state: before } = entry
  const { state, events } = nextState(before, { kind: 'seen', at, by: 'listing', posting })
  if (state === before) return false
  const isSame = before.content.content_hash === posting.content_hash
  entry.state = state!
  entry.posting = posting
  entry.stale = isSame && entry.stale !== 'all' ? 'state' : 'all'
  settle(entry, events, { isSeen: true, wasStatus: job.status })
  return true
}

/** A posting was not seen: absent from a complete listing, or past its end. */
export function miss(entry: SourceEntry, observation: Extract<Observation, { kind: 'absent' | 'clock' }>): void {
  const { state, events } = nextState(entry.state, observation)
  if (state === entry.state) return
  entry.state = state!
  if (entry.stale === 'none') entry.stale = 'state'
  settle(entry, events, { isSeen: false, wasStatus: entry.job.status })
}

interface Settling {
  isSeen: boolean
  /** Undefined for a new job. */
  wasStatus: JobEntry['status'] | undefined
}

function settle(entry: SourceEntry, events: readonly LifecycleEvent[], { isSeen, wasStatus }: Settling): void {
  const { job, state } = entry
  job.isTouched = true
  const at = events[0]?.at ?? state.last_seen_at
  if (isSeen) countSighting(job, state.last_seen_at, wasStatus)
  job.status = statusOf(job)
  const preferred = preferredOf(job)
  const isShown = preferred === entry
  if (preferred.key !== job.preferredKey || (isShown && entry.stale === 'all')) {
    job.preferredKey = preferred.key
    job.isRewritten = true
  }
  for (const event of events) {
    const happening = happeningOf(event, entry, isShown)
    if (happening !== undefined) job.happened.push(happening)
    if (event.type === 'reposted') job.metric.reposts++
    if (event.type === 'updated') job.metric.updates++
  }
  if (wasStatus !== undefined && wasStatus !== job.status)
    job.happened.push({ type: job.status === 'active' ? 'relisted' : job.status, at, source: entry.source })
  else if (wasStatus === undefined && job.status === 'expired')
    job.happened.push({ type: 'expired', at, source: entry.source })
}

/** Changes are reported for the source that is shown; the end and return of a job depend on all its sources together. */
function happeningOf(event: LifecycleEvent, { source }: SourceEntry, isShown: boolean): Happening | undefined {
  const { type, at } = event
  switch (type) {
    case 'created':
    case 'reposted':
    case 'cluster_joined':
      return { type, at, source }
    case 'updated':
      return isShown ? { type, at, source, before: event.before, after: event.after, changed: event.fields } : undefined
    case 'salary_changed':
      return isShown
        ? { type, at, source, before: { salary: event.before }, after: { salary: event.after }, changed: ['salary'] }
        : undefined
    case 'relisted':
    case 'expired':
    case 'gone':
      return undefined
    default:
      return event satisfies never
  }
}

const DAY_MS = 86_400_000
const dayNumber = (at: string) => Math.floor(Date.parse(at) / DAY_MS)

function countSighting(job: JobEntry, at: string, wasStatus: JobEntry['status'] | undefined): void {
  job.metric.timesSeen++
  const days = dayNumber(at) - dayNumber(job.lastSeenAt)
  // The days between two sightings count, unless the job was gone in between.
  if (job.metric.daysActive === 0) job.metric.daysActive = 1
  else if (days > 0) job.metric.daysActive += wasStatus === 'active' ? days : 1
  if (at > job.lastSeenAt) job.lastSeenAt = at
}
