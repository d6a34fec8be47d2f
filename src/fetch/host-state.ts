/** What the rate limit knows about one host, and the slot it gives out. Times are of its monotonic clock. */
import type { Slot } from './contract.ts'

export interface Waiter {
  readonly signal: AbortSignal
  readonly onAbort: () => void
  resolve(slot: Slot): void
  reject(reason: unknown): void
}

export interface HostState {
  readonly host: string
  active: number
  readonly waiters: Waiter[]
  /** Theoretical time of the next request, and how far ahead of it one may start. */
  tatMs: number
  earlyMs: number
  lastStartMs: number
  crawlDelayMs: number
  pausedUntilMs: number
  pauseReason: string
  /** The slot reserved from `SharedSlots` and not used yet. */
  reservedMs: number | undefined
  reservedLateMsMax: number
  /** Armed while the host waits for a time; its callback looks again. */
  cancelTimer: (() => void) | undefined
}

export function createHostState(host: string): HostState {
  return {
    host,
    active: 0,
    waiters: [],
    tatMs: 0,
    earlyMs: 0,
    lastStartMs: Number.NEGATIVE_INFINITY,
    crawlDelayMs: 0,
    pausedUntilMs: 0,
    pauseReason: '',
    reservedMs: undefined,
    reservedLateMsMax: 0,
    cancelTimer: undefined,
  }
}

/** No request may start before; 0 or less when nothing ever limited the host. */
export function dueMsOf(state: HostState): number {
  let dueMs = Math.max(state.pausedUntilMs, state.tatMs - state.earlyMs)
  if (state.crawlDelayMs > 0) dueMs = Math.max(dueMs, state.lastStartMs + state.crawlDelayMs)
  return state.reservedMs === undefined ? dueMs : Math.max(dueMs, state.reservedMs)
}

export class HostSlot implements Slot {
  readonly host: string
  #release: (() => void) | undefined

  constructor(host: string, release: () => void) {
    this.host = host
    this.#release = release
  }

  [Symbol.dispose](): void {
    const release = this.#release
    this.#release = undefined
    release?.()
  }
}
