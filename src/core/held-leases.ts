/**
 * The leases a loop keeps alive, from the claim until their outcome is committed to the frontier.
 *
 *   add ──▶ held ──committing──▶ settled
 *             └─ lost: another worker has it
 */
import type { EventBus } from './events.ts'

interface Leased {
  readonly token: string
  readonly task: { readonly id: string; readonly url: string }
}

interface HeldLeasesParts<L> {
  frontier: { extend(leases: readonly L[], leaseMs: number): Promise<{ lost: readonly L[] }> }
  bus: EventBus
  leaseMs: number
}

export class HeldLeases<L extends Leased> {
  readonly #parts: HeldLeasesParts<L>
  readonly #held = new Set<L>()
  readonly #committing = new Set<L>()

  constructor(parts: HeldLeasesParts<L>) {
    this.#parts = parts
  }

  get size(): number {
    return this.#held.size
  }

  add(lease: L): void {
    this.#held.add(lease)
  }

  /** The lease's commit has begun: from now on, a lease that is gone from the frontier does not count as lost. */
  committing(lease: L): void {
    this.#committing.add(lease)
  }

  settled(lease: L): void {
    this.#held.delete(lease)
    this.#committing.delete(lease)
  }

  /** Sends the heartbeat. Returns the lost leases, which are no longer held. */
  async extend(): Promise<ReadonlySet<L>> {
    const { frontier, bus, leaseMs } = this.#parts
    const lost = new Set<L>()
    if (this.#held.size === 0) return lost
    const answer = await frontier.extend([...this.#held], leaseMs)
    if (answer.lost.length === 0) return lost
    const isGone = isOneOf(answer.lost)
    for (const lease of this.#held) if (isGone(lease) && !this.#committing.has(lease)) lost.add(lease)
    const [first] = lost
    if (first === undefined) return lost
    for (const lease of lost) this.#held.delete(lease)
    bus.emit({ type: 'lease.lost', url: first.task.url, count: lost.size })
    return lost
  }
}

/** Compares by claim, not by task: a worker may hold the same task again under a new token. */
export function isOneOf(leases: readonly Leased[]): (lease: Leased) => boolean {
  if (leases.length === 0) return () => false
  const keys = new Set(leases.map(keyOf))
  return (lease) => keys.has(keyOf(lease))
}

function keyOf({ token, task }: Leased): string {
  return `${token} ${task.id}`
}
