/** Fetch: from a URL to a page, or to an error with a verdict. */
import type { Page } from '../core/page.ts'
import type { Accept, BrowserRoute } from '../core/scraper.ts'
import type { SessionState } from '../core/session-state.ts'
import type { Json } from '../core/task.ts'

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
}

/** How many browser pages may be open at once, and how many are. */
export interface BrowserSlots {
  readonly slots: number
  readonly busy: number
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

/** Where the bytes of a URL come from: `fetch/http/byte-stream.ts`. */
export interface ByteSource extends AsyncDisposable {
  /** Follows redirects. Resolves with the headers of a 200, or of a 206 or 416 when a range was asked for. Throws `ScrapeError`. */
  open(request: ByteRequest, signal: AbortSignal): Promise<ByteAnswer>
}

export interface ByteRequest {
  url: string
  /** Lower-case names; cookies included. Sent to the URL's own origin only. */
  headers: Readonly<Record<string, string>>
  /** Only what comes from this byte on, if the file is still the one that `validator` (an ETag or a date) names. */
  range?: { from: number; validator: string }
  onRedirect?: (url: string) => Promise<void>
}

export interface ByteAnswer {
  status: number
  /** Lower-case names; of several of one name, the first. */
  headers: Readonly<Record<string, string>>
  /** Where redirects led. */
  url: string
  /** The body was compressed although we asked for it as it is: `body` is decompressed, and no part of it can be asked for. */
  isEncoded: boolean
  /** Bytes left to come as announced; undefined when nothing was, or when `isEncoded`. */
  length: number | undefined
  /** Throws `ScrapeError`, `E_BODY_SHORT` for one that was cut. To be read once; leaving it early ends the exchange. */
  body: AsyncIterable<Uint8Array>
  /** Ends the exchange, if it is not over: for callers that do not read the body at all. */
  close(): void
}
