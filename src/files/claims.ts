/** Claims file tasks: how many, from which lanes, and when an empty lane is polled again. */
import { FILES_LANE, type Task } from '../core/task.ts'
import { hostOf } from '../core/url.ts'
import type { RateLimit } from '../fetch/contract.ts'
import type { ClaimRequest, Frontier, Lease } from '../frontier/contract.ts'
import type { FilePool } from './contract.ts'

interface FileClaimsParts {
  frontier: Pick<Frontier, 'claim'>
  pool: Pick<FilePool, 'capacity'>
  rateLimit: Pick<RateLimit, 'busyHosts'>
  workerId: string
  leaseMs: number
  pinnedLanes: () => readonly string[]
  takesShared: boolean
}

/** What the loop has already claimed. */
interface HeldFiles {
  /** Leases that wait for their host. */
  waiting(): readonly Lease[]
  /** Leases that a job is working on. */
  readonly jobs: ReadonlyMap<Lease, unknown>
  /** In how many milliseconds its host has a slot for another file. */
  hostWaitMs(lease: Lease): number
}

/** Minimum and maximum wait before an empty lane is polled again. */
export const POLL_MS = { min: 20, max: 1000 }
/** Pages that add tasks may have requested files, but most add pages, so they trigger a poll no more often than this. */
const ADDED_MS = 100

export class FileClaims {
  readonly #parts: FileClaimsParts
  readonly #held: HeldFiles
  #isClaiming = false
  /** Monotonic times of the next poll and of the last one. */
  #claimAtMs = 0
  #claimedAtMs = Number.NEGATIVE_INFINITY
  #pollMs = POLL_MS.min

  constructor(parts: FileClaimsParts, held: HeldFiles) {
    this.#parts = parts
    this.#held = held
  }

  /** 0 or less when it is time. */
  get dueInMs(): number {
    return this.#claimAtMs - performance.now()
  }

  /** False while a claim is in progress, or if more tasks would only wait. */
  get canClaim(): boolean {
    if (this.#isClaiming) return false
    const { pinned, shared } = this.#room()
    return shared > 0 || (pinned > 0 && this.#parts.pinnedLanes().length > 0)
  }

  /** Passes each lease to `take` as it arrives. */
  async claim(take: (lease: Lease) => void): Promise<void> {
    const { frontier, workerId, leaseMs, pinnedLanes, rateLimit } = this.#parts
    this.#isClaiming = true
    this.#claimAtMs = Number.POSITIVE_INFINITY // events in the meantime may make it sooner again
    this.#claimedAtMs = performance.now()
    let isDry = true
    const claim = async (max: number, more: Pick<ClaimRequest, 'lanes' | 'avoidHosts'>) => {
      const leases = max > 0 ? await frontier.claim({ max, workerId, leaseMs, ...more }) : []
      for (const lease of leases) take(lease)
      if (leases.length > 0) isDry = false
    }
    try {
      const lanes = pinnedLanes()
      if (lanes.length > 0) await claim(this.#room().pinned, { lanes })
      const avoidHosts = [...new Set([...this.#takenHosts(), ...rateLimit.busyHosts()])]
      await claim(this.#room().shared, { lanes: [FILES_LANE], ...(avoidHosts.length > 0 ? { avoidHosts } : {}) })
    } finally {
      this.#isClaiming = false
    }
    this.#pollMs = isDry ? Math.min(POLL_MS.max, this.#pollMs * 2) : POLL_MS.min
    this.#claimAtMs = Math.min(this.#claimAtMs, isDry ? performance.now() + this.#pollMs : 0)
  }

  /** The pool has room for more. */
  onRoom(): void {
    this.#claimAtMs = 0
  }

  /** A lane may have new tasks. */
  onNews(): void {
    this.#pollMs = POLL_MS.min
    this.#claimAtMs = 0
  }

  /** Pages were committed that added tasks. Returns whether the lanes are now polled sooner than otherwise. */
  onAdded(): boolean {
    const atMs = this.#claimedAtMs + ADDED_MS
    if (atMs >= this.#claimAtMs) return false
    this.#claimAtMs = atMs
    return true
  }

  /**
   * How many to claim: downloads may wait for their hosts in addition to a full pool; uploads do not wait for waiting downloads.
   */
  #room(): { pinned: number; shared: number } {
    const { capacity } = this.#parts.pool
    const running = this.#held.jobs.size
    const waiting = this.#held.waiting()
    const uploads = waiting.filter(({ task }) => isUpload(task)).length
    const isWaitedFor = waiting.length >= capacity
    const shared =
      isWaitedFor || !this.#parts.takesShared ? 0 : Math.min(capacity, 2 * capacity - waiting.length - running)
    return { pinned: Math.max(0, capacity - running - uploads), shared: Math.max(0, shared) }
  }

  /** Hosts without a slot for another file, or with a file already waiting for it; their slots for pages may still be free. */
  #takenHosts(): string[] {
    const downloads = this.#held.waiting().filter(({ task }) => !isUpload(task))
    const taken = [...this.#held.jobs.keys()].filter((lease) => this.#held.hostWaitMs(lease) > 0)
    return [...downloads, ...taken].map(({ task }) => hostOf(task.url))
  }
}

export function isUpload({ data }: Task): boolean {
  return (data as { type?: string } | null)?.type === 'upload'
}
