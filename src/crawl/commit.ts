/** Takes settled visits from the channel and commits them in batches. */
import { addCounts, noCounts } from '../core/counts.ts'
import type { EventBus } from '../core/events.ts'
import { type HeldLeases, isOneOf } from '../core/held-leases.ts'
import { notFetchedOf } from '../core/not-fetched.ts'
import type { Frontier, Lease, Outcome } from '../frontier/contract.ts'
import { writeBatches } from './batch.ts'
import type { Channel } from './channel.ts'
import { countedOutcome } from './counted.ts'
import type { Settled } from './settle.ts'

/** Larger batches gain little: at 64 pages, the commit is under 3 % of a page's cost. */
const BATCH_MAX = 64
/** How long a batch waits to fill up while the worker still has pages to fetch. */
const LINGER_MS = 40
const BACKLOG_POLL_MS = 25

interface CommitterParts {
  frontier: Frontier
  channel: Channel<Settled>
  bus: EventBus
  held: HeldLeases<Lease>
  backlogMax: number
  now: () => number
  /** True if the worker has nothing to fetch, so new tasks must become claimable at once. */
  isHungry: () => boolean
  /** A worker that is stopping does not wait for the sinks: its items are in the log. */
  isStopping: () => boolean
  onCommitted: (batch: readonly Settled[], isStale: (lease: Lease) => boolean) => void
}

export class Committer {
  readonly #parts: CommitterParts
  #endLinger: (() => void) | undefined
  #waiting = 0

  constructor(parts: CommitterParts) {
    this.#parts = parts
  }

  /** Runs until the channel is closed and drained. A failed commit closes it, so that no producer waits forever. */
  run(): Promise<void> {
    return writeBatches({
      channel: this.#parts.channel,
      batchMax: BATCH_MAX,
      gather: (size) => (this.#parts.isHungry() ? undefined : this.#linger(size)),
      write: (batch) => this.#commit(batch),
    })
  }

  /** Waits while the channel is full. Never throws: a channel is broken only by a commit's own failure, which ends the run. */
  handOver(settled: Settled): undefined | Promise<void> {
    const { channel, isHungry } = this.#parts
    try {
      const waiting = channel.push(settled)
      if (this.#waiting + channel.size >= BATCH_MAX || isHungry()) this.#endLinger?.()
      return waiting?.catch(() => {})
    } catch {
      return undefined
    }
  }

  /** Commits what is waiting now. */
  hurry(): void {
    this.#endLinger?.()
  }

  #linger(waiting: number): Promise<void> {
    this.#waiting = waiting
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#endLinger?.(), LINGER_MS)
      this.#endLinger = () => {
        clearTimeout(timer)
        this.#endLinger = undefined
        resolve()
      }
    })
  }

  async #commit(batch: readonly Settled[]): Promise<void> {
    const { frontier, bus, held, backlogMax, now, onCommitted } = this.#parts
    const startedMs = performance.now()
    const startedAtMs = now()
    for (const { outcome } of batch) held.committing(outcome.lease)
    const { stale, added, items } = await frontier.commit(batch.map(countedOutcome))
    const isStale = isOneOf(stale)
    for (const { outcome, event } of batch) {
      if (event?.trace !== undefined) {
        event.trace.commitStartedAtMs = startedAtMs
        event.trace.commitEndedAtMs = startedAtMs + performance.now() - startedMs
      }
      if (event !== undefined) bus.emit(isStale(outcome.lease) ? { ...event, outcome: 'stale' } : event)
      if (outcome.counts !== undefined && !isStale(outcome.lease)) tellNotFetched(bus, outcome)
    }
    bus.emit({
      type: 'committed',
      outcomes: batch.length,
      added,
      itemsNew: items.new,
      itemsSame: items.same,
      itemsChanged: items.changed,
      backlog: items.backlog,
      ms: performance.now() - startedMs,
    })
    emitFill(bus, batch)
    for (const { outcome } of batch) held.settled(outcome.lease)
    onCommitted(batch, isStale)
    if (items.backlog > backlogMax) await this.#untilSinksCatchUp()
  }

  /** While this waits, the channel fills and the crawl stops: backpressure from a slow sink. */
  async #untilSinksCatchUp(): Promise<void> {
    const { frontier, backlogMax, isStopping } = this.#parts
    while (!isStopping()) {
      await new Promise((resolve) => setTimeout(resolve, BACKLOG_POLL_MS))
      const { items } = await frontier.commit([])
      if (items.backlog <= backlogMax / 2) return
    }
  }
}

function tellNotFetched(bus: EventBus, { lease, counts }: Outcome): void {
  const dropped = notFetchedOf(counts)
  if (Object.keys(dropped).length > 0) bus.emit({ type: 'not-fetched', url: lease.task.url, counts: dropped })
}

function emitFill(bus: EventBus, batch: readonly Settled[]): void {
  const filled = noCounts()
  let items = 0
  for (const { outcome, filled: own } of batch) {
    if (outcome.kind !== 'done' || own === undefined) continue
    items += outcome.items?.length ?? 0
    addCounts(filled, own)
  }
  if (items > 0) bus.emit({ type: 'fields', items, filled })
}
