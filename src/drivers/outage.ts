/** Waiting for an unreachable server: shared by all connections. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type BackoffLimits, steadyBackoffMs } from '../core/backoff.ts'

/** Reported before each wait. */
export interface Outage {
  /** From 1, for this operation. */
  attempt: number
  error: Error
  waitMs: number
}

interface OutageLimits {
  /** How long one operation waits in total. */
  outageMs: number
  /** The server has answered before. If not, its address may be wrong, which should be reported soon. */
  wasOpen: boolean
  /** When the wait started, by `performance.now()`. Default: now. */
  sinceMs?: number
  /** Aborted when the connection is closed. */
  signal: AbortSignal
}

/** A server that is just starting may take this long. */
const OPEN_OUTAGE_MS_MAX = 5000
const WAIT: BackoffLimits = { delayMsMin: 50, delayMsMax: 2000 }

/** The waits of one operation. */
export class OutageWait {
  readonly #limits: OutageLimits
  readonly #sinceMs: number
  #attempts = 0

  constructor(limits: OutageLimits) {
    this.#limits = limits
    this.#sinceMs = limits.sinceMs ?? performance.now()
  }

  /** The operation has failed before, and it is unknown whether that try was executed. */
  get isRepeat(): boolean {
    return this.#attempts > 0
  }

  /** Waits before the next try. False if there is none: the time is over, or the connection is closed. */
  async next(error: Error, onOutage: (outage: Outage) => void): Promise<boolean> {
    const { outageMs, wasOpen, signal } = this.#limits
    if (signal.aborted) return false
    const waitMs = steadyBackoffMs(++this.#attempts, WAIT)
    const waitMsMax = wasOpen ? outageMs : Math.min(OPEN_OUTAGE_MS_MAX, outageMs)
    if (performance.now() - this.#sinceMs + waitMs > waitMsMax) return false
    onOutage({ attempt: this.#attempts, error, waitMs })
    await sleep(waitMs, undefined, { signal }).catch(() => {})
    return !signal.aborted
  }
}
