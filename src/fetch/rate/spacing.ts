/** Spacing: the arithmetic of evenly spread requests, shared by the in-process limit and the slots of a whole machine. */

/** Rate and pauses of hosts, shared by the processes of one machine. Times are epoch milliseconds. */
export interface SharedSlots extends Disposable {
  /** Takes the next start time of `host`; the one after it is `intervalMs` later. `earlyMs` as in `spacing`. */
  reserve(host: string, intervalMs: number, earlyMs?: number): number
  /** No process starts a request to `host` before `untilMs`. A shorter pause than the present one changes nothing. */
  pause(host: string, untilMs: number): void
  /** 0 when the host is not paused. */
  pausedUntilMs(host: string): number
}

/** What a worker asks of `FleetSlots` for one host. */
export interface SlotAsk {
  host: string
  /** 0: the host has no rate; only whether it is paused is asked. */
  intervalMs: number
  /** As in `spacing`. */
  earlyMs: number
  /** Starts that will be needed soon. Fewer may be given, and those not used in time are void. */
  count: number
}

/** Milliseconds from the moment it arrives. */
export interface SlotGrant {
  /** In order; none when the next free one is too far away to be given out, or the host is paused. */
  startsInMs: readonly number[]
  /** Without starts: when to ask again. */
  againInMs: number
  /** 0 when the host is not paused. */
  pausedMs: number
}

/**
 * Rate and pauses of hosts, shared by workers on many machines. Asking takes a round trip, so several starts are given at once;
 * but only those within `SLOT_HORIZON_MS`: nobody can hoard the slots of a slow host, and a pause is known that long before.
 */
export interface FleetSlots extends AsyncDisposable {
  /** Starts a minute and host it counts and keeps to by itself; 0 or missing: it counts none. */
  readonly perMinute?: number
  /** Never rejects: while the others cannot be asked, a worker gets its own share of the rate. */
  take(ask: SlotAsk): Promise<SlotGrant>
  /** No worker starts a request to `host` for so long. A shorter pause than the present one changes nothing. */
  pause(host: string, pausedMs: number): void
}

export const SLOT_HORIZON_MS = 250

/** Fast hosts may have this much of their rate started at once: timers and a busy event loop are late by as much. */
const BURST_MS = 20

/**
 * The distance to the next request, and how much of it may be skipped to catch up on a late start. An interval set by `rps`
 * may shrink by a tenth; below 20 ms the requests of 20 ms may start together (at 1000 rps: 20), while the mean rate holds.
 * A gap that was asked for (`delay`, crawl-delay) never shrinks.
 */
export function spacing(rpsIntervalMs: number, gapMs: number): { intervalMs: number; earlyMs: number } {
  if (gapMs >= rpsIntervalMs) return { intervalMs: gapMs, earlyMs: 0 }
  return { intervalMs: rpsIntervalMs, earlyMs: Math.max(BURST_MS - rpsIntervalMs, rpsIntervalMs / 10) }
}
