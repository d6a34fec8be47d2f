/** When a delivery that failed is tried again: soon at first, then over a day. What was refused for good is given up soon. */

/** After the first try, the second … Eight tries in all, the last one about a day after the first. */
const WAITS_MS = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 54_000_000]

/** Three tries within a minute, for a receiver that is only being deployed. */
const REFUSED_WAITS_MS = [10_000, 25_000]

export const TRIES_MAX = WAITS_MS.length + 1

/** Too slow, too early, too many: these ask for another try. 410 has a meaning of its own. */
const ASKS_AGAIN = [408, 410, 425, 429]

/** The receiver does not want this one, and will not want it tomorrow. */
export const isRefusal = (status: number | undefined): boolean =>
  status !== undefined && status >= 400 && status < 500 && !ASKS_AGAIN.includes(status)

interface RetryOptions {
  isRefused?: boolean
  random?: () => number
}

/** Undefined when that was the last try. */
export function retryWaitMs(
  tries: number,
  { isRefused = false, random = Math.random }: RetryOptions = {},
): number | undefined {
  const waitMs = (isRefused ? REFUSED_WAITS_MS : WAITS_MS)[tries - 1]
  // A fifth more or less: what failed together does not come back together.
  return waitMs === undefined ? undefined : Math.round(waitMs * (0.8 + 0.4 * random()))
}
