/** The numbers of a run, from its queue and its record. */
import { notFetchedCounters, skippedTasks } from '../core/not-fetched.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { fileTasksDone, fileWork, hasFiles } from '../observe/progress-counts.ts'
import type { StoredWorker } from '../store/contract.ts'
import type { OpenRun } from './run-view.ts'

/** Numbers of the run now: the queue's own where it is here, else what the record says. */
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

/** Those that are there now: at work, or ending it. */
export const livingWorkers = (run: OpenRun): StoredWorker[] | undefined =>
  run.workers?.filter(({ state }) => !isComplete(run.record) && (state === 'working' || state === 'draining'))

/** Workers that neither send heartbeats nor have ended. */
export const stuckWorkers = (run: OpenRun): StoredWorker[] =>
  run.workers?.filter(({ state }) => run.record.state === 'running' && state === 'stuck') ?? []

/** File tasks of a run: what is left of them as the queue has it now, how they ended as the record counted them. */
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

/** Pages done and given up on. Files come from the record, so with files it is the record's count: two looks would not fit. */
export function pagesSettled({ record }: Pick<OpenRun, 'record'>, numbers: FrontierStats): number {
  const { pages, files } = record
  return hasFiles(numbers.lanes, files) ? pages.ok + pages.failed : numbers.completed + numbers.failed
}

/** Pages settled a second since the run began. */
export function averageRate({ record }: Pick<OpenRun, 'record'>, numbers: FrontierStats): number {
  // The record is up to 2 s older than the queue: its own count goes with its own time.
  const { ok, failed } = record.pages
  const settled = record.state === 'running' ? ok + failed : pagesSettled({ record }, numbers)
  return record.durationMs > 0 ? (settled / record.durationMs) * 1000 : 0
}
