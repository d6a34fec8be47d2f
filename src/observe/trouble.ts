/** Hosts that throttle or block us, or whose circuit is open, collected from events in constant memory. */
import type { EventOf } from '../core/events.ts'
import { formatCount, plural } from './format.ts'

export interface BlockedGroup {
  class: string
  vendor: string
  /** The last host where it happened. */
  host: string
  count: number
  /** When it last happened (epoch ms). */
  atMs: number
}

export interface OpenCircuit {
  host: string
  state: 'open' | 'half-open'
  reason: string
  /** When the next probe may be sent; undefined if unknown. */
  untilMs?: number
}

export interface ThrottledHost {
  host: string
  untilMs: number
  reason: string
  /** How often, since the host was last calm for a minute. */
  count: number
}

const GROUPS_MAX = 100
const CIRCUITS_MAX = 1000
const THROTTLED_MAX = 200
/** A host that throttles again this soon after its pause is the same problem, so its count continues. */
const HOST_CALM_MS = 60_000

export class HostTrouble {
  readonly #groups = new Map<string, BlockedGroup>()
  readonly #circuits = new Map<string, OpenCircuit>()
  readonly #throttled = new Map<string, ThrottledHost>()

  recordBlocked({ class: cls, vendor, host }: EventOf<'blocked'>, atMs: number): void {
    const key = `${cls} ${vendor}`
    const known = this.#groups.get(key)
    if (known === undefined && this.#groups.size >= GROUPS_MAX) return
    this.#groups.set(key, { class: cls, vendor, host, count: (known?.count ?? 0) + 1, atMs })
  }

  recordCircuit({ host, state, reason, untilMs }: EventOf<'circuit'>): void {
    this.#circuits.delete(host)
    if (state === 'closed' || this.#circuits.size >= CIRCUITS_MAX) return
    this.#circuits.set(host, { host, state, reason, untilMs })
  }

  recordThrottled({ host, untilMs, reason }: EventOf<'throttled'>, nowMs: number): void {
    const known = this.#throttled.get(host)
    if (known === undefined && this.#throttled.size >= THROTTLED_MAX) this.#forgetThrottled(nowMs)
    const isStill = known !== undefined && known.untilMs + HOST_CALM_MS > nowMs
    this.#throttled.set(host, {
      host,
      untilMs: isStill ? Math.max(known.untilMs, untilMs) : untilMs,
      reason,
      count: isStill ? known.count + 1 : 1,
    })
  }

  /** Most frequent first. */
  blocked(): BlockedGroup[] {
    return [...this.#groups.values()].map((group) => ({ ...group })).sort((a, b) => b.count - a.count)
  }

  circuits(): OpenCircuit[] {
    return [...this.#circuits.values()].map((circuit) => ({ ...circuit }))
  }

  /** Hosts that are throttled now, the longest wait first. */
  throttled(nowMs: number): ThrottledHost[] {
    return [...this.#throttled.values()]
      .filter(({ untilMs }) => untilMs > nowMs)
      .map((host) => ({ ...host }))
      .sort((a, b) => b.untilMs - a.untilMs)
  }

  /** Forgets those whose wait is over; if there are none, the oldest. */
  #forgetThrottled(nowMs: number): void {
    for (const [host, { untilMs }] of this.#throttled) if (untilMs <= nowMs) this.#throttled.delete(host)
    if (this.#throttled.size < THROTTLED_MAX) return
    const oldest = this.#throttled.keys().next()
    if (!oldest.done) this.#throttled.delete(oldest.value)
  }
}

const WORDS: Readonly<Record<string, string>> = {
  rate_limit: 'asked to slow down',
  challenge: 'challenged',
  captcha: 'met with a CAPTCHA',
  blocked: 'blocked',
  geo: 'blocked for where we are',
  consent: 'asked for consent',
  login_wall: 'sent to a login',
}

/** `blocked by cloudflare`, `met with a CAPTCHA`. */
export function blockedWords({ class: cls, vendor }: Pick<BlockedGroup, 'class' | 'vendor'>): string {
  const what = Object.hasOwn(WORDS, cls) ? WORDS[cls]! : cls
  return vendor === '' || vendor === 'unknown' ? what : `${what} by ${vendor}`
}

/** Notes for the end of a run: who blocked us, how often, and which circuits are still open. */
export function troubleNotes({ blocked, circuits }: { blocked: BlockedGroup[]; circuits: OpenCircuit[] }): string[] {
  const told = blocked.filter(({ class: cls }) => cls !== 'rate_limit').slice(0, 5)
  const notes = told.map((group) => `${formatCount(group.count)}× ${blockedWords(group)}, last at ${group.host}`)
  const [first] = circuits
  if (first !== undefined) {
    const others = circuits.length === 1 ? '' : ` and ${plural(circuits.length - 1, 'other host')}`
    notes.push(`${first.host}${others} left alone: ${first.reason}`)
  }
  return notes
}
