/**
 * A sink: where items go. Its output contains every confirmed item once: `open` cuts off everything written after the given
 * position, and `flush` returns the position up to which everything is durable.
 */
import type { LoggedItem } from '../core/item.ts'

/** Where items go. `Sink<Book>` is for scrapers that emit books; a plain `Sink` accepts any item. */
export interface Sink<Item = object> extends AsyncDisposable {
  /** Unique within a run (`jsonl`, `csv`, `sqlite:books.db` …): its position is stored under this name. */
  readonly name: string

  /**
   * `position` is what the last confirmed `flush` returned; undefined for a new run, which starts with an empty output. Throws if
   * there is less than was confirmed: continuing would silently lose items.
   */
  open(position: string | undefined): Promise<void>

  /** Receives items in order. May buffer, and may be slow: the crawl then waits. */
  write(items: readonly LoggedItem<Item>[]): Promise<void>

  /** Makes everything written so far durable. Returns the position. */
  flush(): Promise<string>

  /** The result so far, for a run that stops before its end. */
  soFar?(): SinkResult

  /** Ends the output (footers, final names). Called once, after the last flush, when the run is complete. */
  finish(): Promise<SinkResult>
}

/** What a sink has written. */
export interface SinkResult {
  /** What a person can open: a path, or a URL without secrets. */
  target: string
  rows: number
  bytes: number
}

/** What a sink may need to know about the scraper. */
export interface SinkSetup {
  scraper: string
  runId: string
  /** Field names in schema order; a scraper may define another order for CSV. */
  fields: readonly string[]
  csvColumns?: readonly string[]
  /** Folder of the run, for sinks that write files. */
  folder: string
}
