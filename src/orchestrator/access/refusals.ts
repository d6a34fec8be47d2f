/**
 * Refused requests for the audit, bounded: somebody who is refused a thousand times a second must not fill the disk. Each address and
 * status is told once a minute, the next time with how many there were in between; and at most 60 lines a minute in all.
 */
import { LRUCache } from 'lru-cache'
import type { AuditEntry } from './audit.ts'

const EVERY_MS = 60_000
const LINES_MAX = 60
const KNOWN_MAX = 1000

export type Refusal = Omit<AuditEntry, 'detail'>

/** The returned function gives the line to write, or undefined when this one is only counted. */
export function boundedRefusals(now: () => number = Date.now): (refusal: Refusal) => AuditEntry | undefined {
  const known = new LRUCache<string, { saidAtMs: number; silent: number }>({ max: KNOWN_MAX })
  let minuteAtMs = Number.NEGATIVE_INFINITY
  let lines = 0
  return (refusal) => {
    const atMs = now()
    if (atMs - minuteAtMs >= EVERY_MS) {
      minuteAtMs = atMs
      lines = 0
    }
    const key = `${refusal.address} ${refusal.status}`
    const before = known.get(key) ?? { saidAtMs: Number.NEGATIVE_INFINITY, silent: 0 }
    if (atMs - before.saidAtMs < EVERY_MS || lines >= LINES_MAX) {
      known.set(key, { ...before, silent: before.silent + 1 })
      return undefined
    }
    lines++
    known.set(key, { saidAtMs: atMs, silent: 0 })
    return { ...refusal, detail: before.silent === 0 ? '' : `and ${before.silent} more since the last line` }
  }
}
