/**
 * Rate limit: who may be asked when. One instance serves a process; `pace.ts` tells when a host is due, alone or in turn with
 * the other processes of a machine or a fleet.
 *
 *                    no free slot, or too early
 *   acquire ──▶ may start? ─────────────────────▶ waiting (first come, first served)
 *                  │ yes              slot released · timer: due │
 *                  ▼                                             ▼
 *               active ──────────── dispose ──────────▶ released; idle hosts are forgotten, oldest first
 */
import { ScrapeError } from '../../core/errors.ts'
import type { HostPause, RateLimit, Slot, SlotUse } from '../contract.ts'
import { HostSlot, type HostState, type Waiter } from './host-state.ts'
import { KnownHosts, type KnownHostsOptions } from './known-hosts.ts'
import { Pace } from './pace.ts'
import type { FleetSlots, SharedSlots } from './spacing.ts'

export interface RateLimitOptions extends KnownHostsOptions {
  /** Requests in flight over all hosts, without those for files. */
  concurrency: number
  /** Longest crawl-delay that is obeyed. */
  crawlDelayMsMax: number
  /**
   * Whoever would wait longer than this for a paused host is refused with `E_RATE_LIMITED` (verdict: later) instead: a place
   * in the crawl loop is not for sleeping an hour in. Default 10 s.
   */
  pauseWaitMsMax?: number
  /** Spreads rate and pauses over the processes of this machine. */
  slots?: SharedSlots
  /** Spreads rate and pauses over the workers of a fleet; `slots` is then not used. */
  fleet?: FleetSlots
  /** A pause began or grew longer. */
  onPause?: (host: string, untilMs: number, reason: string) => void
  /** Epoch milliseconds; read only to understand `pause`. */
  now?: () => number
  /** Milliseconds that only ever grow; all spacing is counted in them. */
  monotonicNow?: () => number
  random?: () => number
  /** Calls back once after `ms`; returns how to prevent it. */
  setTimer?: (callback: () => void, ms: number) => () => void
}

/** `setTimeout` overflows at 2^31 ms; a timer that fires early only looks again. */
const TIMER_MS_MAX = 3_600_000

export function createRateLimit(options: RateLimitOptions): RateLimit & Disposable {
  return new HostRateLimit(options)
}

class HostRateLimit implements RateLimit, Disposable {
  readonly #options: RateLimitOptions
  readonly #now: () => number
  readonly #monotonicNow: () => number
  readonly #pace: Pace
  readonly #setTimer: (callback: () => void, ms: number) => () => void
  readonly #hosts: KnownHosts
  /** Hosts whose waiters only lack a place among all requests in flight, longest waiting first. */
  readonly #blocked = new Set<HostState>()
  readonly #listeners: (() => void)[] = []
  /** Slots that files have, and who waits for one. */
  readonly #files = new WeakMap<HostState, number>()
  readonly #fileWaiters = new WeakSet<Waiter>()
  #active = 0
  #isDisposed = false

