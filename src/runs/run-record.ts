/** The record of a run: created, kept up to date, and judged at the end. */
import { type Counts, countsOf } from '../core/counts.ts'
import { ERRORS, type ErrorCode } from '../core/error-table.ts'
import { exitCodeOfClass } from '../core/errors.ts'
import { notFetchedOf, notFetchedWarnings, skippedTasks } from '../core/not-fetched.ts'
import type { Limits } from '../core/options.ts'
import { type FileCounts, isComplete, NO_FILES, type RunRecord, type WorkTally } from '../core/run.ts'
import type { Json } from '../core/task.ts'
import type { CompiledScraper } from '../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../crawl/contract.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { type FullRun, fullRunWords } from './earlier-run.ts'

const NOTE_LENGTH_MAX = 300

interface RecordStart {
  /** The record of the run being resumed. */
  previous: RunRecord | undefined
  runId: string
  scraper: string
  args: Json
  limits?: Limits
  isServed?: boolean
  source: string
  frontier: string
  /** Fields of the scraper's items; empty if its schema does not list them. */
  fields?: readonly string[]
  nowMs: number
}

export function startRecord({ previous, runId, scraper, nowMs, fields = [], ...given }: RecordStart): RunRecord {
  const zero = {
    pages: { ok: 0, failed: 0, retried: 0, postponed: 0, remaining: 0, dead: 0 },
    items: { new: 0, same: 0, changed: 0, invalid: 0 },
    files: NO_FILES,
  }
  return {
    id: runId,
    scraper,
    startedAt: new Date(nowMs).toISOString(),
    durationMs: 0,
    ...zero,
    fieldFill: {},
    bytes: 0,
    latencyMs: { p50: 0, p95: 0 },
    rssBytesMax: 0,
    cpuMs: 0,
    errors: [],
    notFetched: {},
    outputs: [],
    warnings: [],
    ...previous,
    state: 'running',
    reason: null,
    exitCode: null,
    finishedAt: null,
    ...given,
    ...(fields.length === 0 ? {} : { fields: [...fields] }),
  }
}

/**
 * Limits of a session: a resumed run keeps those it was started with, overridden by `own`. Resuming a run that a limit ended
 * means that more than that limit is wanted.
 */
export function limitsOfSession(previous: RunRecord | undefined, defaults: Limits, own: Limits): Limits {
  if (previous?.limits === undefined) return withLimits(defaults, own)
  const { pages, time, ...kept } = previous.limits
  const isReached = previous.reason === pagesReached(pages) || previous.reason === TIME_REACHED
  return withLimits(withLimits(defaults, isReached ? kept : previous.limits), own)
}

/** Later ones win, field by field. */
export function withLimits(before: Limits, own: Limits): Limits {
  return { ...before, ...own, perHost: { ...before.perHost, ...own.perHost } }
}

/** What earlier sessions of a resumed run measured, to which this session's values are added. */
export type RecordBase = Pick<RunRecord, 'fieldFill' | 'cpuMs' | 'durationMs' | 'rssBytesMax' | 'errors'>

/** What the queue does not count: measurements of this session's processes, and the order in which things were found. */
export type Measured = Pick<WorkTally, 'fieldFill' | 'latencyMs' | 'rssBytesMax' | 'cpuMs' | 'errors'>

/** Every count comes from the frontier, where it is exact even if processes were killed. */
export function updateRecord(
  record: RunRecord,
  base: RecordBase,
  stats: FrontierStats,
  tally: Measured,
  sessionMs: number,
): void {
  const { counts } = stats
  if (isUncounted(stats)) {
    Object.assign(record.pages, { remaining: stats.remaining, dead: stats.dead })
    setFiles(record, stats, record.files)
    return
  }
  const counted = (name: string) => counts[name] ?? 0
  record.pages = {
    ok: 0,
    failed: 0,
    retried: counted('pages.retried'),
    postponed: counted('pages.postponed'),
    remaining: stats.remaining,
    dead: stats.dead,
    ...(counted('pages.suspect') === 0 ? {} : { suspect: counted('pages.suspect') }),
  }
  setFiles(record, stats, filesCounted(counts))
  record.notFetched = notFetchedOf(counts)
  const changed = counted('items.changed')
  record.items = {
    new: stats.items,
    same: Math.max(0, counted('items.emitted') - stats.items - changed),
    changed,
    invalid: counted('items.invalid'),
  }
  record.bytes = counted('pages.bytes')
  record.fieldFill = fillOf(counts, [...Object.keys(tally.fieldFill), ...Object.keys(base.fieldFill)])
  record.errors = errorsOf(counts, [...base.errors, ...tally.errors])
  // Measured by the processes themselves: the last half second of a killed one is missing.
  record.cpuMs = base.cpuMs + tally.cpuMs
  record.durationMs = base.durationMs + sessionMs
  record.rssBytesMax = Math.max(base.rssBytesMax, tally.rssBytesMax)
  record.latencyMs = tally.latencyMs
}

