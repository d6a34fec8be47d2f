/** The store: what a fleet knows in common, its runs and its workers. The queue itself is the frontier's. */

import type { ItemRow, LoggedItem } from '../core/item.ts'
import type { Limits } from '../core/options.ts'
import type { RunRecord, RunState, WorkTally } from '../core/run.ts'
import type { Json } from '../core/task.ts'
import type { FrontierStats } from '../frontier/contract.ts'

export interface Store extends AsyncDisposable {
  /** Where it is, for a person: without a password. */
  readonly place: string

  /** Throws when a run of this id exists. */
  createRun(run: NewStoredRun): Promise<void>
  /** By id, or by scraper: its newest one. Without a word the newest of all. */
  findRun(word?: string): Promise<StoredRun | undefined>
  /** Newest first; with `page` by their ids, which sort by time, from the one before that id. */
  listRuns(filter?: {
    scraper?: string
    states?: readonly RunState[]
    page?: { before?: string }
    limit?: number
    /** Those a worker of this region may take; without one it takes only those that name none. */
    openTo?: { region: string | undefined }
  }): Promise<StoredRun[]>
  /** By scraper, when its newest run that finished did so. */
  lastSuccesses(): Promise<ReadonlyMap<string, number>>
  /**
   * Replaces the record of a run that is in one of the states `from`. False, and nothing changed, when it is in another: of
   * many workers one ends a run.
   */
  saveRun(record: RunRecord, from: readonly RunState[]): Promise<boolean>

  /** Opens a run again, in whatever state it is, with these options; its time counts anew from now. */
  wakeRun(record: RunRecord, options: RunOptions): Promise<void>

  registerWorker(worker: NewWorker): Promise<void>
  /** The heartbeat, and what the worker is told in return. A worker that was declared lost is known again. */
  beat(workerId: string, report: WorkerReport): Promise<Told>
  /** It ended by itself. Its last report stays: it is part of the run's figures. */
  endWorker(workerId: string, report: WorkerReport): Promise<void>
  /** Newest first. */
  listWorkers(filter?: { runId?: string; isAlive?: boolean }): Promise<StoredWorker[]>
  /** The worker finishes what it has and ends. False when there is no such worker. */
  askDrain(workerId: string): Promise<boolean>

  /** What came back for a dead letter. */
  putSnapshot(runId: string, name: string, bytes: Uint8Array): Promise<void>
  getSnapshot(runId: string, name: string): Promise<Uint8Array | undefined>

  /** Adds those whose key the run does not have yet, and tells of each what it was. May be repeated. */
  putItems(runId: string, items: readonly ItemRow[]): Promise<('new' | 'same' | 'changed')[]>
  /** In the order they were added, from the one after `afterSeq`. */
  readItems(runId: string, range: { afterSeq: number; max: number }): Promise<LoggedItem[]>
  countItems(runId: string): Promise<number>

  /** Lines of the run's log as JSON, from all its workers. The newest `LOG_LINES_MAX` are kept. */
  addLogs(runId: string, lines: readonly string[]): Promise<void>
  /** Oldest first, from the line after `after`. */
  readLogs(runId: string, range: { after: number; max: number }): Promise<{ id: number; line: string }[]>

  /** Everything about a run, its queue and items included. */
  dropRun(id: string): Promise<void>
}

export interface NewStoredRun {
  record: RunRecord
  /** Of the scraper's source: a worker with another definition is refused. */
  definitionHash: string
  options: RunOptions
}

/** What was said when the run was started, and holds for every worker unless its own flags say otherwise. */
export interface RunOptions {
  /** Limits set outside the scraper. */
  limits: Limits
  allowPrivate: boolean
  allowAddress: readonly string[]
  userAgent: string
  /** Routing rules of a producer, as they were given. */
  rules?: Json
}

export interface StoredRun extends NewStoredRun {
  createdAtMs: number
  /** When it was created or last woken, by the store's clock. */
  wokenAtMs: number
}

/** The reply to a heartbeat. */
interface Told {
  isDrainAsked: boolean
  /** The store's clock. */
  nowMs: number
}

export interface NewWorker {
  /** `host_pid_random`. */
  id: string
  runId: string
  scraper: string
  host: string
  pid: number
  region?: string | undefined
  /** Left out: all of a run's work. */
  only?: WorkPart | undefined
}

/** The two kinds of work of a run, each for workers of its own where somebody wants that. */
export const WORK_PARTS = ['pages', 'files'] as const
export type WorkPart = (typeof WORK_PARTS)[number]

/** What a worker has done so far, and how it is. */
export interface WorkerReport {
  tally: WorkTally
  inFlight: number
  rssBytes: number
  /** How late the event loop was at worst since the last report. */
  loopLagMs: number
  /** The run's queue as last seen, for when it is not available. */
  queue?: QueueSeen
}

export type QueueSeen = Pick<FrontierStats, 'completed' | 'failed' | 'dead' | 'remaining' | 'seen' | 'counts'>

export interface StoredWorker extends NewWorker {
  /** stuck: no heartbeat for `STUCK_MS` · gone: for `GONE_MS` · ended: by itself. */
  state: 'working' | 'draining' | 'stuck' | 'gone' | 'ended'
  startedAtMs: number
  /** Since its last heartbeat, by the store's clock. */
  silentMs: number
  report: WorkerReport | undefined
}

/** A worker beats every 2 s; one that is silent this long hangs or is gone. */
export const STUCK_MS = 30_000
/** Nobody waits for a worker that has been silent this long. */
export const GONE_MS = 600_000

export const LOG_LINES_MAX = 20_000
