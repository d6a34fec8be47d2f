/** The figures of a run, from its queue and its record. */
import { notFetchedCounters, skippedTasks } from '../core/not-fetched.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { fileTasksDone, fileWork, hasFiles } from '../observe/progress-counts.ts'
import type { StoredWorker } from '../store/contract.ts'
import type { OpenRun } from './run-view.ts'

/** The current figures: from the queue if it is available, else from the record. */
export async function runStats({ frontier, record }: Pick<OpenRun, 'frontier' | 'record'>): Promise<FrontierStats> {
  if (frontier !== undefined) return await frontier.stats()
  const { pages, files } = record
  const { remaining, dead } = pages
  const counts = notFetchedCounters(record.notFetched ?? {}) ?? {}
  const completed = pages.ok + fileTasksDone(files) + skippedTasks(counts)
  const failed = pages.failed + files.failed
  return {
    pending: remaining,
    claimed: 0,
    completed,
    failed,
    dead,
    remaining,
    seen: completed + failed + remaining,
    items: record.items.new,
    counts,
    isPaused: false,
    pauseReason: undefined,
    lanes: {},
    hosts: [],
  }
}

/** The workers present now: working or draining. */
export const livingWorkers = (run: OpenRun): StoredWorker[] | undefined =>
  run.workers?.filter(({ state }) => !isComplete(run.record) && (state === 'working' || state === 'draining'))

/** Workers that neither send heartbeats nor have ended. */
export const stuckWorkers = (run: OpenRun): StoredWorker[] =>
  run.workers?.filter(({ state }) => run.record.state === 'running' && state === 'stuck') ?? []

/** File tasks of a run: what is left is read from the queue, outcomes come from the record. */
export interface RunFiles {
  pending: number
  claimed: number
  stored: number
  same: number
  failed: number
}

export function runFiles({ files: { stored, same, failed } }: RunRecord, { lanes }: FrontierStats): RunFiles {
  return { ...fileWork(lanes), stored, same, failed }
}

/**
 * Pages done and given up on. The number of files comes from the record, so with files the record's count is used: figures from
 * different times would not match.
 */
export function pagesSettled({ record }: Pick<OpenRun, 'record'>, numbers: FrontierStats): number {
  const { pages, files } = record
  return hasFiles(numbers.lanes, files) ? pages.ok + pages.failed : numbers.completed + numbers.failed
}

/** Pages settled per second since the run began. */
export function averageRate({ record }: Pick<OpenRun, 'record'>, numbers: FrontierStats): number {
  // The record is up to 2 s older than the queue, so its own count goes with its own duration.
  const { ok, failed } = record.pages
  const settled = record.state === 'running' ? ok + failed : pagesSettled({ record }, numbers)
  return record.durationMs > 0 ? (settled / record.durationMs) * 1000 : 0
}
