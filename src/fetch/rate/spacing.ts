/** Spacing: the arithmetic of evenly spread requests, shared by the in-process limit and by slots shared between processes. */

/** Rates and pauses of hosts, shared by the processes of one machine. Times are epoch milliseconds. */
export interface SharedSlots extends Disposable {
  /** Takes the next start time of `host`; the one after it is `intervalMs` later. `earlyMs` as in `spacing`. */
  reserve(host: string, intervalMs: number, earlyMs?: number): number
  /** No process starts a request to `host` before `untilMs`. A pause shorter than the current one changes nothing. */
  pause(host: string, untilMs: number): void
  /** 0 if the host is not paused. */
  pausedUntilMs(host: string): number
}

/** A worker's request to `FleetSlots` for one host. */
export interface SlotAsk {
  host: string
  /** 0: the host has no rate; the answer only says whether it is paused. */
  intervalMs: number
  /** As in `spacing`. */
  earlyMs: number
  /** Starts that will be needed soon. Fewer may be granted, and those not used in time expire. */
  count: number
}

/** Times are in milliseconds from the moment it arrives. */
export interface SlotGrant {
  /** In order; empty if the next free start is too far away to be granted, or the host is paused. */
  startsInMs: readonly number[]
  /** If there are no starts: when to ask again. */
  againInMs: number
  /** 0 if the host is not paused. */
  pausedMs: number
}

/**
 * Rates and pauses of hosts, shared by workers on many machines. A request takes a round trip, so several starts are granted at
 * once, but only those within `SLOT_HORIZON_MS`: no worker can hoard the slots of a slow host, and a pause takes effect in time.
 */
export interface FleetSlots extends AsyncDisposable {
  /** The starts per minute and host that it counts and enforces itself; 0 or missing: it counts none. */
  readonly perMinute?: number
  /** Never rejects: while the server cannot be reached, a worker gets its own share of the rate. */
  take(ask: SlotAsk): Promise<SlotGrant>
  /** No worker starts a request to `host` for this long. A pause shorter than the current one changes nothing. */
  pause(host: string, pausedMs: number): void
}

export const SLOT_HORIZON_MS = 250

/** Fast hosts may get this much of their rate at once: timers on a busy event loop are late by as much. */
const BURST_MS = 20

/**
 * The distance to the next request, and how much of it may be skipped to catch up after a late start. An interval set by `rps`
 * may shrink by a tenth; below 20 ms the requests of 20 ms may start together (at 1000 rps: 20), while the mean rate holds.
 * A gap that was asked for (`delay`, crawl-delay) never shrinks.
 */
export function spacing(rpsIntervalMs: number, gapMs: number): { intervalMs: number; earlyMs: number } {
  if (gapMs >= rpsIntervalMs) return { intervalMs: gapMs, earlyMs: 0 }
  return { intervalMs: rpsIntervalMs, earlyMs: Math.max(BURST_MS - rpsIntervalMs, rpsIntervalMs / 10) }
}
