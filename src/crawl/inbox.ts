/** Claimed tasks waiting in this process for their host's turn: one queue per host, served in rotation. */

import { hostOf } from '../core/url.ts'
import type { Lease } from '../frontier/contract.ts'

export class Inbox {
  readonly #queues = new Map<string, Lease[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(leases: readonly Lease[]): void {
    for (const lease of leases) {
      const host = hostOf(lease.task.url)
      const queue = this.#queues.get(host)
      if (queue === undefined) this.#queues.set(host, [lease])
      else queue.push(lease)
    }
    this.#size += leases.length
  }

  /** The next task whose host may be asked now. Also tells how long the soonest of the others must wait. */
  take(waitMs: (host: string) => number): { lease: Lease } | { lease: undefined; waitMs: number } {
    let soonestMs = Number.POSITIVE_INFINITY
    for (const [host, queue] of this.#queues) {
      const hostWaitMs = waitMs(host)
      if (hostWaitMs > 0) {
        soonestMs = Math.min(soonestMs, hostWaitMs)
        continue
      }
      const lease = queue.shift()!
      this.#size--
      this.#queues.delete(host)
      if (queue.length > 0) this.#queues.set(host, queue) // to the end: the next one served is another host
      return { lease }
    }
    return { lease: undefined, waitMs: soonestMs }
  }

  /** Takes out all tasks for which `isWanted` is true. */
  remove(isWanted: (lease: Lease, host: string) => boolean): Lease[] {
    const removed: Lease[] = []
    for (const [host, queue] of this.#queues) {
      const kept = queue.filter((lease) => !isWanted(lease, host) || !removed.push(lease))
      if (kept.length === 0) this.#queues.delete(host)
      else if (kept.length < queue.length) this.#queues.set(host, kept)
    }
    this.#size -= removed.length
    return removed
  }

  /** Hosts with at least `min` tasks here. */
  hosts(min: number): string[] {
    return [...this.#queues].filter(([, queue]) => queue.length >= min).map(([host]) => host)
  }
}
