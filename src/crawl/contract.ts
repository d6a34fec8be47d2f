/** What a crawl needs from the composition root, and how it ends. */
import type { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Download, Page } from '../core/page.ts'
import type { SessionState } from '../core/session-state.ts'
import type { Task } from '../core/task.ts'
import type { BrowserSlots, Fetcher, RateLimit } from '../fetch/contract.ts'
import type { Frontier } from '../frontier/contract.ts'
import type { Channel } from './channel.ts'
import type { CompiledScraper } from './compile-scraper.ts'
import type { EnqueuePolicy } from './enqueue.ts'
import type { PageReading } from './read-page.ts'
import type { Settled } from './settle.ts'

export interface CrawlParts {
  compiled: CompiledScraper
  frontier: Frontier
  fetcher: Fetcher
  rateLimit: RateLimit
  /** If omitted, no route needs one. */
  browsers?: BrowserSlots
  /** An earlier crawl of the same scraper was blocked: routes with `fallback: 'browser'` start in a browser. Default false. */
  wasTurnedAway?: boolean
  sessions: Sessions
  /** Default: a channel for 512 pages. */
  channel?: Channel<Settled>
  bus: EventBus
  runId: string
  workerId: string
  args: unknown
  policy: EnqueuePolicy
  /** Start pages came from a list or a sitemap: those that robots.txt forbids are skipped, as links are. Default false. */
  startsFromList?: boolean
  /**
   * The run begins now, in this process alone: its first request goes out before the modules that read pages are loaded. Default false:
   * a page that waits for them in a worker that is killed again and again would pass for one that kills workers.
   */
  isFirstStart?: boolean
  /** Requests in flight in this process. */
  concurrency: number
  /** How many tasks to claim at once; called before each claim, since it may depend on the load. */
  claimMax: () => number
  /** True while more tasks may come although none remain. */
  isOpenEnded?: () => Promise<boolean>
  /** How many pages this process may finish in total. */
  pagesMax: number
  leaseMs: number
  /** How long a stop waits for requests in flight before it hands their tasks back. */
  drainMs: number
  /** How many items the sinks may lag behind before the crawl waits. */
  backlogMax: number
  keepSnapshot: (task: Task, page: Page | undefined, screenshot?: Buffer) => string | undefined
  /** Stores a file that a browser downloaded, before its page is closed. */
  keepDownload: (download: Extract<Download, { kind: 'kept' }>) => Promise<KeptDownload>
  /** Called when a page has ordered files; their tasks will be in the frontier soon. */
  onFiles?: () => void
  /** Called with the number of claimed pages that wait for a browser. */
  onWaiting?: (pages: number) => void
  save: (task: Task, name: string, bytes: Uint8Array | string) => Promise<string>
  /** How many item keys are remembered, to tell a handler that it emitted an item before. Default 4,096. */
  recentItemsMax?: number
  /** Called with every page that was read without an error (`--record`). */
  onRead?: (task: Task, page: Page, reading: PageReading, args: unknown) => void
  /** Share of traces that are kept. If omitted, nothing is traced, and tasks carry no trace. */
  traceRatio?: number
  now: () => number
  random: () => number
}

/** The sessions of signed-in users: kept with the run, for all its workers. */
export interface Sessions {
  get(name: string): Promise<SessionState | undefined>
  keep(name: string, state: SessionState): Promise<void>
  /** Request headers that send its cookies to this URL. */
  headers(state: SessionState, url: string): Readonly<Record<string, string>>
}

export interface KeptDownload {
  path: string
  /** The lane of the machine that has the file. */
  lane: string
}

/** finished: nothing remains · stopped: by the signal · limit: `pagesMax` · halted: an error that ends the run. */
export type CrawlEnd = { how: 'finished' | 'stopped' | 'limit' } | { how: 'halted'; error: ScrapeError }
