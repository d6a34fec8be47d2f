/**
 * Why a run did not fetch something it found: a closed list. The summary, `run.json`, API, `stats`, metrics and events use these
 * names. Dropped links are counted per page: a link on two pages counts twice, a link that one page has twice counts once.
 */
import { type CountSums, type Counts, countsOf } from './counts.ts'

interface NotFetchedKind {
  /** Follows a number: "3 forbidden by robots.txt". */
  readonly what: string
  /** The run may be missing something it should have fetched. The other reasons are intended: its limits say so. */
  readonly isWarning: boolean
  /** Counts tasks that were queued and then skipped. The other reasons count links that were never queued. */
  readonly isTask?: boolean
}

export const NOT_FETCHED = {
  robots: { what: 'forbidden by robots.txt', isWarning: false, isTask: true },
  file: { what: 'served as a file (image, PDF, archive …)', isWarning: false, isTask: true },
  nofollow: { what: 'marked nofollow', isWarning: false },
  host: { what: 'on other hosts', isWarning: false },
  depth: { what: 'deeper than the depth limit', isWarning: false },
  links: { what: 'over linksMax, the limit for one page', isWarning: true },
  trap: { what: 'in a part of the site that looks endless', isWarning: true },
  facets: { what: 'with too many combinations of filter parameters', isWarning: true },
  copy: { what: 'on pages that repeat the content of other pages', isWarning: true },
  'error-page': { what: 'on error pages', isWarning: false },
  route: { what: 'not matching the pattern of the route', isWarning: false },
  conflict: { what: 'that another route already has or claims', isWarning: true },
  data: { what: 'with data that the schema of the route rejects', isWarning: true },
  scheme: { what: 'with a scheme that is not fetched (mailto:, javascript: …)', isWarning: false },
  url: { what: 'with an invalid or overlong URL', isWarning: false },
} as const satisfies Record<string, NotFetchedKind>

export type NotFetchedReason = keyof typeof NOT_FETCHED
export type NotFetchedCounts = Partial<Record<NotFetchedReason, number>>

const REASONS = Object.keys(NOT_FETCHED) as NotFetchedReason[]
const GROUP = 'notFetched'

export function countNotFetched(counts: NotFetchedCounts, reason: NotFetchedReason, by = 1): void {
  if (by > 0) counts[reason] = (counts[reason] ?? 0) + by
}

/** As run counters, to be added to the outcome of a task. */
export function notFetchedCounters(counts: NotFetchedCounts): CountSums | undefined {
  const named = REASONS.flatMap((reason) => (counts[reason] ? [[`${GROUP}.${reason}`, counts[reason]] as const] : []))
  return named.length === 0 ? undefined : Object.fromEntries(named)
}

/** Read from the counters of a run, in the order of the list. */
export function notFetchedOf(counters: Counts | undefined): NotFetchedCounts {
  const counts = Object.fromEntries(countsOf(counters ?? {}, GROUP))
  return Object.fromEntries(REASONS.flatMap((reason) => (counts[reason] ? [[reason, counts[reason]]] : [])))
}

/** How many queued tasks were skipped: the frontier counts them as completed. */
export function skippedTasks(counters: Counts): number {
  const counts = notFetchedOf(counters)
  return REASONS.filter(isTask).reduce((sum, reason) => sum + (counts[reason] ?? 0), 0)
}

/** What may be missing, for a run's warnings: `not followed: 12 links over linksMax, the limit for one page`. */
export function notFetchedWarnings(counts: NotFetchedCounts): string[] {
  return REASONS.filter((reason) => isWarning(reason) && counts[reason] !== undefined).map((reason) =>
    linksWords(counts[reason]!, reason),
  )
}

export const isWarning = (reason: NotFetchedReason): boolean => NOT_FETCHED[reason].isWarning

/** `3 pages forbidden by robots.txt`, `1 link on other hosts` */
export function notFetchedWords(count: number, reason: NotFetchedReason): string {
  const noun = isTask(reason) ? 'page' : 'link'
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'} ${NOT_FETCHED[reason].what}`
}

const linksWords = (count: number, reason: NotFetchedReason) => `not followed: ${notFetchedWords(count, reason)}`

const isTask = (reason: NotFetchedReason): boolean => (NOT_FETCHED[reason] as NotFetchedKind).isTask === true
