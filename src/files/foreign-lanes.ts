/** Kept files that wait for another machine. As long as none of them is done, nobody may be there to do it: that is said. */
import type { EventBus } from '../core/events.ts'

const SAY_MS = 60_000

interface Count {
  pending: number
  claimed: number
}

export class ForeignLanes {
  readonly #bus: EventBus
  readonly #now: () => number
  #still = new Map<string, { pending: number; sinceMs: number }>()

  constructor(bus: EventBus, now: () => number = () => performance.now()) {
    this.#bus = bus
    this.#now = now
  }

  /** Of each look at the frontier: the lanes of others that hold anything. */
  look(lanes: readonly (readonly [lane: string, count: Count])[]): void {
    const nowMs = this.#now()
    const still = new Map<string, { pending: number; sinceMs: number }>()
    for (const [lane, { pending, claimed }] of lanes) {
      const before = this.#still.get(lane)
      const isStill = before !== undefined && claimed === 0 && pending >= before.pending
      let sinceMs = isStill ? before.sinceMs : nowMs
      if (isStill && nowMs - sinceMs >= SAY_MS) {
        this.#say(lane, pending)
        sinceMs = nowMs
      }
      still.set(lane, { pending, sinceMs })
    }
    this.#still = still
  }

  #say(lane: string, pending: number): void {
    const spool = lane.slice(lane.indexOf('@') + 1)
    const message =
      `${pending} downloads of a browser wait for the machine whose spool has the id ${spool}, and nothing is heard of it: ` +
      'start a worker on its spool again, or drop them'
    this.#bus.emit({ type: 'log', level: 'warn', message, extra: { lane, pending } })
  }
}
