/** The public names. */
export { createOrchestrator, type Orchestrator } from './app/fleet/orchestrator.ts'
export { type Options, type StartedRun, type StartOptions, start } from './app/start.ts'
export { openUrlQueue, type UrlQueue } from './app/url-queue.ts'
export type { ErrorCode, Verdict } from './core/error-table.ts'
export { ScrapeError } from './core/errors.ts'
export type { RunEvent } from './core/events.ts'
export type { LoggedItem } from './core/item.ts'
export type { Limits } from './core/options.ts'
export type { RunRecord } from './core/run.ts'
export {
  csv,
  defineScraper,
  type Emitted,
  type HandlerContext,
  jsonl,
  parquet,
  type Scraper,
  type ScraperDefinition,
  sqlite,
} from './core/scraper.ts'
export type { Anchor, DocumentSelection, Selection } from './core/selection.ts'
export type { Sink, SinkResult } from './sinks/contract.ts'
