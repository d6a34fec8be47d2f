/**
 * Backoff for one of our own services that is down. During the outage no tries are counted, and no task retries more often than
 * the backoff allows; if it lasts too long, tries count again, so that a wrong address ends in dead letters instead of never.
 */

export interface ServiceBackoffLimits {
  waitMsMin: number
  waitMsMax: number
  /** Counted from the first failure in a row. */
  awayMsMax: number
}

export const SERVICE_BACKOFF: ServiceBackoffLimits = { waitMsMin: 1000, waitMsMax: 60_000, awayMsMax: 3_600_000 }

export class ServiceBackoff {
  readonly #limits: ServiceBackoffLimits
  #sinceMs: number | undefined
  #untilMs = 0
  #rounds = 0

  constructor(limits: ServiceBackoffLimits) {
    this.#limits = limits
  }

  /** When to retry, in milliseconds from now; undefined once the outage has lasted too long. */
  failed(nowMs: number): number | undefined {
    this.#sinceMs ??= nowMs
    const { waitMsMin, waitMsMax, awayMsMax } = this.#limits
    // Concurrent failures count as one attempt.
    if (nowMs >= this.#untilMs) this.#untilMs = nowMs + Math.min(waitMsMax, waitMsMin * 2 ** this.#rounds++)
    return nowMs - this.#sinceMs > awayMsMax ? undefined : this.#untilMs - nowMs
  }

  succeeded(): void {
    this.#sinceMs = undefined
    this.#untilMs = 0
    this.#rounds = 0
  }

  /** 0 if a retry is allowed now. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs)
  }
}
