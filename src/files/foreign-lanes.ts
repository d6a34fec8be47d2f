/**
 * Kept files that wait for another machine. If none of them is processed and the machine gives no sign of life, it may be gone:
 * that is reported, and after a generous time the files are given up, so that the run can end.
 *
 *   waiting ──a minute──▶ reported ──10 min──▶ dead letters
 *     ▲                     │
 *     └─ a heartbeat · a claim · a different number · a pause
 */
import type { EventBus } from '../core/events.ts'
import type { Frontier } from '../frontier/contract.ts'
import { hostOfSign, signOf, spoolOf } from './lane-life.ts'
import { loseFiles } from './lose-files.ts'

interface ForeignLanesParts {
  frontier: Frontier
  bus: EventBus
  workerId: string
  /** How long a machine may be silent; a restarted one must still find its files. Default 10 min. */
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
  /** Silent time, as observed by us. */
  stillMs: number
  saidAtMs: number
}

const SILENT_MS_MAX = 600_000
const SAY_MS = 60_000
const LOOK_MS_MIN = 1_000
/**
 * After a longer gap between two looks (a queue that was down, a laptop that slept), the others had no chance to give a sign
 * either.
 */
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

  /** Called for each look at the frontier, with the lanes of other machines that hold tasks. */
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

  /** `passedMs` undefined: no worker may work now, so silence means nothing. */
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
