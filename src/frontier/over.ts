/** A frontier that wraps another: everything is passed to the inner one, except what is overridden here. */
import type { Frontier } from './contract.ts'

export function over(inner: Frontier, own: Partial<Frontier>): Frontier {
  return {
    engine: inner.engine,
    can: inner.can,
    dead: inner.dead,
    items: inner.items,
    add: (tasks) => inner.add(tasks),
    claim: (request) => inner.claim(request),
    extend: (leases, leaseMs) => inner.extend(leases, leaseMs),
    commit: (outcomes) => inner.commit(outcomes),
    sweep: (options) => inner.sweep(options),
    stats: () => inner.stats(),
    nextDueMs: () => inner.nextDueMs(),
    pause: (reason) => inner.pause(reason),
    resume: () => inner.resume(),
    getMeta: (name) => inner.getMeta(name),
    setMeta: (name, value) => inner.setMeta(name, value),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    ...own,
  }
}
