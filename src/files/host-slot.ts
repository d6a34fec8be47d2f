/** The host slot of a job: one host at a time, so that two hosts which redirect to each other never wait for each other. */
import { hostOf } from '../core/url.ts'
import type { RateLimit, Slot } from '../fetch/contract.ts'

/** Throws if robots.txt forbids the URL. */
export type MayFetch = (url: string, signal: AbortSignal) => Promise<void>

export class DownloadSlot implements Disposable {
  readonly #rateLimit: RateLimit
  readonly #mayFetch: MayFetch
  readonly #signal: AbortSignal
  #slot: Slot | undefined
  #isOver = false

  constructor(rateLimit: RateLimit, mayFetch: MayFetch, signal: AbortSignal) {
    this.#rateLimit = rateLimit
    this.#mayFetch = mayFetch
    this.#signal = signal
  }

  async enter(url: string): Promise<void> {
    this.leave()
    await this.#mayFetch(url, this.#signal)
    if (this.#isOver) return
    this.#slot = await this.#rateLimit.acquire(hostOf(url), this.#signal, { isFile: true })
    // If its process dies while it asks about a redirect, the job ends before the slot is granted.
    if (this.#signal.aborted || this.#isOver) this.leave()
  }

  leave(): void {
    this.#slot?.[Symbol.dispose]()
    this.#slot = undefined
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.leave()
  }
}
