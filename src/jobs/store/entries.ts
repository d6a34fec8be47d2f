/** A job and its sources as they are in memory while a batch is worked in. */
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
  /** Undefined as long as nobody needed it. */
  posting: Posting | undefined
  /** What is in the database is out of date: all of it, its state, or nothing. */
  stale: 'all' | 'state' | 'none'
}

export interface JobEntry {
  /** Of its first source. */
  readonly key: string
  /** Undefined until it is written. */
  id: number | undefined
  readonly sources: SourceEntry[]
  status: PostingState['status']
  /** Of the source that is shown for it. */
  preferredKey: string | undefined
  readonly firstSeenAt: string
  lastSeenAt: string
  facts: JobFacts
  readonly metric: JobMetric
  /** What is shown for it is another posting, or another text. */
  isRewritten: boolean
  isTouched: boolean
  readonly happened: Happening[]
}

/** What a job is counted by. */
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

/** A job is as alive as the most alive of its sources. */
export function statusOf({ sources }: JobEntry): PostingState['status'] {
  return sources.map(({ state }) => state.status).sort((a, b) => ORDER[a] - ORDER[b])[0] ?? 'gone'
}

/** The one that is shown: alive before gone, then the employer's own board, then whoever came first. */
export function preferredOf({ sources }: JobEntry): SourceEntry {
  return sources.toSorted(
    (a, b) =>
      ORDER[a.state.status] - ORDER[b.state.status] ||
      rankOf(a) - rankOf(b) ||
      (a.state.first_seen_at < b.state.first_seen_at ? -1 : a.state.first_seen_at > b.state.first_seen_at ? 1 : 0) ||
      (a.key < b.key ? -1 : 1),
  )[0]!
}