  constructor(options: RateLimitOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now())
    this.#pace = new Pace({
      slots: options.slots,
      fleet: options.fleet,
      now: this.#now,
      monotonicNow: this.#monotonicNow,
      random: options.random ?? Math.random,
      onPaused: (state, pausedUntilMs, reason) => this.#pauseHere(state, pausedUntilMs, reason),
      onTurns: (state) => this.#onTurns(state),
    })
    this.#setTimer =
      options.setTimer ??
      ((callback, ms) => {
        const timer = setTimeout(callback, ms)
        return () => clearTimeout(timer)
      })
    this.#hosts = new KnownHosts(options)
  }

  waitMs(host: string, { isFile = false }: SlotUse = {}): number {
    if (!isFile && this.#active >= this.#options.concurrency) return Number.POSITIVE_INFINITY
    const state = this.#hosts.get(host)
    if (state === undefined) return 0
    if (!this.#hasPlace(state, isFile)) return Number.POSITIVE_INFINITY
    const waitMs = this.#pace.untilDueMs(state)
    const ahead = this.#ahead(state)
    return ahead === 0 ? waitMs : Math.max(1, waitMs + ahead * state.limits.intervalMs) // behind those who came first
  }

  acquire(host: string, signal: AbortSignal, { isFile = false }: SlotUse = {}): Promise<Slot> {
    if (signal.aborted) return Promise.reject(signal.reason)
    if (this.#isDisposed) return Promise.reject(stopped(host))
    const state = this.#hosts.stateOf(host)
    if (this.#ahead(state) === 0 && this.#hasPlace(state, isFile) && this.#pace.isDue(state)) {
      const slot = this.#start(state, isFile)
      this.#settle(state)
      return Promise.resolve(slot)
    }
    const refusal = this.#refusal(state)
    if (refusal !== undefined) {
      this.#settle(state)
      return Promise.reject(refusal)
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        state.waiters.splice(state.waiters.indexOf(waiter), 1)
        reject(signal.reason)
        this.#settle(state)
      }
      const waiter: Waiter = { signal, onAbort, resolve, reject }
      if (isFile) this.#fileWaiters.add(waiter)
      signal.addEventListener('abort', onAbort, { once: true })
      state.waiters.push(waiter)
      this.#settle(state)
    })
  }

  pause(host: string, untilMs: number, reason: string): void {
    const remainingMs = untilMs - this.#now()
    const pausedUntilMs = this.#monotonicNow() + remainingMs
    const state = this.#hosts.stateOf(host)
    if (remainingMs > 0 && pausedUntilMs > state.pausedUntilMs) {
      if (this.#options.fleet !== undefined) this.#options.fleet.pause(host, remainingMs)
      else this.#options.slots?.pause(host, untilMs)
      this.#pauseHere(state, pausedUntilMs, reason)
      this.#options.onPause?.(host, untilMs, reason)
    }
    this.#settle(state)
  }

  setDelay(host: string, delayMs: number): void {
    const crawlDelayMs = Math.min(Math.max(0, delayMs || 0), this.#options.crawlDelayMsMax)
    const known = this.#hosts.get(host)
    if ((known?.crawlDelayMs ?? 0) === crawlDelayMs) return
    const state = known ?? this.#hosts.stateOf(host)
    state.crawlDelayMs = crawlDelayMs
    if (state.turns !== undefined) state.turns.freeUntilMs = 0
    this.#settle(state)
  }

  busyHosts(): string[] {
    return this.#hosts.busy()
  }

  pauses(): HostPause[] {
    const monotonicMs = this.#monotonicNow()
    return [...this.#hosts.limited]
      .filter(({ pausedUntilMs }) => pausedUntilMs > monotonicMs)
      .map(({ host, pausedUntilMs, pauseReason }) => {
        return { host, untilMs: Math.ceil(this.#now() + pausedUntilMs - monotonicMs), reason: pauseReason }
      })
  }

  onFree(listener: () => void): void {
    this.#listeners.push(listener)
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const state of this.#hosts) {
      state.cancelTimer?.()
      state.cancelTimer = undefined
      for (const waiter of state.waiters.splice(0)) this.#refuse(waiter, stopped(state.host))
    }
    this.#hosts.clear()
    this.#blocked.clear()
  }

  #hasPlace(state: HostState, isFile: boolean): boolean {
    if (state.active >= state.limits.concurrency) return false
    if (!isFile) return this.#active < this.#options.concurrency
    return (this.#files.get(state) ?? 0) < Math.max(1, state.limits.concurrency - 1)
  }

  /** Who waits and lacks nothing but the right time: of those, the first. */
  #next(state: HostState): Waiter | undefined {
    return state.waiters.find((waiter) => this.#hasPlace(state, this.#fileWaiters.has(waiter)))
  }

  /** Those whom a newcomer may not pass: all but files that wait for other files. */
  #ahead(state: HostState): number {
    let ahead = 0
    for (const waiter of state.waiters) if (!this.#fileWaiters.has(waiter) || this.#hasPlace(state, true)) ahead++
    return ahead
  }

  #start(state: HostState, isFile: boolean): Slot {
    state.active++
    if (isFile) this.#files.set(state, (this.#files.get(state) ?? 0) + 1)
    else this.#active++
    this.#pace.begin(state)
    return new HostSlot(state.host, () => this.#release(state, isFile))
  }

  #onTurns(state: HostState): void {
    if (this.#isDisposed || !this.#hosts.has(state)) return // forgotten meanwhile
    this.#settle(state)
    if (!this.#hosts.isLimited(state)) this.#notify()
  }

  #release(state: HostState, isFile: boolean): void {
    state.active--
    if (isFile) this.#files.set(state, this.#files.get(state)! - 1)
    else this.#active--
    if (state.waiters.length > 0) this.#blocked.add(state) // behind the hosts that have waited longer
    for (const blocked of this.#blocked) {
      if (this.#active >= this.#options.concurrency) break
      this.#blocked.delete(blocked)
      this.#settle(blocked)
    }
    this.#settle(state)
    this.#notify()
  }

  #pauseHere(state: HostState, pausedUntilMs: number, reason: string): void {
    state.pausedUntilMs = pausedUntilMs
    state.pauseReason = reason
    const refusal = this.#refusal(state)
    if (refusal === undefined) return
    for (const waiter of state.waiters.splice(0)) this.#refuse(waiter, refusal)
  }

  #refusal(state: HostState): ScrapeError | undefined {
    if (state.pausedUntilMs <= 0) return undefined
    const retryAfterMs = Math.ceil(state.pausedUntilMs - this.#monotonicNow())
    if (retryAfterMs <= (this.#options.pauseWaitMsMax ?? 10_000)) return undefined
    const message = `${state.host} is paused for ${Math.ceil(retryAfterMs / 1000)} s: ${state.pauseReason}`
    return new ScrapeError('E_RATE_LIMITED', message, { retryAfterMs })
  }

  #refuse(waiter: Waiter, error: ScrapeError): void {
    waiter.signal.removeEventListener('abort', waiter.onAbort)
    waiter.reject(error)
  }

  /** After every change of a host: starts whom it may, arms the timer, keeps the list of busy hosts. */
  #settle(state: HostState): void {
    if (this.#isDisposed) return
    let next = this.#next(state)
    for (; next !== undefined && this.#pace.isDue(state); next = this.#next(state)) {
      state.waiters.splice(state.waiters.indexOf(next), 1)
      next.signal.removeEventListener('abort', next.onAbort)
      next.resolve(this.#start(state, this.#fileWaiters.has(next)))
    }
    const waitMs = this.#pace.untilDueMs(state)
    const isFull = state.active >= state.limits.concurrency
    const ahead = this.#ahead(state)
    const isBlocked = next === undefined && ahead > 0 && !isFull && waitMs === 0
    if (isBlocked) this.#blocked.add(state)
    else if (waitMs > 0 || (next !== undefined && state.turns?.isAsking !== true)) this.#armTimer(state, waitMs)
    this.#hosts.setLimited(state, isFull || waitMs > 0 || ahead > 0)
  }

  #armTimer(state: HostState, waitMs: number): void {
    state.cancelTimer ??= this.#setTimer(
      () => {
        state.cancelTimer = undefined
        this.#settle(state)
        if (!this.#hosts.isLimited(state)) this.#notify()
      },
      Math.min(Math.max(1, waitMs), TIMER_MS_MAX),
    )
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}

function stopped(host: string): ScrapeError {
  return new ScrapeError('E_STOPPED', `stopped while waiting for a slot of ${host}`)
}
