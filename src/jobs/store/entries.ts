/** A job and its sources in memory, while a batch is processed. */
import { rankOf } from '../match/cluster-of.ts'
import type { LifecycleEvent, PostingState } from '../match/lifecycle.ts'
import type { Posting, Source } from '../read/posting.ts'

export interface SourceEntry {
  /** `source:board:id` */
  readonly key: string
  readonly source: Source
  readonly boardToken: string
  readonly job: JobEntry
  state: PostingState
  /** Undefined until it is needed. */
  posting: Posting | undefined
  /** What the database row lacks: everything, only the state, or nothing. */
  stale: 'all' | 'state' | 'none'
}

export interface JobEntry {
  /** Key of its first source. */
  readonly key: string
  /** Undefined until it is stored. */
  id: number | undefined
  readonly sources: SourceEntry[]
  status: PostingState['status']
  /** Key of the source that is shown for it. */
  preferredKey: string | undefined
  readonly firstSeenAt: string
  lastSeenAt: string
  facts: JobFacts
  readonly metric: JobMetric
  /** The posting shown for it is another one, or has changed. */
  isRewritten: boolean
  isTouched: boolean
  readonly happened: Happening[]
}

/** The dimensions a job is counted by. */
interface JobFacts {
  companyId: number | null
  employmentType: string | null
  workplace: string | null
  salaryMin: number | null
  salaryMax: number | null
  currency: string | null
}

interface JobMetric {
  timesSeen: number
  daysActive: number
  reposts: number
  updates: number
}

export interface Happening {
  type: LifecycleEvent['type']
  at: string
  source: Source
  before?: unknown
  after?: unknown
  changed?: readonly string[]
}

export const NO_FACTS: JobFacts = {
  companyId: null,
  employmentType: null,
  workplace: null,
  salaryMin: null,
  salaryMax: null,
  currency: null,
}

export function newJob(key: string, at: string): JobEntry {
  return {
    key,
    id: undefined,
    sources: [],
    status: 'active',
    preferredKey: undefined,
    firstSeenAt: at,
    lastSeenAt: at,
    facts: NO_FACTS,
    metric: { timesSeen: 0, daysActive: 0, reposts: 0, updates: 0 },
    isRewritten: true,
    isTouched: true,
    happened: [],
  }
}

const ORDER = { active: 0, expired: 1, gone: 2 } as const

/** A job's status is the best status of its sources. */
export function statusOf({ sources }: JobEntry): PostingState['status'] {
  return sources.map(({ state }) => state.status).sort((a, b) => ORDER[a] - ORDER[b])[0] ?? 'gone'
}

/** The source that is shown: active before gone, then the employer's own board, then the one seen first. */
export function preferredOf({ sources }: JobEntry): SourceEntry {
  return sources.toSorted(
    (a, b) =>
      ORDER[a.state.status] - ORDER[b.state.status] ||
      rankOf(a) - rankOf(b) ||
      (a.state.first_seen_at < b.state.first_seen_at ? -1 : a.state.first_seen_at > b.state.first_seen_at ? 1 : 0) ||
      (a.key < b.key ? -1 : 1),
  )[0]!
}
