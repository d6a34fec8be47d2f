/**
 * Waiting for a service of ours that went away. While it is away nobody's try counts and nobody knocks more often than the
 * backoff says; when that has lasted too long, tries count again, so that a wrong address ends as dead letters and not never.
 */

export interface ServiceBackoffLimits {
  waitMsMin: number
  waitMsMax: number
  /** Since the first failure in a row. */
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

  /** When to come back, in milliseconds from now; undefined when our patience is at an end. */
  failed(nowMs: number): number | undefined {
    this.#sinceMs ??= nowMs
    const { waitMsMin, waitMsMax, awayMsMax } = this.#limits
    // Those who fail together are one knock at the door.
    if (nowMs >= this.#untilMs) this.#untilMs = nowMs + Math.min(waitMsMax, waitMsMin * 2 ** this.#rounds++)
    return nowMs - this.#sinceMs > awayMsMax ? undefined : this.#untilMs - nowMs
  }

  succeeded(): void {
    this.#sinceMs = undefined
    this.#untilMs = 0
    this.#rounds = 0
  }

  /** 0 when one may knock. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs)
  }
}
