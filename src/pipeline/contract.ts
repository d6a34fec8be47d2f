/** Pipeline: the bounded way from handlers to the commit. */

/** Bounded first-in first-out queue; a full one makes the producer wait, and that wait is our backpressure. */
export interface Channel<T> {
  /** undefined when taken at once; a promise only when full. */
  push(value: T): undefined | Promise<void>
  readonly size: number
  /** At least one value, at most `max`; empty only once the channel is closed and drained. */
  takeBatch(max: number): T[] | Promise<T[]>
  /** No more pushes. With a reason the channel is broken: both sides get the reason, and what is left is dropped. */
  close(reason?: unknown): void
}

/** Workers between a channel and a writer; resolves when the channel was closed and its last value written. */
export type WriteBatches = <T>(options: BatchOptions<T>) => Promise<void>

export interface BatchOptions<T> {
  channel: Channel<T>
  /** Takes a batch; returns a promise only when it has to wait. */
  write: (batch: T[]) => undefined | Promise<void>
  /** How many writes may wait at once. In one thread this hides the writer's latency, it adds no CPU. Default 4. */
  workers?: number
  /** Most values per write; default 64. */
  batchMax?: number
  /** Asked before a batch of `size` values, smaller than `batchMax`, is written: how long to wait for more. */
  gather?: (size: number) => undefined | Promise<void>
}

/** Checks one emitted value against the scraper's schema. */
export type ItemCheck = (value: unknown) => { ok: true; value: object } | { ok: false; problems: string[] }
