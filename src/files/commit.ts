/** Commits the outcomes of file tasks, in batches. */
import { rm } from 'node:fs/promises'
import { type ScrapeError, toScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { type HeldLeases, isOneOf } from '../core/held-leases.ts'
import { notFetchedOf } from '../core/not-fetched.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import { countedOutcome, type Settled } from './settle-file.ts'

const COMMIT_MAX = 100

interface FileCommitterParts {
  frontier: Frontier
  bus: EventBus
  held: HeldLeases<Lease>
  /** A lane has new tasks, or the pool has room. */
  onNews: () => void
  /** The frontier is gone. */
  onFailure: (error: ScrapeError) => void
}

export class FileCommitter {
  readonly #parts: FileCommitterParts
  #settled: Settled[] = []
  #isCommitting = false

  constructor(parts: FileCommitterParts) {
    this.#parts = parts
  }

  /** Outcomes settled while one commit is in flight form the next. */
  async settle(settled: Settled): Promise<void> {
    this.#settled.push(settled)
    if (this.#isCommitting) return
    this.#isCommitting = true
    await null // include those settled in the same tick
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

  /** False for records alone: no lane got new tasks, and they took no place in the pool. */
  async #commit(batch: readonly Settled[]): Promise<boolean> {
    const { frontier, held } = this.#parts
    for (const { outcome } of batch) held.committing(outcome.lease)
    const { stale } = await frontier.commit(batch.map(countedOutcome))
    const isStale = isOneOf(stale)
    for (const settled of batch) await this.#onCommitted(settled, isStale(settled.outcome.lease))
    return batch.some(({ outcome }) => outcome.kind !== 'done' || outcome.tasks !== undefined)
  }

  async #onCommitted({ outcome: { lease, counts }, event, path }: Settled, isStale: boolean): Promise<void> {
    this.#parts.held.settled(lease)
    if (event !== undefined) this.#parts.bus.emit(isStale ? { ...event, outcome: 'stale' } : event)
    const dropped = isStale ? {} : notFetchedOf(counts)
    if (Object.keys(dropped).length > 0)
      this.#parts.bus.emit({ type: 'not-fetched', url: lease.task.url, counts: dropped })
    if (path !== undefined && !isStale) await rm(path, { force: true }).catch(() => {})
  }
}
