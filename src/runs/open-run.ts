/**
 * Looks at a run from outside while it may be going on: in another process here, or on the machines of a fleet. Two kinds,
 * one door: `folder-run.ts` for a run of this machine, `stored-run.ts` for one of a fleet.
 */

import { resolve } from 'node:path'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { notFetchedCounters, skippedTasks } from '../core/not-fetched.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { FileRecord } from '../files/contract.ts'
import type { Frontier, FrontierStats } from '../frontier/contract.ts'
import { fileTasksDone, fileWork, hasFiles } from '../observe/progress-counts.ts'
import type { StoredWorker } from '../store/contract.ts'
import { storeUrlOf } from './fleet-places.ts'
import { troubleText } from './queue-of-run.ts'
import type { ConfigValues } from '../config/option-table.ts'
import { findRun, listRuns, type RunFolder } from './run-folder.ts'
import { withoutPassword } from './run-identity.ts'

export interface OpenRun extends AsyncDisposable {
  /** As of the last look. */
  readonly record: RunRecord
  /** Somebody works on it now. */
  readonly isAlive: boolean
  /** Nobody works on it, and nobody will before it is opened again. A fleet's run may be without workers and not be over. */
  readonly isOver: boolean
  /** Undefined for a run of one machine, which does not tell. The ended ones are among them: their work counts. */
  readonly workers: readonly StoredWorker[] | undefined
  /** What the broker last said of its queues (`askBroker`), where the run has one whose management API answers. */
  readonly broker: readonly BrokerQueue[] | undefined
  /** Not all of its start tasks are in the queue: they come from a list of URLs, or from the scraper itself. Undefined: all are. */
  readonly filling: 'urls' | 'start' | undefined
  /** Undefined when the queue is gone with its process (`memory:`) or lives elsewhere and nobody said where. */
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
  /** Replaces the record of a run that nobody works on. False when its state has changed in the meantime. */
  saveRecord(record: RunRecord): Promise<boolean>
  /** The run has work again: whoever looks for an unfinished run finds it. */
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

/** With the place behind it, from which `after` goes on: a word of the run's own kind. */
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

/**
 * A word that names a run folder (its id, its path) is that one, one that names a scraper the newest of its runs, in folders or
 * in the store; without a word it is the newest of all.
 */
export async function openRun(word: string | undefined, places: RunPlaces): Promise<OpenRun> {
  const isNewest = word === undefined || word === 'latest'
  const folder = findFolder(places.out, word)
  const storeUrl = storeUrlOf(withStore(places))
  const isMany = isNewest || folder === undefined || folder.scraper === word // a scraper has runs in both places
  const isStoreMeant = storeUrl !== undefined && isMany
  const stored = isStoreMeant ? await openStored(isNewest ? undefined : word, places) : undefined
  if (folder === undefined) {
    if (stored === undefined) throw notFound(word, places, storeUrl)
    return stored
  }
  if (stored !== undefined && stored.record.id > folder.runId) return stored // ids sort by time
  await stored?.[Symbol.asyncDispose]()
  const { openFolderRun } = await import('./folder-run.ts')
  return await openFolderRun(folder, places)
}

async function openStored(word: string | undefined, places: RunPlaces): Promise<OpenRun | undefined> {
  const { findStoredRun } = await import('./stored-run.ts')
  return await findStoredRun(word, places)
}

export const withStore = (places: RunPlaces) => ({ frontier: places.frontier, store: places.store })

function findFolder(out: string, word: string | undefined): RunFolder | undefined {
  try {
    return findRun(out, word)
  } catch (error) {
    if (error instanceof ScrapeError && error.code === 'E_RUN_NOT_FOUND') return undefined
    throw error
  }
}

function notFound(word: string | undefined, { out }: RunPlaces, storeUrl: string | undefined): ScrapeError {
  const nor = storeUrl === undefined ? '' : `, nor in ${withoutPassword(storeUrl)}`
  const known = listRuns(out)
    .slice(0, 5)
    .map((folder) => `${folder.scraper}/${folder.runId}`)
  return new ScrapeError(
    'E_RUN_NOT_FOUND',
    `${word === undefined ? 'no run' : `no run "${word}"`} under ${out}${nor}`,
    {
      notes: known.length > 0 ? [`latest: ${known.join(' · ')}`] : [],
      fix:
        storeUrl === undefined
          ? 'Look under runs/, or give --out; for a run of a fleet, --frontier or SLUICE_FRONTIER.'
          : `See \`sluice ps --all\`, or give another --out or --store${storeFileNote(storeUrl) === undefined ? '' : ': a file is seen from its own machine and folder only'}.`,
    },
  )
}

/** What to say of a store that other machines cannot reach; undefined for all others. */
export function storeFileNote(storeUrl: string | undefined): string | undefined {
  const { path } = parseEngineUrl(storeUrl ?? '')
  if (path === undefined) return undefined
  return `runs and items are kept in ${resolve(path)} on this machine: workers on other machines need --store postgres://…`
}

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

/** Where somebody should be and is not: no sign of life, and no goodbye either. */
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

/** Commands shown to a person must find the run again. */
export function outFlag(out: string): string[] {
  return out === 'runs' ? [] : ['--out', out]
}
