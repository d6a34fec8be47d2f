/**
 * A run seen from outside while it may still be running, in another process on this machine or on a fleet. Two implementations:
 * `folder-run.ts` for a local run, `stored-run.ts` for a fleet run.
 */
import type { ConfigValues } from '../config/option-table.ts'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { FileRecord } from '../files/contract.ts'
import type { Frontier } from '../frontier/contract.ts'
import type { StoredWorker } from '../store/contract.ts'
import { troubleText } from './queue-of-run.ts'

export interface OpenRun extends AsyncDisposable {
  /** As of the last refresh. */
  readonly record: RunRecord
  /** A process is working on it now. */
  readonly isAlive: boolean
  /** It has no worker, and will have none until it is reopened. A fleet run may have no workers without being over. */
  readonly isOver: boolean
  /** Undefined for a local run, which does not report them. Includes workers that have ended: their work counts. */
  readonly workers: readonly StoredWorker[] | undefined
  /** What the broker last reported about its queues (`askBroker`), if the run has one whose management API answers. */
  readonly broker: readonly BrokerQueue[] | undefined
  /**
   * Not all of its start tasks are in the queue: they come from a list of URLs, or from the scraper itself. Undefined: all are.
   */
  readonly filling: 'urls' | 'start' | undefined
  /** Undefined if the queue is gone with its process (`memory:`) or is at a place that was not given. */
  readonly frontier: Frontier | undefined
  /** Why a fleet run has no queue here: it uses another one, or it is lost. Its figures are then the last reported ones. */
  readonly trouble?: ScrapeError | undefined
  /** Where it is stored, for display: a folder, or a database. */
  readonly place: string
  /** Its local folder, if it has one. */
  readonly folder: string | undefined
  /** A name that identifies exactly this run. */
  readonly word: string

  /** Updates record, workers and liveness. */
  refresh(): Promise<void>
  /**
   * Updates `broker`, every few seconds at most. A broker that does not answer costs two seconds, and is then left alone for a
   * while.
   */
  askBroker(): Promise<void>
  /** The beginning of a dead letter's response, and where all of it is. */
  snapshot(name: string): Promise<{ place: string; head: string | undefined }>
  /** The screenshot of a page that failed in a browser, as a local file; undefined if none was taken. */
  picture(snapshot: string): Promise<string | undefined>
  /** Undefined if the run keeps no items that can be read one by one. */
  items(): Promise<RunItems | undefined>
  /** The files it stored, a few hundred records at a time. */
  files(): AsyncIterable<readonly FileRecord[]>
  /** A finished local output file of the run in this format. */
  finishedFile(format: string): string | undefined
  readonly log: RunLogLines
  /** Replaces the record of a run without workers. False if its state has changed in the meantime. */
  saveRecord(record: RunRecord): Promise<boolean>
  /** The run has work again: makes a search for unfinished runs find it. */
  reopen(reason: string): Promise<void>
  /** The command that resumes it, without the program's name. */
  resumeCommand(): string[]
}

/** Depths and messages per second, as reported by RabbitMQ's management API. */
export interface BrokerQueue {
  name: string
  ready: number
  unacked: number
  consumers: number
  publishRate: number
  deliverRate: number
  ackRate: number
}

/** An item as a line of JSON, with its key if the run stored it. */
export interface ItemLine {
  key?: string
  json: string
}

/** With the position after it, from which `after` continues; its form depends on the kind of run. */
export interface PlacedLine extends ItemLine {
  position: string
}

/** The accepted items in order: for a running run, those that are committed for good. */
export interface RunItems {
  /** Every line comes with its key. */
  readonly isKeyed: boolean
  /** A few hundred at a time. Each call starts over. */
  batches(): AsyncIterable<readonly ItemLine[]>
  /**
   * Items after a position, a few hundred at a time; without one, all. Throws `E_OPTION` for a position that is not from this
   * run.
   */
  after(position?: string): Promise<AsyncIterable<readonly PlacedLine[]>>
  /** The same as JSON Lines, in chunks that need not end with a line. */
  text(): AsyncIterable<string | Buffer>
  /** Columns of the CSV that the run wrote itself, in the scraper's order. */
  columns(): Promise<string[] | undefined>
}

export interface RunLogLines {
  /** Lines written since the last call, a few hundred at a time; the first call begins with the oldest. */
  read(): AsyncIterable<readonly string[]>
  /** No more lines will be added. */
  isComplete(): boolean
  /** An independent reader, which begins with the oldest line. */
  fromStart(): RunLogLines
}

export type RunPlaces = Pick<ConfigValues, 'out' | 'frontier'> & Partial<Pick<ConfigValues, 'store' | 'redis'>>

/** The number of items or bytes that was returned as a position. */
export function numberOfPosition(position: string | undefined): number {
  if (position === undefined) return 0
  const at = /^\d{1,15}$/.test(position) ? Number(position) : Number.NaN
  if (Number.isNaN(at)) throw noPosition(position)
  return at
}

export const noPosition = (position: string | undefined) =>
  new ScrapeError('E_OPTION', `${JSON.stringify(position)} is not a position in the items of this run`)

/** The queue of a run, or an error that says why there is none. */
export function frontierOf(run: OpenRun): Frontier {
  if (run.frontier !== undefined) return run.frontier
  if (run.trouble !== undefined) throw run.trouble
  const isMemory = parseEngineUrl(run.record.frontier).engine === 'memory'
  throw new ScrapeError('E_RUN_NOT_FOUND', `the queue of run ${run.record.id} is not here`, {
    notes: [
      isMemory
        ? 'it ran on the memory: frontier, which ends with its process'
        : `there is no frontier.db in ${run.place}`,
    ],
    fix: isMemory
      ? 'Run again without --frontier memory: to keep the queue where others can reach it.'
      : 'Name the queue with --frontier URL, as the run did.',
  })
}

/** A note about a missing queue; undefined if it is not worth one: a finished run needs no queue, and a lost run says so itself. */
export function queueNote({ trouble, record }: Pick<OpenRun, 'trouble' | 'record'>): string | undefined {
  if (trouble === undefined || isComplete(record)) return undefined
  return trouble.code === 'E_QUEUE_LOST' && record.finishedAt !== null ? undefined : troubleText(trouble)
}

/** Commands shown to the user must find the run again. */
export function outFlag(out: string): string[] {
  return out === 'runs' ? [] : ['--out', out]
}
