/** The hosts a rate limit remembers: the limits of each, and which of them cannot take a request now. */
import { createHostState, type HostLimits, type HostState } from './host-state.ts'
import type { FleetSlots } from './spacing.ts'

/** `rps` 0 = no limit. `delayMs`: the gap between two requests, drawn from this range, or from 0.5 to 1.5 of one number. */
export interface PerHostOptions {
  concurrency: number
  rps: number
  delayMs: number | readonly [minMs: number, maxMs: number]
  /** Spread evenly over the minute where it is stricter than `rps`, unless the fleet counts by itself. Default 0 = no limit. */
  perMinute?: number
}

export interface KnownHostsOptions {
  perHost: PerHostOptions
  /** What is different for one host. */
  siteOf?: (host: string) => Partial<PerHostOptions> | undefined
  /** Hosts remembered at most, so that a delay learned late still counts from the last request. Default 100,000. */
  hostsMax?: number
  /** It may count requests per minute by itself. */
  fleet?: Pick<FleetSlots, 'perMinute'>
}

export class KnownHosts {
  readonly #options: KnownHostsOptions
  readonly #limits: HostLimits
  readonly #hosts = new Map<string, HostState>()
  /** Kept up to date on every change, so that `busy` counts nothing. */
  readonly #limited = new Set<HostState>()
  #busy: string[] | undefined = []

  constructor(options: KnownHostsOptions) {
    this.#options = options
    this.#limits = limitsOf(options, options.perHost)
  }

  get(host: string): HostState | undefined {
    return this.#hosts.get(host)
  }

  /** Of a host that is not known: a new one. */
  stateOf(host: string): HostState {
    const known = this.#hosts.get(host)
    if (known !== undefined) return known
    const hostsMax = this.#options.hostsMax ?? 100_000
    if (this.#hosts.size >= hostsMax) this.#makeRoom(hostsMax)
    const site = this.#options.siteOf?.(host)
    const limits = site === undefined ? this.#limits : limitsOf(this.#options, { ...this.#options.perHost, ...site })
    const state = createHostState(host, limits)
    this.#hosts.set(host, state)
    return state
  }

  /** False for a host that was forgotten meanwhile, even if it is known again. */
  has(state: HostState): boolean {
    return this.#hosts.get(state.host) === state
  }

  [Symbol.iterator](): Iterator<HostState> {
    return this.#hosts.values()
  }

  /** Hosts that cannot take a request now. */
  get limited(): Iterable<HostState> {
    return this.#limited
  }

  isLimited(state: HostState): boolean {
    return this.#limited.has(state)
  }

  setLimited(state: HostState, isLimited: boolean): void {
    if (this.#limited.has(state) === isLimited) return
    if (isLimited) this.#limited.add(state)
    else this.#limited.delete(state)
    this.#busy = undefined
  }

  /** The names of those limited. */
  busy(): string[] {
    this.#busy ??= Array.from(this.#limited, (state) => state.host)
    return this.#busy
  }

  clear(): void {
    this.#hosts.clear()
    this.#limited.clear()
    this.#busy = []
  }

  /**
   * Forgets the oldest idle hosts; if there are too few, the oldest paused ones, because a million paused hosts must not fill
   * the memory either. A hundredth at once: a Map walked from its start for every host is slow (74 µs each, measured).
   */
  #makeRoom(hostsMax: number): void {
    let room = Math.ceil(hostsMax / 100)
    for (const mayForgetPaused of [false, true]) {
      for (const state of this.#hosts.values()) {
        if (room === 0) return
        if (state.active > 0 || state.waiters.length > 0) continue
        if (this.#limited.has(state) && !mayForgetPaused) continue
        this.#hosts.delete(state.host)
        state.cancelTimer?.()
        this.setLimited(state, false)
        room--
      }
    }
  }
}

function limitsOf(options: KnownHostsOptions, perHost: PerHostOptions): HostLimits {
  const { delayMs, concurrency } = perHost
  const [delayMsMin, delayMsMax] = typeof delayMs === 'number' ? [0.5 * delayMs, 1.5 * delayMs] : delayMs
  return { concurrency, intervalMs: intervalMsOf(options, perHost), delayMsMin, delayMsMax }
}

function intervalMsOf({ fleet }: KnownHostsOptions, { rps, perMinute = 0 }: PerHostOptions): number {
  const intervalMs = rps > 0 ? 1000 / rps : 0
  // The fleet counts one number for all hosts, and is asked for no starts of hosts without a rate.
  const isCounted = fleet?.perMinute === perMinute && rps > 0
  return perMinute === 0 || isCounted ? intervalMs : Math.max(intervalMs, 60_000 / perMinute)
}
