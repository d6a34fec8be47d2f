/** Hosts that turn us away and hosts that are left alone, kept from events in constant memory. */
import type { EventOf } from '../core/events.ts'
import { formatCount, plural } from './format.ts'

export interface BlockedGroup {
  class: string
  vendor: string
  /** A host it happened at, the last one. */
  host: string
  count: number
  /** When it last happened (epoch ms). */
  atMs: number
}

export interface OpenCircuit {
  host: string
  state: 'open' | 'half-open'
  reason: string
  /** When the next probe may go; left out when nobody knows. */
  untilMs?: number
}

interface Trouble {
  recordBlocked(event: EventOf<'blocked'>): void
  recordCircuit(event: EventOf<'circuit'>): void
  /** Most frequent first. */
  blocked(): BlockedGroup[]
  circuits(): OpenCircuit[]
}

const GROUPS_MAX = 100
const CIRCUITS_MAX = 1000

export function createTrouble(now: () => number): Trouble {
  const groups = new Map<string, BlockedGroup>()
  const circuits = new Map<string, OpenCircuit>()
  return {
    recordBlocked({ class: cls, vendor, host }) {
      const key = `${cls} ${vendor}`
      const known = groups.get(key)
      if (known === undefined && groups.size >= GROUPS_MAX) return
      groups.set(key, { class: cls, vendor, host, count: (known?.count ?? 0) + 1, atMs: now() })
    },
    recordCircuit({ host, state, reason, untilMs }) {
      circuits.delete(host)
      if (state === 'closed' || circuits.size >= CIRCUITS_MAX) return
      circuits.set(host, { host, state, reason, ...(untilMs === undefined ? {} : { untilMs }) })
    },
    blocked: () => [...groups.values()].map((group) => ({ ...group })).sort((a, b) => b.count - a.count),
    circuits: () => [...circuits.values()].map((circuit) => ({ ...circuit })),
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

/** Notes for the end of a run: who turned us away, how often, and what is still left alone. */
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
