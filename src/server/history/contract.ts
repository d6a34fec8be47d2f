/** History: what is known beyond one run. The items of runs are read once, as they come, and handed to projections. */
import type { RunRecord } from '../../core/run.ts'
import type { Rows } from '../../drivers/sql.ts'

/** Some items of one run, in the order they were accepted. No key comes twice in a run. */
export interface IngestBatch {
  runId: string
  scraper: string
  /** Of the run's arguments. Runs of one scope look at the same part of the world and can be compared. */
  scope: string
  /** No run of this scope has come to its end yet: everything is new, which is no news. */
  isFirst: boolean
  /** When it became known: now, or when the run ended if that was before it was read. */
  atMs: number
  /** Fields of its items, from the scraper's schema; undefined if unknown. */
  fields?: readonly string[] | undefined
  items: readonly IngestedItem[]
}

export interface IngestedItem {
  key: string
  item: Readonly<Record<string, unknown>>
  /** Of the item without what differs each time: equal content, equal text. */
  content: string
}

/** How a run ended. Only a complete one tells what is gone. */
export interface IngestedRun {
  runId: string
  scraper: string
  scope: string
  startedAtMs: number
  /** When it ended, or when that was found out. */
  atMs: number
  /** Finished by itself, with no page failed, nothing cut by a limit, and not suspiciously empty. */
  isComplete: boolean
  items: number
  /** Read to its end without trouble, however little it found. */
  isWhole?: boolean
  /** How it went; undefined when nobody knows. */
  record?: RunRecord | undefined
}

/** Something the world may want to hear of. */
export interface HistoryEvent {
  /** `item.changed`, `job.created` … */
  type: string
  /** The same twice is one event. */
  dedupe: string
  data: Readonly<Record<string, unknown>>
}

/** Tables that follow from items. Each call is one transaction with the cursor of the run and the events it returns. */
export interface Projection {
  readonly name: string
  accepts(scraper: string): boolean
  project(rows: Rows, batch: IngestBatch): Promise<HistoryEvent[]>
  /** Once more for a run that was resumed. Where there may be very many events they come in pieces. */
  finish(rows: Rows, run: IngestedRun): Promise<HistoryEvent[]> | AsyncIterable<HistoryEvent[]>
}

/** With the `rows` of the transaction that makes the change: both become true, or neither. */
export type TellEvents = (rows: Rows, events: readonly HistoryEvent[]) => Promise<void>

/** Where runs are found. */
export interface RunSource {
  /** Runs that may have items or an end nobody has read yet, the oldest first. */
  news(): Promise<readonly NewsOfRun[]>
}

export interface NewsOfRun {
  readonly runId: string
  /** Brings it up to date. The run stays the source's until `settle`. */
  open(): Promise<SourceRun>
  /** Everything up to this version has been read, or nothing of it can be. */
  settle(): Promise<void>
}

/** A run as it was at one moment. Items may be added to it afterwards, unless it was over. */
export interface SourceRun {
  readonly scraper: string
  readonly scope: string
  /** How it went, as far as it is known. */
  readonly record?: RunRecord | undefined
  readonly startedAtMs: number
  /** Undefined while it goes on. */
  readonly endedAtMs: number | undefined
  /** Of its end: another text when it was resumed and ended again. */
  readonly version: string
  /** Nothing is left to do. */
  readonly isFinished: boolean
  /** Why it does not tell what is gone: how it failed, or what it left out. Undefined when it saw everything. */
  readonly gap: string | undefined
  /** Items behind a place it gave out, '' from the first; undefined when it keeps none that have a key. */
  after(position: string): Promise<AsyncIterable<readonly SourceItem[]> | undefined>
}

export interface SourceItem {
  /** Undefined for an item that is known by its whole only: such a one has no history. */
  readonly key: string | undefined
  readonly json: string
  /** Behind it. */
  readonly position: string
}
