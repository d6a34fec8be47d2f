/** What the rate limit knows about one host, and the slots it hands out. Times are on its monotonic clock. */
import type { Slot } from '../contract.ts'
import { SLOT_HORIZON_MS, type SlotGrant } from './spacing.ts'

export interface Waiter {
  readonly signal: AbortSignal
  readonly onAbort: () => void
  resolve(slot: Slot): void
  reject(reason: unknown): void
}

/** The limits of a host, from its site's settings or the general ones. */
export interface HostLimits {
  readonly concurrency: number
  /** 0 = no rate. */
  readonly intervalMs: number
  /** The range the delay is drawn from; both 0 for none. */
  readonly delayMsMin: number
  readonly delayMsMax: number
}

export interface HostState {
  readonly host: string
  readonly limits: HostLimits
  active: number
  readonly waiters: Waiter[]
  /** Theoretical time of the next request, and how far ahead of it a request may start. */
  tatMs: number
  earlyMs: number
  lastStartMs: number
  crawlDelayMs: number
  pausedUntilMs: number
  pauseReason: string
  /** The slot reserved from `SharedSlots` or `FleetSlots`, not used yet. */
  reservedMs: number | undefined
  reservedLateMsMax: number
  /** Only with `FleetSlots`. */
  turns: FleetTurns | undefined
  /** Set while the host waits for a time; its callback checks the host again. */
  cancelTimer: (() => void) | undefined
}

/** What the fleet has granted a worker for one host. */
export interface FleetTurns {
  /** Starts after `reservedMs`. */
  granted: number[]
  isAsking: boolean
  /** Do not ask before this time. */
  askAtMs: number
  /** A host without a rate may be requested freely until then. */
  freeUntilMs: number
  /** Starts to ask for at once: doubled when all of the last ones were used, halved when one expired. */
  batch: number
  lastGrant: 'none' | 'used' | 'void'
}

export function createFleetTurns(): FleetTurns {
  return { granted: [], isAsking: false, askAtMs: 0, freeUntilMs: 0, batch: 1, lastGrant: 'none' }
}

export function createHostState(host: string, limits: HostLimits): HostState {
  return {
    host,
    limits,
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
    turns: undefined,
    cancelTimer: undefined,
  }
}

/** No request may start before this time; 0 or less if nothing ever limited the host. */
export function dueMsOf(state: HostState): number {
  let dueMs = Math.max(state.pausedUntilMs, state.tatMs - state.earlyMs)
  if (state.crawlDelayMs > 0) dueMs = Math.max(dueMs, state.lastStartMs + state.crawlDelayMs)
  if (state.reservedMs !== undefined) return Math.max(dueMs, state.reservedMs)
  return state.turns === undefined ? dueMs : Math.max(dueMs, state.turns.askAtMs)
}

/** Whether a start granted by the fleet is due. Missed starts are void: starting now could collide with another worker's slot. */
export function hasTurn(state: HostState, turns: FleetTurns, nowMs: number): boolean {
  while (state.reservedMs !== undefined && nowMs - state.reservedMs > state.reservedLateMsMax) {
    state.reservedMs = turns.granted.shift()
    turns.lastGrant = 'void'
  }
  return state.reservedMs === undefined ? nowMs < turns.freeUntilMs : state.reservedMs <= nowMs
}

/** How many starts to ask for: more while they are used up; an idle worker goes back to one. */
export function turnsToAsk(state: HostState, turns: FleetTurns, intervalMs: number): number {
  const countMax = Math.max(1, Math.floor(SLOT_HORIZON_MS / intervalMs))
  if (turns.lastGrant === 'used') turns.batch = Math.min(countMax, turns.batch * 2)
  else if (turns.lastGrant === 'void') turns.batch = Math.max(1, turns.batch >> 1)
  turns.lastGrant = 'none'
  return Math.min(countMax, Math.max(turns.batch, state.waiters.length))
}

export function keepTurns(state: HostState, turns: FleetTurns, grant: SlotGrant, nowMs: number): void {
  turns.granted = grant.startsInMs.map((inMs) => nowMs + inMs)
  state.reservedMs = turns.granted.shift()
  if (state.reservedMs !== undefined) turns.lastGrant = 'used' // until one of them turns out to be void
  turns.askAtMs = state.reservedMs !== undefined ? 0 : nowMs + grant.againInMs
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
