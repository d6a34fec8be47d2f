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
  /** Left out: no route needs one. */
  browsers?: BrowserSlots
  /** An earlier crawl of the same was: routes with `fallback: 'browser'` begin with it. Default false. */
  wasTurnedAway?: boolean
  sessions: Sessions
  /** Default: one for 512 pages. */
  channel?: Channel<Settled>
  bus: EventBus
  runId: string
  workerId: string
  args: unknown
  policy: EnqueuePolicy
  /** Its start pages came from a list or a sitemap: one that robots.txt forbids is left out, as a link is. Default false. */
  startsFromList?: boolean
  /** Requests in flight in this process. */
  concurrency: number
  /** Tasks asked for at once; asked before each claim, since it may follow the load. */
  claimMax: () => number
  /** True while more may come although nothing remains. */
  isOpenEnded?: () => Promise<boolean>
  /** Pages this process may finish, in all. */
  pagesMax: number
  leaseMs: number
  /** How long a stop waits for what is in flight before it hands it back. */
  drainMs: number
  /** Items the sinks may be behind before the crawl waits. */
  backlogMax: number
  keepSnapshot: (task: Task, page: Page | undefined, screenshot?: Buffer) => string | undefined
  /** Takes over what a browser downloaded, before its page is closed. */
  keepDownload: (download: Extract<Download, { kind: 'kept' }>) => Promise<KeptDownload>
  /** A page has ordered files; they are in the frontier soon. */
  onFiles?: () => void
  /** How many claimed pages wait for a browser. */
  onWaiting?: (pages: number) => void
  save: (task: Task, name: string, bytes: Uint8Array | string) => Promise<string>
  /** Items whose keys are remembered, to tell a handler that it emitted one before. Default 4,096. */
  recentItemsMax?: number
  /** Sees every page that was read without error (`--record`). */
  onRead?: (task: Task, page: Page, reading: PageReading, args: unknown) => void
  /** Share of traces that are kept. Left out: nothing is traced, and no task carries a trace. */
  traceRatio?: number
  now: () => number
  random: () => number
}

/** Who users are to the sites: kept with the run, for all its workers. */
export interface Sessions {
  get(name: string): Promise<SessionState | undefined>
  keep(name: string, state: SessionState): Promise<void>
  /** Request headers that take its cookies to this URL. */
  headers(state: SessionState, url: string): Readonly<Record<string, string>>
}

export interface KeptDownload {
  path: string
  /** Of the machine that has the file. */
  lane: string
}

/** finished: nothing remains · stopped: the signal · limit: `pagesMax` · halted: an error that ends the run. */
export type CrawlEnd = { how: 'finished' | 'stopped' | 'limit' } | { how: 'halted'; error: ScrapeError }
