/** History: what is known across runs. The items of runs are read once, as they arrive, and passed to projections. */
import type { RunRecord } from '../../core/run.ts'
import type { Rows } from '../../drivers/sql.ts'

/** Items of one run, in the order they were accepted. A key appears only once per run. */
export interface IngestBatch {
  runId: string
  scraper: string
  /** Derived from the run's arguments. Runs of one scope cover the same part of the site and can be compared. */
  scope: string
  /** No run of this scope has ended yet: every item is new, so no events are sent for them. */
  isFirst: boolean
  /** When this became known: now, or when the run ended if that was before it was read. */
  atMs: number
  /** Fields of the items, from the scraper's schema; undefined if unknown. */
  fields?: readonly string[] | undefined
  items: readonly IngestedItem[]
}

export interface IngestedItem {
  key: string
  item: Readonly<Record<string, unknown>>
  /** Hash of the item without the fields that differ each time: equal content, equal hash. */
  content: string
}

/** How a run ended. Only a complete run tells which items are gone. */
export interface IngestedRun {
  runId: string
  scraper: string
  scope: string
  startedAtMs: number
  /** When it ended, or when its end was discovered. */
  atMs: number
  /** Finished by itself, with no failed pages, not cut short by a limit, and not suspiciously empty. */
  isComplete: boolean
  items: number
  /** Read to its end without problems, however little it found. */
  isWhole?: boolean
  /** The run record; undefined if there is none. */
  record?: RunRecord | undefined
}

/** Something that webhooks can subscribe to. */
export interface HistoryEvent {
  /** `item.changed`, `job.created` … */
  type: string
  /** Two events with the same value are one event. */
  dedupe: string
  data: Readonly<Record<string, unknown>>
}

/** Tables derived from items. Each call shares one transaction with the run's cursor and the events it returns. */
export interface Projection {
  readonly name: string
  accepts(scraper: string): boolean
  project(rows: Rows, batch: IngestBatch): Promise<HistoryEvent[]>
  /** Called again for a run that was resumed. If there may be very many events, they come in batches. */
  finish(rows: Rows, run: IngestedRun): Promise<HistoryEvent[]> | AsyncIterable<HistoryEvent[]>
}

/** Uses the `rows` of the transaction that makes the change, so that both are stored or neither is. */
export type TellEvents = (rows: Rows, events: readonly HistoryEvent[]) => Promise<void>

/** Where runs are found. */
export interface RunSource {
  /** Runs that may have unread items or an unread end, oldest first. */
  news(): Promise<readonly NewsOfRun[]>
}

export interface NewsOfRun {
  readonly runId: string
  /** Brings the run up to date. It remains owned by the source until `settle`. */
  open(): Promise<SourceRun>
  /** Everything up to this version has been read, or it cannot be read at all. */
  settle(): Promise<void>
}

/** A run as it was at one moment. Items may be added later, unless it was over. */
export interface SourceRun {
  readonly scraper: string
  readonly scope: string
  /** The run record, as far as it is known. */
  readonly record?: RunRecord | undefined
  readonly startedAtMs: number
  /** Undefined while it is running. */
  readonly endedAtMs: number | undefined
  /** Version of its end: changes when the run is resumed and ends again. */
  readonly version: string
  /** Nothing is left to do. */
  readonly isFinished: boolean
  /** Why it cannot tell which items are gone: how it failed, or what it left out. Undefined if it saw everything. */
  readonly gap: string | undefined
  /** Items after a position it returned earlier, '' for all; undefined if it keeps no items with a key. */
  after(position: string): Promise<AsyncIterable<readonly SourceItem[]> | undefined>
}

export interface SourceItem {
  /** Undefined for an item without a key, identified only by its whole content: it has no history. */
  readonly key: string | undefined
  readonly json: string
  /** The position after this item. */
  readonly position: string
}
