/** Backoff: how long to wait after a failure. The wait doubles with each failure in a row, up to a limit. */

export interface BackoffLimits {
  /** Delay after the first failure. */
  delayMsMin: number
  delayMsMax: number
}

/** Without jitter: for waits of a single client. `failures` counts failures in a row, from 1. */
export function doubledMs(failures: number, { delayMsMin, delayMsMax }: BackoffLimits): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** (failures - 1))
}

/** Full jitter, anything up to the doubled wait: a thousand tasks that failed together must not be retried together. */
export function backoffMs(failures: number, limits: BackoffLimits, random: () => number = Math.random): number {
  return Math.round(random() * doubledMs(failures, limits))
}

/** At least half of the doubled wait: for the few clients of a single server, which must not be retried too soon. */
export function steadyBackoffMs(failures: number, limits: BackoffLimits, random: () => number = Math.random): number {
  return Math.round((0.5 + random() / 2) * doubledMs(failures, limits))
}
