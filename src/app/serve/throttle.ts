/** How fast one caller may ask: a bucket that holds two seconds' worth. */
import { LRUCache } from 'lru-cache'

const CALLERS_MAX = 10_000
const BURST_SECONDS = 2

/** The returned function takes one request from the caller's bucket: 0, or the milliseconds until there is one again. */
export function createThrottle(
  perSecond: number,
  now: () => number = () => performance.now(),
): (caller: string) => number {
  const buckets = new LRUCache<string, { left: number; atMs: number }>({ max: CALLERS_MAX })
  return (caller) => {
    const atMs = now()
    const bucket = buckets.get(caller) ?? { left: BURST_SECONDS * perSecond, atMs }
    const left = Math.min(BURST_SECONDS * perSecond, bucket.left + ((atMs - bucket.atMs) / 1000) * perSecond)
    buckets.set(caller, { left: left >= 1 ? left - 1 : left, atMs }) // who is refused pays nothing, or would never get through
    return left >= 1 ? 0 : ((1 - left) / perSecond) * 1000
  }
}
