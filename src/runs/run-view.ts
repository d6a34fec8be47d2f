/**
 * A run as it is seen from outside while it may still be running, in another process on this machine or on a fleet. Two
 * implementations: `folder-run.ts` for a run of this machine, `stored-run.ts` for one of a fleet.
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
  /** As of the last look. */
  readonly record: RunRecord
  /** Somebody works on it now. */
  readonly isAlive: boolean
  /** It has no worker, and will have none until it is opened again. A fleet's run may be without workers and not be over. */
  readonly isOver: boolean
  /** Undefined for a run of one machine, which does not tell. The ended ones are among them: their work counts. */
  readonly workers: readonly StoredWorker[] | undefined
  /** What the broker last said of its queues (`askBroker`), where the run has one whose management API answers. */
  readonly broker: readonly BrokerQueue[] | undefined
  /** Not all of its start tasks are in the queue: they come from a list of URLs, or from the scraper itself. Undefined: all are. */
  readonly filling: 'urls' | 'start' | undefined
  /** Undefined when the queue is gone with its process (`memory:`) or is in a place that was not given. */
  readonly frontier: Frontier | undefined
  /** Why a fleet's run has no queue here: it is in another one, or lost. Its numbers are then the last that were reported. */
  readonly trouble?: ScrapeError | undefined
  /** Where it is kept, for a person: a folder, or a database. */
  readonly place: string
  /** Its folder on this machine, if it has one. */
  readonly folder: string | undefined
  /** A word that names exactly this run. */
  readonly word: string

  /** Brings record, workers and liveness up to date. */
  refresh(): Promise<void>
  /** Brings `broker` up to date, every few seconds at most. A broker that does not answer costs two, and is then left alone. */
  askBroker(): Promise<void>
  /** The beginning of what came back for a dead letter, and where the whole of it is. */
  snapshot(name: string): Promise<{ place: string; head: string | undefined }>
  /** The picture of a page that failed in a browser, as a file of this machine; undefined when none was taken. */
  picture(snapshot: string): Promise<string | undefined>
  /** Undefined when the run keeps none that can be read one by one. */
  items(): Promise<RunItems | undefined>
  /** The files it stored, some hundred records at a time. */
  files(): AsyncIterable<readonly FileRecord[]>
  /** A file in this format that the run has finished, here. */
  finishedFile(format: string): string | undefined
  readonly log: RunLogLines
  /** Replaces the record of a run without workers. False if its state has changed in the meantime. */
  saveRecord(record: RunRecord): Promise<boolean>
  /** The run has work again: a search for unfinished runs finds it. */
  reopen(reason: string): Promise<void>
  /** What to type to go on with it, without the program's name. */
  resumeCommand(): string[]
}

/** Depths and messages a second, as RabbitMQ's management API tells them. */
export interface BrokerQueue {
  name: string
  ready: number
  unacked: number
  consumers: number
  publishRate: number
  deliverRate: number
  ackRate: number
}

/** An item as a line of JSON; its key where the run kept it. */
export interface ItemLine {
  key?: string
  json: string
}

/** With the position behind it, from which `after` continues; its form depends on the kind of run. */
export interface PlacedLine extends ItemLine {
  position: string
}

/** The accepted items in their order: of a run that is going on, those that nothing can take back any more. */
export interface RunItems {
  /** Every line comes with its key. */
  readonly isKeyed: boolean
  /** Some hundred at a time. Each call begins anew. */
  batches(): AsyncIterable<readonly ItemLine[]>
  /** Those behind a place, some hundred at a time; without one, all. Throws `E_OPTION` for a place that is none of the run's. */
  after(position?: string): Promise<AsyncIterable<readonly PlacedLine[]>>
  /** The same as JSON Lines, in pieces that need not end with a line. */
  text(): AsyncIterable<string | Buffer>
  /** Of the CSV the run wrote itself, which has the scraper's order. */
  columns(): Promise<string[] | undefined>
}

export interface RunLogLines {
  /** Lines written after the last call, some hundred at a time; the first call begins with the oldest. */
  read(): AsyncIterable<readonly string[]>
  /** No line will be added any more. */
  isComplete(): boolean
  /** A reader of one's own, which begins with the oldest. */
  fromStart(): RunLogLines
}

export type RunPlaces = Pick<ConfigValues, 'out' | 'frontier'> & Partial<Pick<ConfigValues, 'store' | 'redis'>>

/** A number of items or bytes that was given out as a position. */
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

/** Commands shown to a person must find the run again. */
export function outFlag(out: string): string[] {
  return out === 'runs' ? [] : ['--out', out]
}
