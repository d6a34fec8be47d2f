/**
 * Fills the inbox from the frontier, lets manual work overtake without starving the rest, and notices when nothing is left.
 */
import type { HeldLeases } from '../core/held-leases.ts'
import { DEFAULT_LANE, isFileLane } from '../core/task.ts'
import type { ClaimRequest, Lease } from '../frontier/contract.ts'
import type { CrawlParts } from './contract.ts'
import { type Inbox, MANUAL_TURNS } from './inbox.ts'

/** Shortest and longest wait before an empty frontier is asked again when other processes may fill it. */
const POLL_MS = { min: 20, max: 500 }
const URGENT_LANES = ['manual', 'priority']

interface ClaimsParts
  extends Pick<
    CrawlParts,
    'compiled' | 'frontier' | 'claimMax' | 'workerId' | 'leaseMs' | 'concurrency' | 'isOpenEnded' | 'now'
  > {
  inbox: Inbox
  held: HeldLeases<Lease>
  onClaimed: () => void
}

/** over: nothing remains · busy: this worker still holds tasks · a number: try again after so many ms. */
type Dry = 'over' | 'busy' | number

export class Claims {
  readonly #parts: ClaimsParts
  /** All lanes but the urgent ones. */
  readonly #patientLanes: readonly string[]
  readonly #claimedAtMs = new WeakMap<Lease, number>()
  #isUnderWay = false
  /** The last claim returned only manual tasks. The next one asks for some others first, so that they are not starved. */
  #wasManual = false
  #pollMs = POLL_MS.min

  constructor(parts: ClaimsParts) {
    this.#parts = parts
    this.#patientLanes = patientLanes(parts.compiled)
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay
  }

  /** Claims tasks of any lane. False if none are available now. */
  async claim(avoidHosts: readonly string[]): Promise<boolean> {
    const max = this.#parts.claimMax()
    const avoid = avoidHosts.length > 0 ? { avoidHosts } : {}
    const others = Math.max(1, Math.ceil(max / MANUAL_TURNS))
    const gotOthers = this.#wasManual && (await this.#claim({ max: others, lanes: this.#patientLanes, ...avoid }))
    return (await this.#claim({ max, ...avoid })) || gotOthers
  }

  /** A full inbox claims nothing; manual tasks must not wait for that. */
  async claimManual(alreadyHere: number): Promise<void> {
    const max = this.#parts.concurrency - alreadyHere
    if (max > 0 && !this.#isUnderWay) await this.#claim({ max, lanes: ['manual'] })
  }

  async #claim(request: Pick<ClaimRequest, 'max' | 'avoidHosts' | 'lanes'>): Promise<boolean> {
    const { frontier, workerId, leaseMs, inbox, held, now, onClaimed } = this.#parts
    this.#isUnderWay = true
    let leases: Lease[]
    try {
      leases = await frontier.claim({ ...request, workerId, leaseMs })
    } finally {
      this.#isUnderWay = false
    }
    if (leases.length === 0) return false
    this.#pollMs = POLL_MS.min
    this.#wasManual = leases.every(({ task }) => task.lane === 'manual')
    const claimedAtMs = now()
    for (const lease of leases) {
      held.add(lease)
      this.#claimedAtMs.set(lease, claimedAtMs)
    }
    inbox.add(leases)
    onClaimed()
    return true
  }

  /** How long a task has waited in this process. */
  queueMs(lease: Lease, nowMs: number): number {
    return nowMs - (this.#claimedAtMs.get(lease) ?? nowMs)
  }

  /** Nothing to claim: over, or wait for what is due later, for our own commits, or for other workers. */
  async whenDry(holdsSome: boolean): Promise<Dry> {
    if (holdsSome) return 'busy' // a commit or a free host triggers the next claim
    const { frontier, now } = this.#parts
    const stats = await frontier.stats()
    if (stats.remaining === 0 && (await this.#isOver())) return 'over'
    const dueInMs = ((await frontier.nextDueMs()) ?? Number.POSITIVE_INFINITY) - now()
    const isAlone = !frontier.can.shared && !stats.isPaused
    const pollMs = this.#pollMs
    this.#pollMs = Math.min(POLL_MS.max, this.#pollMs * 2)
    // Due, but not for this worker (a file, for example): asking more often would not help.
    if (dueInMs <= 0) return pollMs
    return Math.max(POLL_MS.min, Math.min(dueInMs, isAlone ? POLL_MS.max : pollMs))
  }

  /** Nothing remains, and nothing was added while we checked whether more may come. */
  async #isOver(): Promise<boolean> {
    const { frontier, isOpenEnded } = this.#parts
    if (isOpenEnded === undefined) return true
    return !(await isOpenEnded()) && (await frontier.stats()).remaining === 0
  }
}

function patientLanes({ routes }: CrawlParts['compiled']): string[] {
  const own = [...routes.values()].flatMap(({ definition }) => definition.lane ?? [])
  return [...new Set([DEFAULT_LANE, ...own.filter((lane) => !URGENT_LANES.includes(lane) && !isFileLane(lane))])]
}
