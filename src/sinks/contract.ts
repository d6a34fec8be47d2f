/**
 * A sink: where items go. Its output holds every confirmed item once: `open` cuts off whatever was written after the
 * position it is given, and `flush` returns the position up to which everything is durable.
 */
import type { LoggedItem } from '../core/item.ts'

/** Where items go. `Sink<Book>` is for scrapers that emit books; a plain `Sink` takes any. */
export interface Sink<Item = object> extends AsyncDisposable {
  /** Unique within a run (`jsonl`, `csv`, `sqlite:books.db` …): its position is stored under this name. */
  readonly name: string

  /**
   * `position` is what the last confirmed `flush` returned; undefined for a new run, which begins anew. Throws when less is
   * there than was confirmed: going on would lose items without a word.
   */
  open(position: string | undefined): Promise<void>

  /** Takes items in order. May buffer; may be slow: the crawl then waits. */
  write(items: readonly LoggedItem<Item>[]): Promise<void>

  /** Makes all that was written durable. */
  flush(): Promise<string>

  /** What is there now, for a run that stops before its end. */
  soFar?(): SinkResult

  /** Ends the output (footers, final names). Called once, after the last flush, when the run is complete. */
  finish(): Promise<SinkResult>
}

/** What a sink has written. */
export interface SinkResult {
  /** What a person opens: a path or a URL without its secrets. */
  target: string
  rows: number
  bytes: number
}

/** What a sink may need to know of the scraper. */
export interface SinkSetup {
  scraper: string
  runId: string
  /** Field names in schema order; a scraper may give CSV an order of its own. */
  fields: readonly string[]
  csvColumns?: readonly string[]
  /** Folder of the run, for sinks that write files. */
  folder: string
}
