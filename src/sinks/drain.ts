/**
 * The sink writer: moves accepted items from the log to the sinks, so that each arrives once.
 *
 *   read after the last written item ─▶ write to every sink ─▶ flush every sink ─▶ confirm with their positions
 *                 ▲                                                                        │
 *                 └────────────────────────────────────────────────────────────────────────┘
 *
 * After a crash anywhere in this loop it starts again from the confirmed positions: sinks cut off everything after them, and the
 * log still has it. There is one loop, so there are never two reads at a time.
 */
import { ScrapeError } from '../core/errors.ts'
import type { ItemLog, SinkPositions } from '../frontier/contract.ts'
import type { Sink, SinkResult } from './contract.ts'

interface DrainOptions {
  log: ItemLog
  /** Not opened yet; the sink writer opens and disposes them. */
  sinks: readonly Sink[]
  /** Items per read; default 500. */
  batch?: number
  /** Flush after this many written items; default 2,000. */
  flushItemsMax?: number
  /** … or when the oldest of them has waited this long; default 250. */
  flushMsMax?: number
  /** Called when a flush was confirmed. `backlog`: items left in the log, as far as `wake` was told. */
  onFlushed?: (event: { items: number; ms: number; backlog: number }) => void
  /** The same, with the keys of the items and when the flush started (epoch ms). Keys are collected only if this is set. */
  onStored?: (keys: readonly string[], startedAtMs: number) => void
  /** Stops the loop between two steps; items written but not confirmed come again at the next start. */
  signal?: AbortSignal
  now?: () => number
}

export interface Drain extends AsyncDisposable {
  /** There are new items in the log; `backlog` is the total, if the caller knows it. */
  wake(backlog?: number): void
  /** Resolves when all items that were in the log at the time of the call are confirmed. */
  drainAll(): Promise<void>
  /** Drains, then finishes the outputs. Call it once, when the run is complete. */
  finish(): Promise<SinkResult[]>
  /** Resolves when it was stopped; rejects with the first error of a sink or the log. May be left unhandled. */
  readonly ended: Promise<void>
}

/** Opens the sinks at their confirmed positions and starts the loop. */
export async function createDrain(options: DrainOptions): Promise<Drain> {
  const { log, sinks } = options
  const { seq, positions } = await log.confirmed()
  if (seq > 0) refuseOtherSinks(sinks, positions)
  const opened = await Promise.allSettled(sinks.map((sink) => sink.open(positions[sink.name])))
  const failed = opened.find((result) => result.status === 'rejected')
  if (failed !== undefined) {
    await Promise.allSettled(sinks.map((sink) => sink[Symbol.asyncDispose]()))
    throw failed.reason
  }
  return new LogDrain(options, seq)
}

/** Confirmed items have left the log: a sink added later would miss them, and a removed one would be incomplete. */
function refuseOtherSinks(sinks: readonly Sink[], positions: SinkPositions): void {
  const before = Object.keys(positions).sort()
  const now = sinks.map((sink) => sink.name).sort()
  if (before.join('\n') === now.join('\n')) return
  throw new ScrapeError(
    'E_OPTION',
    `this run writes to ${before.join(', ') || 'no sink'}; it cannot be resumed with ${now.join(', ') || 'none'}`,
    { fix: 'Resume with the same --format and --sink, then convert with `sluice export`.' },
  )
}

class LogDrain implements Drain {
  readonly ended: Promise<void>
  readonly #log: ItemLog
  readonly #sinks: readonly Sink[]
  readonly #batch: number
  readonly #flushItemsMax: number
  readonly #flushMsMax: number
  readonly #onFlushed: DrainOptions['onFlushed']
  readonly #onStored: DrainOptions['onStored']
  #keys: string[] = []
  readonly #signal: AbortSignal | undefined
  readonly #now: () => number
  /** The last item written to the sinks, and how many were written since the last confirm. */
  #seq: number
  #unconfirmed = 0
  #oldestAtMs = 0
  #backlog = 0
  #isStopping = false
  #wakeUp: (() => void) | undefined
  #isAwake = true
  #waiters: PromiseWithResolvers<void>[] = []
  #failure: { reason: unknown } | undefined

