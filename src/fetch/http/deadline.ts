/** One deadline and one signal for a whole exchange, redirects included: a single timer, however many hops. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'

/** What the deadline needs to know about the current request. */
export interface Hop {
  readonly isSent: boolean
  readonly status: number
  /** `performance.now()` of the latest byte; 0 before the first. */
  readonly lastByteAtMs: number
  cancel(reason: unknown): void
}

/** One listener per signal, not per request: a run uses the same signal for all its requests. */
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

  /** `lateError`: the error when the time is up. Default: a page's timeout error, depending on the phase. */
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

  /** Time spent waiting for our own rate limits does not count against the server. If the wait throws, the exchange ends. */
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

  /** For work that cannot be cancelled: a late result is discarded. */
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
    // A listener left behind would keep a signal from AbortSignal.any alive.
    if (this.#peers.size === 0) this.#signal.removeEventListener('abort', onAbort)
  }

  #pageLate(): ScrapeError {
    return new ScrapeError(this.#phase(), `no page within ${this.#timeoutMs} ms (${this.#url})`, { url: this.#url })
  }

  /** What we were waiting for when the time ran out. */
  #phase(): ErrorCode {
    const hop = this.#hop
    if (hop === undefined || this.#hops > 1) return 'E_TIMEOUT_TOTAL' // the chain as a whole was too slow
    if (!hop.isSent) return 'E_TIMEOUT_CONNECT'
    if (hop.status === 0) return 'E_TIMEOUT_HEADERS'
    const silentMs = performance.now() - hop.lastByteAtMs
    return silentMs > this.#timeoutMs / 4 ? 'E_TIMEOUT_BODY' : 'E_TIMEOUT_TOTAL'
  }
}

function onTimeout(deadline: Deadline): void {
  deadline.expire()
}
