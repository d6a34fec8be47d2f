/** Turns a try at a file task into its outcome for the frontier and its event. */
import { addCounts, countsOfTry } from '../core/counts.ts'
import { type ScrapeError, toErrorRecord } from '../core/errors.ts'
import type { EventOf } from '../core/events.ts'
import { notFetchedCounters } from '../core/not-fetched.ts'
import { hostOf } from '../core/url.ts'
import type { Lease, Outcome } from '../frontier/contract.ts'
import type { Decide, FileJob, FileOrder, RecordOrder, StoredFile } from './contract.ts'
import { recordOf, recordTask } from './orders.ts'

export interface Settled {
  outcome: Outcome
  /** Emitted once the outcome is committed. */
  event?: EventOf<'file'>
  /** A kept file that is no longer needed once the outcome is committed. */
  path?: string
}

export function settleStored(
  lease: Lease,
  job: FileJob,
  stored: StoredFile,
  times: { startedMs: number; nowMs: number },
): Settled {
  const { bytes, where, isSame } = stored
  const { order } = job
  return {
    outcome: { kind: 'done', lease, tasks: [recordTask(lease.task, recordOf(job, stored, times.nowMs))] },
    event: { ...fileEvent(lease, order.type, times.startedMs), outcome: isSame ? 'same' : 'stored', bytes, where },
    ...(order.type === 'upload' ? { path: order.path } : {}),
  }
}

export function settleRecorded(lease: Lease, startedMs: number): Settled {
  return {
    outcome: { kind: 'done', lease },
    event: { ...fileEvent(lease, 'db_update', startedMs), outcome: 'recorded' },
  }
}

/** Costs no try. */
export function settleHandedBack(lease: Lease, reason: string): Settled {
  return { outcome: { kind: 'postpone', lease, atMs: 0, reason } }
}

/** `halt`: the task is handed back, and the run ends. */
export function settleFailure(
  lease: Lease,
  order: FileOrder['type'],
  error: ScrapeError,
  { decide, startedMs }: { decide: Decide; startedMs: number },
): Settled & { halt?: ScrapeError } {
  const record = toErrorRecord(error)
  const counts = error.kind.notFetched && notFetchedCounters({ [error.kind.notFetched]: 1 })
  if (counts !== undefined)
    return {
      outcome: { kind: 'done', lease, counts },
      event: { ...fileEvent(lease, order, startedMs), outcome: 'skipped', error: record },
    }
  const event = { ...fileEvent(lease, order, startedMs), error: record }
  const decision = decide(error, lease.attempt)
  switch (decision.kind) {
    case 'retry':
      return {
        outcome: { kind: 'retry', lease, atMs: decision.atMs, error: record },
        event: { ...event, outcome: 'retried', retryAtMs: decision.atMs },
      }
    case 'postpone':
      return {
        outcome: { kind: 'postpone', lease, atMs: decision.atMs, reason: record.message },
        event: { ...event, outcome: 'postponed', retryAtMs: decision.atMs },
      }
    case 'dead':
      return { outcome: { kind: 'dead', lease, error: record }, event: { ...event, outcome: 'failed' } }
    case 'halt':
      return { ...settleHandedBack(lease, error.message), halt: error }
    default:
      return decision satisfies never
  }
}

function fileEvent(lease: Lease, order: FileOrder['type'], startedMs: number): EventOf<'file'> {
  const { data, url: taskUrl } = lease.task
  const url = order === 'db_update' ? (data as unknown as RecordOrder).record.url : taskUrl
  const ms = Math.round(performance.now() - startedMs)
  return { type: 'file', outcome: 'stored', order, url, host: hostOf(url), attempt: lease.attempt, ms }
}

/** Includes what the outcome adds to the run's counters; a task handed back adds nothing. */
export function countedOutcome({ outcome, event }: Settled): Outcome {
  if (event === undefined) return outcome
  const counts = countsOfTry('files', event)
  addCounts(counts, outcome.counts)
  return { ...outcome, counts }
}