  constructor(options: DrainOptions, seq: number) {
    this.#log = options.log
    this.#sinks = options.sinks
    this.#batch = options.batch ?? 500
    this.#flushItemsMax = options.flushItemsMax ?? 2_000
    this.#flushMsMax = options.flushMsMax ?? 250
    this.#onFlushed = options.onFlushed
    this.#onStored = options.onStored
    this.#signal = options.signal
    this.#now = options.now ?? Date.now
    this.#seq = seq
    this.#signal?.addEventListener('abort', this.#stop, { once: true })
    this.ended = this.#run()
    this.ended.catch(() => undefined)
  }

  wake(backlog?: number): void {
    if (backlog !== undefined) this.#backlog = backlog
    this.#isAwake = true
    this.#wakeUp?.()
  }

  async drainAll(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.reason
    this.#signal?.throwIfAborted()
    if (this.#isStopping) throw new Error('the drain was stopped')
    const waiter = Promise.withResolvers<void>()
    this.#waiters.push(waiter)
    this.wake()
    await waiter.promise
  }

  async finish(): Promise<SinkResult[]> {
    await this.drainAll()
    this.#stop()
    await this.ended
    const results: SinkResult[] = []
    for (const sink of this.#sinks) results.push(await sink.finish())
    return results
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop()
    await this.ended.catch(() => undefined)
    this.#signal?.removeEventListener('abort', this.#stop)
    const closed = await Promise.allSettled(this.#sinks.map((sink) => sink[Symbol.asyncDispose]()))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }

  readonly #stop = (): void => {
    this.#isStopping = true
    this.#wakeUp?.()
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isStopping && this.#signal?.aborted !== true) await this.#step()
      const stopped = this.#signal?.aborted === true ? this.#signal.reason : new Error('the drain was stopped')
      for (const waiter of this.#waiters.splice(0)) waiter.reject(stopped)
    } catch (reason) {
      this.#failure = { reason }
      for (const waiter of this.#waiters.splice(0)) waiter.reject(reason)
      throw reason
    }
  }

  async #step(): Promise<void> {
    const waiting = this.#waiters.length // callers that were waiting before this read
    this.#isAwake = false
    const items = await this.#log.read({ afterSeq: this.#seq, max: this.#batch })
    if (items.length > 0) {
      if (this.#unconfirmed === 0) this.#oldestAtMs = this.#now()
      await Promise.all(this.#sinks.map((sink) => sink.write(items)))
      this.#seq = items.at(-1)!.seq
      this.#unconfirmed += items.length
      if (this.#onStored !== undefined) for (const { key } of items) this.#keys.push(key)
    }
    const isEmpty = items.length === 0
    // A short read is the end for now: another would find nothing, 150 times in 1,000 pages. Callers of drainAll get everything.
    const isEnd = isEmpty || (items.length < this.#batch && waiting === 0)
    const dueInMs = this.#oldestAtMs + this.#flushMsMax - this.#now()
    const mustFlush = this.#unconfirmed >= this.#flushItemsMax || dueInMs <= 0 || (isEmpty && waiting > 0)
    if (this.#unconfirmed > 0 && mustFlush) await this.#flush()
    if (!isEnd) return
    if (isEmpty && this.#unconfirmed === 0) for (const waiter of this.#waiters.splice(0, waiting)) waiter.resolve()
    if (!this.#isAwake) await this.#sleep(this.#unconfirmed > 0 ? dueInMs : undefined)
  }

  async #flush(): Promise<void> {
    const startMs = performance.now()
    const startedAtMs = this.#now()
    const items = this.#unconfirmed
    const names = await Promise.all(this.#sinks.map(async (sink) => [sink.name, await sink.flush()] as const))
    await this.#log.confirm(this.#seq, Object.fromEntries(names))
    this.#unconfirmed = 0
    this.#backlog = Math.max(0, this.#backlog - items)
    this.#onFlushed?.({ items, ms: performance.now() - startMs, backlog: this.#backlog })
    if (this.#onStored !== undefined) this.#onStored(this.#keys.splice(0), startedAtMs)
  }

  /** Until `wake`, a stop, or the time when written items must be flushed. */
  async #sleep(ms: number | undefined): Promise<void> {
    if (this.#isStopping) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve
      if (ms !== undefined) timer = setTimeout(resolve, Math.max(1, ms))
    })
    this.#wakeUp = undefined
    clearTimeout(timer)
  }
}
