/** One deadline and one signal for a whole exchange, redirects included: one timer, however many hops. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'

/** The request under way, as far as the deadline has to know it. */
export interface Hop {
  readonly isSent: boolean
  readonly status: number
  /** `performance.now()` of the latest byte; 0 before. */
  readonly lastByteAtMs: number
  cancel(reason: unknown): void
}

/** One listener per signal, not per request: a run gives all its requests the same one. */
const running = new WeakMap<AbortSignal, Set<Deadline>>()

function onAbort(this: AbortSignal): void {
  for (const deadline of running.get(this) ?? []) deadline.fail(this.reason)
}

export class Deadline {
  /** The first reason to give up; `undefined` while there is none. */
  failure: { reason: unknown } | undefined
  readonly startedAtMs: number
  readonly #timeoutMs: number
  readonly #signal: AbortSignal
  readonly #peers: Set<Deadline>
  readonly #url: string
  #endsAtMs: number
  #timer: NodeJS.Timeout | undefined
  #hop: Hop | undefined
  #hops = 0
  #giveUp: ((reason: unknown) => void) | undefined
  readonly #lateError: (() => ScrapeError) | undefined

  /** `lateError`: what it fails with when the time is over. Default: a page's, by what was waited for. */
  constructor(url: string, timeoutMs: number, signal: AbortSignal, lateError?: () => ScrapeError) {
    this.#lateError = lateError
    this.#url = url
    this.#timeoutMs = timeoutMs
    this.#signal = signal
    this.startedAtMs = performance.now()
    this.#endsAtMs = this.startedAtMs + timeoutMs
    this.#timer = setTimeout(onTimeout, timeoutMs, this)
    let peers = running.get(signal)
    if (peers === undefined) {
      peers = new Set()
      running.set(signal, peers)
    }
    if (peers.size === 0) signal.addEventListener('abort', onAbort)
    peers.add(this)
    this.#peers = peers
  }

  watch(hop: Hop): void {
    this.#hop = hop
    this.#hops++
    if (this.failure !== undefined) hop.cancel(this.failure.reason)
  }

  /** Time we spend waiting for our own politeness is not the server's. What the wait throws is the exchange's end. */
  async exclude<T>(wait: Promise<T>): Promise<T> {
    const leftMs = this.#endsAtMs - performance.now()
    clearTimeout(this.#timer)
    try {
      return await wait
    } catch (reason) {
      this.failure ??= { reason }
      throw reason
    } finally {
      this.#endsAtMs = performance.now() + leftMs
      if (this.#timer !== undefined) this.#timer = setTimeout(onTimeout, Math.max(leftMs, 1), this)
    }
  }

  /** For work that cannot be cancelled: what comes too late is dropped. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject
      work.then(resolve, reject)
    })
  }

  fail(reason: unknown): void {
    this.failure ??= { reason }
    this.#hop?.cancel(reason)
    this.#giveUp?.(reason)
  }

  expire(): void {
    this.fail(this.#lateError?.() ?? this.#pageLate())
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#peers.delete(this)
    // A listener left behind would keep a signal made with AbortSignal.any alive.
    if (this.#peers.size === 0) this.#signal.removeEventListener('abort', onAbort)
  }

  #pageLate(): ScrapeError {
    return new ScrapeError(this.#phase(), `no page within ${this.#timeoutMs} ms (${this.#url})`, { url: this.#url })
  }

  /** What we were waiting for, when the time ran out. */
  #phase(): ErrorCode {
    const hop = this.#hop
    if (hop === undefined || this.#hops > 1) return 'E_TIMEOUT_TOTAL' // a chain too slow as a whole
    if (!hop.isSent) return 'E_TIMEOUT_CONNECT'
    if (hop.status === 0) return 'E_TIMEOUT_HEADERS'
    const silentMs = performance.now() - hop.lastByteAtMs
    return silentMs > this.#timeoutMs / 4 ? 'E_TIMEOUT_BODY' : 'E_TIMEOUT_TOTAL'
  }
}

function onTimeout(deadline: Deadline): void {
  deadline.expire()
}
