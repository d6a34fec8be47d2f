/** When a failed delivery is retried: soon at first, then over a day. Refused deliveries are given up soon. */

/** Waits after the first try, the second … Eight tries in all, the last one about a day after the first. */
const WAITS_MS = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 54_000_000]

/** Three tries within a minute, in case the receiver is just being deployed. */
const REFUSED_WAITS_MS = [10_000, 25_000]

export const TRIES_MAX = WAITS_MS.length + 1

/** Too slow, too early, too many: these request a retry. 410 is handled separately. */
const ASKS_AGAIN = [408, 410, 425, 429]

/** The receiver does not want this event, and will not want it tomorrow. */
export const isRefusal = (status: number | undefined): boolean =>
  status !== undefined && status >= 400 && status < 500 && !ASKS_AGAIN.includes(status)

interface RetryOptions {
  isRefused?: boolean
  random?: () => number
}

/** Undefined after the last try. */
export function retryWaitMs(
  tries: number,
  { isRefused = false, random = Math.random }: RetryOptions = {},
): number | undefined {
  const waitMs = (isRefused ? REFUSED_WAITS_MS : WAITS_MS)[tries - 1]
  // Plus or minus a fifth: deliveries that failed together must not come back together.
  return waitMs === undefined ? undefined : Math.round(waitMs * (0.8 + 0.4 * random()))
}
