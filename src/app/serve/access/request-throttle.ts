/** Rate limit per caller: a token bucket. */
import { LRUCache } from 'lru-cache'

/** How many callers are tracked; the least recently active one is forgotten first. */
const CALLERS_MAX = 10_000
const BURST_SECONDS = 2

interface ThrottleOptions {
  perSecond: number
  /** The burst. Default: two seconds’ worth. */
  burst?: number
  now?: () => number
}

/** The returned function takes one request from the caller's bucket: 0, or the milliseconds until the next one is available. */
export function createThrottle({
  perSecond,
  burst = BURST_SECONDS * perSecond,
  now = () => performance.now(),
}: ThrottleOptions): (caller: string) => number {
  const buckets = new LRUCache<string, { left: number; atMs: number }>({ max: CALLERS_MAX })
  return (caller) => {
    const atMs = now()
    const bucket = buckets.get(caller) ?? { left: burst, atMs }
    const left = Math.min(burst, bucket.left + ((atMs - bucket.atMs) / 1000) * perSecond)
    buckets.set(caller, { left: left >= 1 ? left - 1 : left, atMs }) // rejected requests cost nothing, or no retry would succeed
    return left >= 1 ? 0 : ((1 - left) / perSecond) * 1000
  }
}
