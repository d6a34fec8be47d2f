/** Fetch: from a URL to a page, or to an error with a verdict. */
import type { Page } from '../core/page.ts'
import type { Accept, BrowserRoute } from '../core/scraper.ts'
import type { SessionState } from '../core/session-state.ts'
import type { Json } from '../core/task.ts'
import type { Identity } from './identity.ts'

export interface FetchRequest {
  /** Normalised. */
  url: string
  /** The task, and the number of the try, from 1. Omitted: the URL identifies the page, and this is the first try. */
  task?: { readonly id: string; readonly attempt: number }
  /** Extra request headers; lower-case names. Dropped when a redirect leaves the origin. */
  headers?: Readonly<Record<string, string>>
  /** What the route accepts as a page besides text with a 2xx status. */
  accept?: Accept
  /** A start page: a suspect one is an error. Default false: it is only marked as suspect. */
  isStart?: true
  session?: string
  /** Proxies (`host:port`) and browser profiles by name: rather through others, as somebody else. */
  avoid?: ReadonlySet<string>
  /** Sent as JSON in a POST request. Left out: a GET. Never cached. */
  post?: Json
  /** Left out: fetched without a browser. */
  browser?: BrowserRequest
  /** Turned away, it is tried another way: in a browser. */
  hasFallback?: true
}

/** How a page is opened in a browser. */
export interface BrowserRequest extends BrowserRoute {
  /** Who is signed in. Left out: nobody. */
  state?: SessionState
  /** Whom it is opened as, through whose proxy. Left out: as ourselves. */
  identity?: Identity
}

/** Browsers, and the pages that may be open in them at once. */
export interface BrowserPool extends AsyncDisposable {
  /** Opens the URL in a context of its own. The slot is taken until the page is released. Throws `ScrapeError` only. */
  visit(request: FetchRequest & { browser: BrowserRequest }, signal: AbortSignal): Promise<Page>
  /** Slots for pages, those in use, and browsers running. */
  readonly slots: number
  readonly busy: number
  readonly browsers: number
  /** More or fewer pages at once; fewer takes effect as pages end. */
  resize(slots: number): void
  /** Called whenever a slot may have become free. */
  onFree(listener: () => void): void
}

export interface Fetcher extends AsyncDisposable {
  /** Throws `ScrapeError` only. */
  fetch(request: FetchRequest, signal: AbortSignal): Promise<Page>
}

/**
 * Who may be asked when. Shared by the crawl loop, which only starts what may go at once, and by the chain, which waits for
 * its turn (redirects and robots.txt lead to hosts the loop did not plan for).
 */
export interface RateLimit {
  /** 0 when a request to `host` could start now; otherwise milliseconds to wait; Infinity while it has no free slot. */
  waitMs(host: string, use?: SlotUse): number
  /** Takes a slot, waiting for it. A host that is paused for long is refused with `E_RATE_LIMITED` (verdict: later) instead. */
  acquire(host: string, signal: AbortSignal, use?: SlotUse): Promise<Slot>
  /** No request to `host` before `untilMs` (a 429, a 503 with Retry-After). */
  pause(host: string, untilMs: number, reason: string): void
  /** At least this long between two requests (robots.txt crawl-delay), within the configured cap. */
  setDelay(host: string, delayMs: number): void
  /** Hosts that cannot take a request now, for the frontier to leave out. */
  busyHosts(): string[]
  /** Hosts that are paused now, because they asked us to wait or because of the circuit breaker. */
  pauses(): HostPause[]
  /** Called whenever a host may have become free: a slot released, a pause over. */
  onFree(listener: () => void): void
}

export interface HostPause {
  host: string
  /** Epoch milliseconds. */
  untilMs: number
  reason: string
}

export interface SlotUse {
  /**
   * For a file, which may take hours: counts among the requests to its host, of which it leaves one to pages, and not among
   * those of the worker. Default false.
   */
  isFile?: boolean
}

export interface Slot extends Disposable {
  readonly host: string
}
