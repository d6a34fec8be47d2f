/**
 * Reduces the number of concurrent pages when the machine runs out of file descriptors or memory. Each refusal halves the limit,
 * at most once a second, since one shortage refuses many pages at the same moment; every ten seconds without one raise it by one.
 */
const HALVE_MS = 1_000
const REGROW_MS = 10_000

export class ResourceBrake {
  #limit = Number.POSITIVE_INFINITY
  #changedAtMs = Number.NEGATIVE_INFINITY

  /** How many pages may be in flight. */
  limit(nowMs: number): number {
    return this.#limit + Math.max(0, Math.floor((nowMs - this.#changedAtMs) / REGROW_MS))
  }

  /** A page failed because of missing resources. Returns true if the limit was lowered. */
  refused(inFlight: number, nowMs: number): boolean {
    if (nowMs - this.#changedAtMs < HALVE_MS) return false
    this.#limit = Math.max(1, Math.floor(Math.min(inFlight, this.limit(nowMs)) / 2))
    this.#changedAtMs = nowMs
    return true
  }
}
