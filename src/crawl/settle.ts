/** Turns the result of an attempt into an outcome for the frontier and an event for observers. */

import type { ErrorCode } from '../core/error-table.ts'
import { type ScrapeError, toErrorRecord } from '../core/errors.ts'
import type { EventOf } from '../core/events.ts'
import { type NotFetchedCounts, type NotFetchedReason, notFetchedCounters } from '../core/not-fetched.ts'
import type { ResolvedLimits } from '../core/options.ts'
import type { Page } from '../core/page.ts'
import { hostOf } from '../core/url.ts'
import type { Lease, Outcome } from '../frontier/contract.ts'
import type { PageReading } from './read-page.ts'
import { decide } from './retry.ts'

/** A finished attempt on its way through the channel to the commit. */
export interface Settled {
  readonly outcome: Outcome
  /** undefined for a task that was handed back without an attempt. */
  readonly event?: EventOf<'page'>
  readonly filled?: Record<string, number>
  /** Items that the schema rejected. */
  readonly invalid?: number
}

export interface TryTimes {
  queueMs: number
  fetchMs: number
  parseMs: number
}

export function settleDone(lease: Lease, page: Page, reading: PageReading, times: TryTimes): Settled {
  return {
    outcome: {
      kind: 'done',
      lease,
      tasks: reading.tasks,
      items: reading.items,
      ...countersOf(reading.notFetched),
    },
    event: {
      ...pageEvent(lease, 'ok', times),
      status: page.status,
      bytes: page.bytes.wire,
      fromCache: page.fromCache,
      items: reading.items.length,
      tasks: reading.tasks.length,
      ...(page.suspicion === undefined ? {} : { suspicion: page.suspicion }),
    },
    filled: reading.filled,
    invalid: reading.invalid.length,
  }
}

interface FailureContext {
  limits: ResolvedLimits
  nowMs: number
  random: () => number
  times: TryTimes
  /** A start page: if we are not allowed to fetch it, that is a failure. */
  isStart: boolean
  /** The route skips URLs that turn out to be files. */
  skipsFiles: boolean
  /** Keeps the response for people to look at; called only when a page is given up. */
  keepSnapshot: () => string | undefined
}

const FILE_CODES: ReadonlySet<ErrorCode> = new Set(['E_CONTENT_TYPE', 'E_BROWSER_DOWNLOAD'])

/** A 'halt' has no outcome: the task is handed back and the run ends with the error. */
export function settleFailure(
  lease: Lease,
  error: ScrapeError,
  context: FailureContext,
): Settled & { halt?: ScrapeError } {
  const { limits, nowMs, random, times } = context
  const reason = error.kind.notFetched ?? (context.skipsFiles && FILE_CODES.has(error.code) ? 'file' : undefined)
  if (reason !== undefined && !context.isStart) return settleSkipped(lease, error, reason, times)
  const record = toErrorRecord(error)
  const decision = decide(error, lease, limits, nowMs, random)
  const details = { error: record, ...(error.details.status === undefined ? {} : { status: error.details.status }) }
  switch (decision.kind) {
    case 'retry':
      return {
        outcome: { kind: 'retry', lease, atMs: decision.atMs, error: record },
        event: { ...pageEvent(lease, 'retried', times), ...details, retryAtMs: decision.atMs },
      }
    case 'postpone':
      return {
        outcome: { kind: 'postpone', lease, atMs: decision.atMs, reason: record.message },
        event: { ...pageEvent(lease, 'postponed', times), ...details, retryAtMs: decision.atMs },
      }
    case 'dead': {
      const snapshot = context.keepSnapshot()
      const kept = snapshot === undefined ? {} : { snapshot }
      return {
        outcome: { kind: 'dead', lease, error: record, ...kept },
        event: { ...pageEvent(lease, 'failed', times), ...details, ...kept },
      }
    }
    case 'halt':
      return { ...settleHandedBack(lease, error.message), halt: error }
    default:
      return decision satisfies never
  }
}

/** Done without having been fetched. */
function settleSkipped(lease: Lease, error: ScrapeError, reason: NotFetchedReason, times: TryTimes): Settled {
  return {
    outcome: { kind: 'done', lease, ...countersOf({ [reason]: 1 }) },
    event: { ...pageEvent(lease, 'skipped', times), error: toErrorRecord(error) },
  }
}

function countersOf(counts: NotFetchedCounts): Pick<Outcome, 'counts'> {
  const counters = notFetchedCounters(counts)
  return counters === undefined ? {} : { counts: counters }
}

/** Costs no attempt: used when a worker drains, or a host is paused for long. */
export function settleHandedBack(lease: Lease, reason: string, atMs = 0): Settled {
  return { outcome: { kind: 'postpone', lease, atMs, reason } }
}

function pageEvent(lease: Lease, outcome: EventOf<'page'>['outcome'], times: TryTimes): EventOf<'page'> {
  const { url, route } = lease.task
  return { type: 'page', outcome, url, host: hostOf(url), route, attempt: lease.attempt, ...times }
}
