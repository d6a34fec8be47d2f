/** Pipeline: the bounded way from handlers to the commit. */

/** Bounded first-in first-out queue; a full one makes the producer wait, and that wait is our backpressure. */
export interface Channel<T> {
  /** undefined when taken at once; a promise only when full. */
  push(value: T): undefined | Promise<void>
  readonly size: number
  /** At least one value, at most `max`; empty only once the channel is closed and drained. */
  takeBatch(max: number): T[] | Promise<T[]>
  close(): void
}

/** Checks one emitted value against the scraper's schema. */
export type ItemCheck = (value: unknown) => { ok: true; value: object } | { ok: false; problems: string[] }
