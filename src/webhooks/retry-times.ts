/** When a delivery that failed is tried again: soon at first, then over a day. */

/** After the first try, the second … Eight tries in all, the last one about a day after the first. */
const WAITS_MS = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 54_000_000]

export const TRIES_MAX = WAITS_MS.length + 1

/** Undefined when that was the last try. */
export function retryWaitMs(tries: number, random: () => number = Math.random): number | undefined {
  const waitMs = WAITS_MS[tries - 1]
  // A fifth more or less: what failed together does not come back together.
  return waitMs === undefined ? undefined : Math.round(waitMs * (0.8 + 0.4 * random()))
}
