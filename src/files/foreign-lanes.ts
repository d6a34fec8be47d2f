/**
 * Kept files that wait for another machine. As long as none of them is done and nothing is heard of it, nobody may be there to do
 * it: that is said, and after a generous time they are given up, so that the run can end.
 *
 *   waits ──a minute──▶ said ──10 min──▶ dead letters
 *     ▲                  │
 *     └─ a heartbeat · a claim · another number · a pause
 */
import type { EventBus } from '../core/events.ts'
import type { Frontier } from '../frontier/contract.ts'
import { hostOfSign, signOf, spoolOf } from './lane-life.ts'
import { loseFiles } from './lose-files.ts'

interface ForeignLanesParts {
  frontier: Frontier
  bus: EventBus
  workerId: string
  /** How long a machine may be silent, so that one that is started again finds its files. Default 10 min. */
  silentMsMax?: number | undefined
  now?: () => number
}

interface LookedAt {
  lanes: readonly (readonly [lane: string, count: { pending: number; claimed: number }])[]
  isPaused: boolean
}

interface Watched {
  pending: number
  sign: string | undefined
  /** Of the time it was watched. */
  stillMs: number
  saidAtMs: number
}

const SILENT_MS_MAX = 600_000
const SAY_MS = 60_000
const LOOK_MS_MIN = 1_000
/** After a longer gap between two looks (a queue that was away, a laptop that slept) the others had no chance to be heard either. */
const GAP_MS_MAX = 30_000

export class ForeignLanes {
  readonly #parts: ForeignLanesParts
  readonly #silentMsMax: number
  readonly #now: () => number
  #watched = new Map<string, Watched>()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #isLooking = false

  constructor(parts: ForeignLanesParts) {
    this.#parts = parts
    this.#silentMsMax = parts.silentMsMax ?? SILENT_MS_MAX
    this.#now = parts.now ?? (() => performance.now())
  }

  /** Of each look at the frontier: the lanes of others that hold anything. */
  async look(found: LookedAt): Promise<void> {
    const nowMs = this.#now()
    const passedMs = nowMs - this.#lookedAtMs
    if (this.#isLooking || passedMs < Math.min(LOOK_MS_MIN, this.#silentMsMax)) return
    this.#isLooking = true
    this.#lookedAtMs = nowMs
    try {
      const watched = new Map<string, Watched>()
      for (const [lane, count] of found.lanes)
        watched.set(lane, await this.#watch(lane, count, found.isPaused ? undefined : Math.min(passedMs, GAP_MS_MAX)))
      this.#watched = watched
    } finally {
      this.#isLooking = false
    }
  }

  /** `passedMs` undefined: nobody may work now, so silence says nothing. */
  async #watch(
    lane: string,
    { pending, claimed }: { pending: number; claimed: number },
    passedMs: number | undefined,
  ): Promise<Watched> {
    const sign = await signOf(this.#parts.frontier, lane)
    const before = this.#watched.get(lane)
    const isStill = before?.pending === pending && before.sign === sign && claimed === 0
    if (!isStill || passedMs === undefined) return { pending, sign, stillMs: 0, saidAtMs: 0 }
    const now = { ...before, stillMs: before.stillMs + passedMs }
    if (now.stillMs >= this.#silentMsMax) return { ...now, pending: pending - (await this.#giveUp(lane, now)) }
    if (now.stillMs - now.saidAtMs < SAY_MS) return now
    this.#say(
      `${pending} downloads of a browser wait for ${whereOf(lane, sign)}, and nothing is heard of it: start a worker on its ` +
        `spool again, or drop them. They are given up after ${minutes(this.#silentMsMax)} of silence`,
      { lane, pending },
    )
    return { ...now, saidAtMs: now.stillMs }
  }

  async #giveUp(lane: string, { sign, stillMs }: Watched): Promise<number> {
    const where = whereOf(lane, sign)
    const why = `was on ${where}, of which nothing was heard for ${minutes(stillMs)}`
    const isStillSilent = async () => (await signOf(this.#parts.frontier, lane)) === sign
    const count = await loseFiles(this.#parts, { lane, why, isStillSilent })
    if (count > 0)
      this.#say(`${count} downloads of a browser are given up: nothing is heard of ${where}`, { lane, count })
    return count
  }

  #say(message: string, extra: Record<string, string | number>): void {
    this.#parts.bus.emit({ type: 'log', level: 'warn', message, extra })
  }
}

function whereOf(lane: string, sign: string | undefined): string {
  return `the machine whose spool has the id ${spoolOf(lane)} (last seen on ${hostOfSign(sign)})`
}

function minutes(ms: number): string {
  return `${Math.round(ms / 6_000) / 10} min`
}
