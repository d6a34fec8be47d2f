/** What all engines have in common about dead letters: one cause for many messages, and the record of a lost worker. */
import type { ErrorRecord } from '../../core/errors.ts'
import { ScrapeError, toErrorRecord } from '../../core/errors.ts'
import { hostOf } from '../../core/url.ts'
import type { DeadFilter, DeadGroup, DeadLetter } from '../contract.ts'

/** Maximum number of groups: more causes than this are one cause that `causeOf` fails to recognise. */
export const GROUPS_MAX = 1000

const CAUSE_CHARS_MAX = 300

/** Quoted text, with a preceding word that marks it as a name defined by the scraper. */
const QUOTED = /(\b(?:route|scraper|handler|field|header|for|of) )?"(?:[^"\\]|\\.)*"/gi

/**
 * A message without the parts that differ from page to page, so that one cause is one group. Quoted text from pages is removed; a
 * selector (at the beginning), a route or a field is a name, and a different name is a different cause.
 */
export function causeOf(message: string): string {
  return message
    .slice(0, 1000)
    .replace(QUOTED, (quoted, word: string | undefined, at: number) => (at === 0 || word ? quoted : '<text>'))
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]}]+/gi, '<url>')
    .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, '<id>')
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<id>')
    .replace(/\d+(?:[.,]\d+)*/g, '<n>')
    .slice(0, CAUSE_CHARS_MAX)
}

export function leaseLost(losses: number): ErrorRecord {
  return toErrorRecord(new ScrapeError('E_LEASE_LOST', `the worker was lost ${losses} times while it held this task`))
}

export function matches(letter: DeadLetter, filter: DeadFilter): boolean {
  return (
    (filter.class === undefined || filter.class === letter.error.class) &&
    (filter.code === undefined || filter.code === letter.error.code) &&
    (filter.host === undefined || filter.host === hostOf(letter.task.url)) &&
    (filter.ids === undefined || filter.ids.includes(letter.task.id))
  )
}

/** Largest group first. */
export function groupByCause(letters: Iterable<DeadLetter>): DeadGroup[] {
  const groups = new Map<string, DeadGroup>()
  for (const { task, error, diedAtMs } of letters) {
    const cause = causeOf(error.message)
    const name = JSON.stringify([error.code, error.class, cause])
    const group = groups.get(name)
    if (group === undefined) {
      const { code, class: cls } = error
      groups.set(name, {
        code,
        class: cls,
        cause,
        count: 1,
        exampleUrl: task.url,
        firstAtMs: diedAtMs,
        lastAtMs: diedAtMs,
      })
    } else {
      group.count++
      group.firstAtMs = Math.min(group.firstAtMs, diedAtMs)
      group.lastAtMs = Math.max(group.lastAtMs, diedAtMs)
    }
  }
  return [...groups.values()].sort((a, b) => b.count - a.count).slice(0, GROUPS_MAX)
}
