/** History: what is known beyond one run. The items of runs are read once, as they come, and handed to projections. */
import type { Rows } from '../orchestrator/contract.ts'

/** Some items of one run, in the order they were accepted. */
export interface IngestBatch {
  runId: string
  scraper: string
  /** When it was read; the run's own clock is in the items. */
  atMs: number
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
  startedAtMs: number
  /** Finished by itself, with no page failed, nothing cut by a limit, and not suspiciously empty. */
  isComplete: boolean
  items: number
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
  finish(rows: Rows, run: IngestedRun): Promise<HistoryEvent[]>
}
