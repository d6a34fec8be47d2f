/** Backoff: how long a failed task waits before its next try. */

export interface BackoffLimits {
  /** Ceiling of the first wait; doubles with every try. */
  delayMsMin: number
  delayMsMax: number
}

/** `attempt` is the try that failed, from 1. */
export function backoffMs(attempt: number, limits: BackoffLimits, random: () => number = Math.random): number {
  const ceilingMs = Math.min(limits.delayMsMax, limits.delayMsMin * 2 ** (attempt - 1))
  return Math.round(random() * ceilingMs) // full jitter: a thousand failures must not come back together
}
