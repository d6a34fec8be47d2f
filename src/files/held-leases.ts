/**
 * What a loop of files holds: leases from the claim until their outcome is true in the frontier.
 *
 *   add ──▶ held ──settle──▶ settled ──commit──▶ gone
 *             └─ extended while it lasts; lost when somebody else has it by now
 */
import { rm } from 'node:fs/promises'
import { type ScrapeError, toScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { notFetchedOf } from '../core/not-fetched.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import { countedOutcome, leaseKey, type Settled } from './settle-file.ts'

const COMMIT_MAX = 100

export interface HeldLeasesParts {
  frontier: Frontier
  bus: EventBus
  leaseMs: number
  /** Something came into a lane, or a place in the pool is free. */
  onNews: () => void
  /** The frontier is gone. */
  onFailure: (error: ScrapeError) => void
}

export class HeldLeases {
  readonly #parts: HeldLeasesParts
  readonly #held = new Set<Lease>()
  /** Those whose commit is on its way. */
  readonly #committing = new Set<Lease>()
  #settled: Settled[] = []
  #isCommitting = false

  constructor(parts: HeldLeasesParts) {
    this.#parts = parts
  }

  add(lease: Lease): void {
    this.#held.add(lease)
  }

  /** What is settled while one commit is on its way makes up the next. */
  async settle(settled: Settled): Promise<void> {
    this.#settled.push(settled)
    if (this.#isCommitting) return
    this.#isCommitting = true
    await null // those who settle in this turn come along
    let isNews = false
    try {
      while (this.#settled.length > 0) isNews = (await this.#commit(this.#settled.splice(0, COMMIT_MAX))) || isNews
    } catch (error) {
      this.#parts.onFailure(toScrapeError(error, 'E_SERVICE'))
    } finally {
      this.#isCommitting = false
    }
    if (isNews) this.#parts.onNews()
  }

  /** False for records alone: nothing came into a lane, and they took no place in the pool. */
  async #commit(batch: readonly Settled[]): Promise<boolean> {
    for (const { outcome } of batch) this.#committing.add(outcome.lease)
    const { stale } = await this.#parts.frontier.commit(batch.map(countedOutcome))
    const lost = new Set(stale.map(leaseKey))
    for (const settled of batch) await this.#onCommitted(settled, lost.has(leaseKey(settled.outcome.lease)))
    return batch.some(({ outcome }) => outcome.kind !== 'done' || outcome.tasks !== undefined)
  }

  async #onCommitted({ outcome: { lease, counts }, event, path }: Settled, isStale: boolean): Promise<void> {
    this.#held.delete(lease)
    this.#committing.delete(lease)
    if (event !== undefined) this.#parts.bus.emit(isStale ? { ...event, outcome: 'stale' } : event)
    const dropped = isStale ? {} : notFetchedOf(counts)
    if (Object.keys(dropped).length > 0)
      this.#parts.bus.emit({ type: 'not-fetched', url: lease.task.url, counts: dropped })
    if (path !== undefined && !isStale) await rm(path, { force: true }).catch(() => {})
  }

  /** Returns those that somebody else has by now: they are held no more. */
  async extend(): Promise<ReadonlySet<Lease>> {
    const { frontier, leaseMs, bus, onFailure } = this.#parts
    if (this.#held.size === 0) return new Set()
    try {
      const { lost } = await frontier.extend([...this.#held], leaseMs)
      const gone = new Set(lost.map(leaseKey))
      const mine = [...this.#held].filter((lease) => gone.has(leaseKey(lease)) && !this.#committing.has(lease))
      for (const lease of mine) this.#held.delete(lease)
      if (mine.length > 0) bus.emit({ type: 'lease.lost', url: mine[0]!.task.url, count: mine.length })
      return new Set(mine)
    } catch (error) {
      onFailure(toScrapeError(error, 'E_SERVICE'))
      return new Set()
    }
  }
}
