/**
 * Pace: whether a host is due, according to the spacing of this process alone, shared with the other processes of the machine
 * (`SharedSlots`), or with the workers of a fleet (`FleetSlots`: a start is due if the fleet has granted it).
 *
 * Spacing is the generic cell rate algorithm: `tatMs` is when the next request would start if they came evenly, and a request may
 * start `earlyMs` before that. All of it uses a monotonic clock, so a wall clock that jumps causes neither stops nor bursts.
 */
import {
  createFleetTurns,
  dueMsOf,
  type FleetTurns,
  type HostState,
  hasTurn,
  keepTurns,
  turnsToAsk,
} from './host-state.ts'
import { type FleetSlots, type SharedSlots, spacing } from './spacing.ts'

/** A host without a rate is checked this often, in case another worker has been told to pause in the meantime. */
const PAUSE_LOOK_MS = 1000

/** How late a timer may be before its shared slot expires (or a tenth of the interval, if that is more). */
const RESERVED_LATE_MS_MIN = 20

interface PaceOptions {
  slots: SharedSlots | undefined
  /** If set, `slots` is not used. */
  fleet: FleetSlots | undefined
  /** Epoch milliseconds. */
  now: () => number
  monotonicNow: () => number
  random: () => number
  /** Another worker was told to leave the host alone. */
  onPaused: (state: HostState, pausedUntilMs: number, reason: string) => void
  /** The fleet has answered: check the host again. */
  onTurns: (state: HostState) => void
}

export class Pace {
  readonly #options: PaceOptions

  constructor(options: PaceOptions) {
    this.#options = options
  }

  untilDueMs(state: HostState): number {
    const dueMs = dueMsOf(state)
    return dueMs <= 0 ? 0 : Math.max(0, dueMs - this.#options.monotonicNow()) // unlimited hosts do not even read the clock
  }

  isDue(state: HostState): boolean {
    if (this.untilDueMs(state) > 0) return false
    const { slots, fleet } = this.#options
    if (fleet !== undefined) return this.#hasTurn(state, fleet)
    return slots === undefined || this.#reserve(state, slots)
  }

  /** Called when a request starts, to schedule the next one. */
  begin(state: HostState): void {
    const nowMs = this.#options.monotonicNow()
    state.lastStartMs = nowMs
    if (this.#options.slots === undefined && state.turns === undefined) {
      const { intervalMs, earlyMs } = this.#nextSpacing(state)
      if (intervalMs > 0) {
        state.tatMs = Math.max(state.tatMs, nowMs) + intervalMs
        state.earlyMs = earlyMs
      }
    }
    state.reservedMs = state.turns?.granted.shift()
  }

  /** Uses a start the fleet has granted, or asks for more; the answer triggers another check. */
  #hasTurn(state: HostState, fleet: FleetSlots): boolean {
    state.turns ??= createFleetTurns()
    const { turns } = state
    if (hasTurn(state, turns, this.#options.monotonicNow())) return true
    if (state.reservedMs === undefined && !turns.isAsking) void this.#ask(state, turns, fleet)
    return false
  }

  async #ask(state: HostState, turns: FleetTurns, fleet: FleetSlots): Promise<void> {
    const { intervalMs, earlyMs } = this.#nextSpacing(state)
    const count = intervalMs === 0 ? 0 : turnsToAsk(state, turns, intervalMs)
    state.reservedLateMsMax = Math.max(RESERVED_LATE_MS_MIN, intervalMs / 10)
    turns.isAsking = true
    const grant = await fleet.take({ host: state.host, intervalMs, earlyMs, count })
    turns.isAsking = false
    const nowMs = this.#options.monotonicNow()
    keepTurns(state, turns, grant, nowMs)
    if (grant.pausedMs > 0) {
      const pausedUntilMs = nowMs + grant.pausedMs
      if (pausedUntilMs > state.pausedUntilMs) this.#options.onPaused(state, pausedUntilMs, 'paused by another worker')
    } else if (intervalMs === 0) turns.freeUntilMs = nowMs + PAUSE_LOOK_MS
    this.#options.onTurns(state)
  }

  /** Checks the pauses of the other processes, then takes the next slot or uses the reserved one. */
  #reserve(state: HostState, slots: SharedSlots): boolean {
    const { now, onPaused } = this.#options
    const nowMs = this.#options.monotonicNow()
    const pausedUntilMs = nowMs + slots.pausedUntilMs(state.host) - now()
    if (pausedUntilMs > Math.max(nowMs, state.pausedUntilMs)) {
      onPaused(state, pausedUntilMs, 'paused by another process')
      return false
    }
    // A missed slot is void: starting now could collide with another process's slot.
    if (state.reservedMs !== undefined && nowMs - state.reservedMs <= state.reservedLateMsMax) return true
    const { intervalMs, earlyMs } = this.#nextSpacing(state)
    state.reservedLateMsMax = Math.max(RESERVED_LATE_MS_MIN, intervalMs / 10)
    state.reservedMs = intervalMs === 0 ? nowMs : nowMs + slots.reserve(state.host, intervalMs, earlyMs) - now()
    return state.reservedMs <= nowMs
  }

  #nextSpacing(state: HostState): { intervalMs: number; earlyMs: number } {
    const { intervalMs, delayMsMin, delayMsMax } = state.limits
    const jitteredMs = delayMsMax > 0 ? delayMsMin + this.#options.random() * (delayMsMax - delayMsMin) : 0
    return spacing(intervalMs, Math.max(jitteredMs, state.crawlDelayMs))
  }
}