/** A queue of version 0.1 kept no counters: the record's counts are all there is. */
function isUncounted({ completed, failed, counts }: FrontierStats): boolean {
  return completed + failed > 0 && Object.keys(counts).length === 0
}

function filesCounted(counts: Counts): FileCounts {
  const names = Object.keys(NO_FILES) as (keyof FileCounts)[]
  return Object.fromEntries(names.map((name) => [name, counts[`files.${name}`] ?? 0])) as unknown as FileCounts
}

/** The frontier counts all tasks; those that are neither files nor skipped are pages. */
export function setFiles(record: RunRecord, stats: FrontierStats, files: FileCounts): void {
  record.files = files
  record.pages.ok = Math.max(0, stats.completed - filesDone(files) - skippedTasks(stats.counts))
  record.pages.failed = Math.max(0, stats.failed - files.failed)
}

/** A file that was stored, or was already there, and then recorded is two tasks. */
function filesDone({ stored, same, recorded }: FileCounts): number {
  return stored + same + recorded
}

/** Based on all items the handlers emitted, including those whose key was known. Fields in the given order, then by name. */
function fillOf(counts: Counts, order: readonly string[]): Record<string, number> {
  const emitted = counts['items.emitted'] ?? 0
  const filled = new Map(countsOf(counts, 'filled'))
  const fields = new Set([...order, ...[...filled.keys()].sort()])
  return Object.fromEntries(
    [...fields].filter((field) => filled.has(field)).map((field) => [field, filled.get(field)! / emitted]),
  )
}

/** The counts are durable; an example is what this process or an earlier one saw, and may be missing. */
function errorsOf(counts: Counts, seen: RunRecord['errors']): RunRecord['errors'] {
  return countsOf(counts, 'errors')
    .map(([code, count]) => {
      const known = seen.find((error) => error.code === code)
      const cls = known?.class ?? (Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].class : 'other')
      return { code, class: cls, count, example: known?.example ?? '' }
    })
    .sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1))
}

/**
 * Sets state, reason and exit code from how the crawl ended and what the scraper expects. `before`: an earlier run that found
 * something, if known.
 */
export function judge(
  record: RunRecord,
  end: CrawlEnd,
  compiled: CompiledScraper,
  stopReason: string | undefined,
  before?: FullRun,
): void {
  Object.assign(record, verdictOf(record, end, compiled, stopReason), { isComplete: end.how === 'finished' })
  record.warnings = [
    ...(end.how === 'finished' ? emptyWarnings(record, before) : []),
    ...suspectWarnings(record),
    ...notFetchedWarnings(record.notFetched),
  ]
}

function suspectWarnings({ pages: { suspect = 0 } }: RunRecord): string[] {
  if (suspect === 0) return []
  const pages = `${suspect.toLocaleString('en')} suspect page${suspect === 1 ? '' : 's'}`
  return [`${pages}: almost no content, or a CAPTCHA and little else; possibly blocked`]
}

/** Finished without any item, not even an invalid one. */
export function isEmpty(record: RunRecord): boolean {
  const { items } = record
  return isComplete(record) && items.new + items.invalid === 0
}

type RunVerdict = Pick<RunRecord, 'state' | 'reason' | 'exitCode'>

