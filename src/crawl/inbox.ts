/**
 * Claimed tasks that wait in this process until their host may be requested, and for a browser if they need one. One queue per
 * host, served in rotation; manual tasks overtake the others, but cannot starve them.
 */

import { hostOf } from '../core/url.ts'
import type { Lease } from '../frontier/contract.ts'

/** How long a task must wait: 0 if it may start now, Infinity if that is not known. */
export type WaitMs = (host: string, needsBrowser: boolean) => number

/** While other tasks wait, one in this many turns is theirs, not the manual tasks'. */
export const MANUAL_TURNS = 8

export class Inbox {
  readonly #manual = new Queues()
  readonly #others = new Queues()
  readonly #needsBrowser: (lease: Lease) => boolean
  #turn = 0

  constructor(needsBrowser: (lease: Lease) => boolean = () => false) {
    this.#needsBrowser = needsBrowser
  }

  get size(): number {
    return this.#manual.size + this.#others.size
  }

  get manual(): number {
    return this.#manual.size
  }

  get waitingForBrowser(): number {
    return this.#manual.waitingForBrowser + this.#others.waitingForBrowser
  }

  add(leases: readonly Lease[]): void {
    for (const lease of leases) {
      const queues = lease.task.lane === 'manual' ? this.#manual : this.#others
      queues.add(lease, this.#needsBrowser(lease))
    }
  }

  /** The next task whose host may be requested now. Otherwise, how long the soonest one must wait. */
  take(waitMs: WaitMs): { lease: Lease } | { lease: undefined; waitMs: number } {
    const isOthersTurn = this.#manual.size > 0 && ++this.#turn % MANUAL_TURNS === 0
    const order = isOthersTurn ? [this.#others, this.#manual] : [this.#manual, this.#others]
    let soonestMs = Number.POSITIVE_INFINITY
    for (const queues of order) {
      const next = queues.take(waitMs)
      if (next.lease !== undefined) return next
      soonestMs = Math.min(soonestMs, next.waitMs)
    }
    return { lease: undefined, waitMs: soonestMs }
  }

  /** Removes and returns all tasks for which `isWanted` is true. */
  remove(isWanted: (lease: Lease, host: string) => boolean): Lease[] {
    return [...this.#manual.remove(isWanted), ...this.#others.remove(isWanted)]
  }

  /** Hosts with at least `min` tasks here. */
  hosts(min: number): string[] {
    const counts = new Map<string, number>()
    for (const { host, leases } of [...this.#manual, ...this.#others])
      counts.set(host, (counts.get(host) ?? 0) + leases.length)
    return [...counts].filter(([, count]) => count >= min).map(([host]) => host)
  }
}

interface Queue {
  readonly host: string
  readonly needsBrowser: boolean
  leases: Lease[]
}

class Queues implements Iterable<Queue> {
  readonly #queues = new Map<string, Queue>()
  size = 0
  waitingForBrowser = 0

  add(lease: Lease, needsBrowser: boolean): void {
    const host = hostOf(lease.task.url)
    const name = needsBrowser ? `${host} browser` : host
    const queue = this.#queues.get(name)
    if (queue === undefined) this.#queues.set(name, { host, needsBrowser, leases: [lease] })
    else queue.leases.push(lease)
    this.size++
    if (needsBrowser) this.waitingForBrowser++
  }

  take(waitMs: WaitMs): { lease: Lease } | { lease: undefined; waitMs: number } {
    let soonestMs = Number.POSITIVE_INFINITY
    for (const [name, queue] of this.#queues) {
      const queueWaitMs = waitMs(queue.host, queue.needsBrowser)
      if (queueWaitMs > 0) {
        soonestMs = Math.min(soonestMs, queueWaitMs)
        continue
      }
      const lease = queue.leases.shift()!
      this.size--
      if (queue.needsBrowser) this.waitingForBrowser--
      this.#queues.delete(name)
      if (queue.leases.length > 0) this.#queues.set(name, queue) // to the end: another host is served next
      return { lease }
    }
    return { lease: undefined, waitMs: soonestMs }
  }

  remove(isWanted: (lease: Lease, host: string) => boolean): Lease[] {
    const removed: Lease[] = []
    for (const [name, queue] of this.#queues) {
      const before = queue.leases.length
      queue.leases = queue.leases.filter((lease) => !isWanted(lease, queue.host) || !removed.push(lease))
      if (queue.needsBrowser) this.waitingForBrowser -= before - queue.leases.length
      if (queue.leases.length === 0) this.#queues.delete(name)
    }
    this.size -= removed.length
    return removed
  }

  [Symbol.iterator](): Iterator<Queue> {
    return this.#queues.values()
  }
}
