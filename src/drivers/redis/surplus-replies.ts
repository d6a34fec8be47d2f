/**
 * Replies that no call is waiting for: bytes were repeated on the way, so later replies cannot be trusted either. ioredis reports
 * them as errors, except for a nil, on which it throws outside of any call and so ends the process.
 */
import type { Redis } from 'ioredis'

const nothing = (): void => {}

/** Calls `onSurplus` instead. To be set up for each new connection, because ioredis gives each a queue of its own. */
export function guardReplies(redis: Redis, onSurplus: () => void): void {
  type Item = NonNullable<ReturnType<Redis['commandQueue']['shift']>>
  const internals = redis as unknown as { flushQueue: (...args: unknown[]) => void }
  const { flushQueue } = Object.getPrototypeOf(redis) as typeof internals
  let isFlushing = false
  internals.flushQueue = (...args) => {
    isFlushing = true
    try {
      flushQueue.apply(redis, args)
    } finally {
      isFlushing = false
    }
  }
  const queue = redis.commandQueue
  const shift = queue.shift.bind(queue)
  const surplus = { command: { name: 'surplus', args: [], resolve: nothing, reject: nothing } } as unknown as Item
  queue.shift = () => {
    const item = shift()
    if (item !== undefined || isFlushing) return item
    onSurplus()
    return surplus
  }
}