function verdictOf(
  record: RunRecord,
  end: CrawlEnd,
  compiled: CompiledScraper,
  stopReason: string | undefined,
): RunVerdict {
  switch (end.how) {
    case 'finished': {
      const problems = [
        ...forbiddenStart(record),
        ...overThreshold(record, compiled),
        ...belowExpectation(record, compiled),
      ]
      return problems.length === 0
        ? { state: 'finished', reason: null, exitCode: 0 }
        : { state: 'failed', reason: problems.join('; '), exitCode: 1 }
    }
    case 'stopped':
      return stopped(stopReason ?? 'stopped')
    case 'limit':
      return stopped(pagesReached(compiled.limits.pages))
    case 'halted': {
      const { error } = end
      if (error.code === 'E_STOPPED') return stopped(error.message) // the handler's own message
      const reason = `${error.code}: ${error.message}`
      if (error.class === 'stopped') return stopped(reason)
      return { state: 'failed', reason, exitCode: exitCodeOfClass(error.class) }
    }
    default:
      return end satisfies never
  }
}

const pagesReached = (pages: unknown) => `the limit of ${pages} pages is reached`
export const TIME_REACHED = 'the time limit is reached'

export const SERVER_STOPPED = 'the server stopped'
export const SERVER_GONE = 'the server is gone'
export const PROCESS_LOST = 'its process ended without a word'

/** Its server ended, and the run was not cancelled since. */
export const isLeftByServer = ({ isServed, state, reason }: RunRecord) =>
  isServed === true && state === 'stopped' && [SERVER_STOPPED, SERVER_GONE, PROCESS_LOST].includes(reason ?? '')

function stopped(reason: string): RunVerdict {
  return { state: 'stopped', reason, exitCode: 4 }
}

/** A run may be meant to find nothing, but the user should not have to guess. */
function emptyWarnings(record: RunRecord, before: FullRun | undefined): string[] {
  if (!isEmpty(record)) return []
  const { ok, failed } = record.pages
  const what = ok + failed === 0 ? 'no page was visited: start() enqueued nothing' : 'no item was emitted'
  return [before === undefined ? what : `${what}; ${fullRunWords(before)}`]
}

/** If no page succeeded, the message of the most frequent failure: the table's text is too general then. */
export function failureNotes({ pages }: RunRecord, errors: readonly { count: number; message: string }[]): string[] {
  const [first] = errors
  return pages.ok > 0 || pages.failed === 0 || first === undefined ? [] : [first.message.slice(0, NOTE_LENGTH_MAX)]
}

const isForbidden = ({ code }: { code: string }) => code === 'E_ROBOTS'

/** Start pages forbidden by robots.txt: the only pages that fail because of it. */
const forbidden = ({ errors }: RunRecord) => errors.find(isForbidden)?.count ?? 0

/** Pages forbidden by robots.txt are skipped, but a run without its start pages has not done its job. */
function forbiddenStart({ pages, notFetched, errors }: RunRecord): string[] {
  const start = pages.dead === 0 ? undefined : errors.find(isForbidden)
  if (start !== undefined)
    return [
      `robots.txt forbids the start page ${start.example}${start.count > 1 ? ` and ${start.count - 1} more` : ''}`,
    ]
  return pages.ok === 0 && notFetched.robots !== undefined ? ['robots.txt forbids every page'] : []
}

function overThreshold(record: RunRecord, { limits }: CompiledScraper): string[] {
  const problems: string[] = []
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`
  const check = (what: string, bad: number, all: number) => {
    if (all > 0 && bad / all > limits.failAt)
      problems.push(`${percent(bad / all)} of ${what}, over failAt ${percent(limits.failAt)}`)
  }
  const failed = Math.max(0, record.pages.failed - forbidden(record)) // those are reported separately
  check('pages failed', failed, record.pages.ok + failed)
  check('files failed', record.files.failed, record.files.stored + record.files.same + record.files.failed)
  check('items are invalid', record.items.invalid, record.items.new + record.items.invalid)
  return problems
}

function belowExpectation(record: RunRecord, { scraper }: CompiledScraper): string[] {
  const { items, filled = {} } = scraper.expect ?? {}
  const problems: string[] = []
  if (items?.min !== undefined && record.items.new < items.min)
    problems.push(`${record.items.new} items, expected at least ${items.min}`)
  if (items?.max !== undefined && record.items.new > items.max)
    problems.push(`${record.items.new} items, expected at most ${items.max}`)
  for (const [field, share] of Object.entries(filled) as [string, number][]) {
    const actual = Object.hasOwn(record.fieldFill, field) ? record.fieldFill[field]! : 0
    if (record.items.new > 0 && actual < share)
      problems.push(
        `field "${field}" is filled in ${(actual * 100).toFixed(1)} %, expected ${(share * 100).toFixed(1)} %`,
      )
  }
  return problems
}
