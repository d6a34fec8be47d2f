/** Fetch turns a URL into a page, or into an error with a verdict. */
import type { Page } from '../core/page.ts'
import type { Accept, BrowserRoute } from '../core/scraper.ts'
import type { SessionState } from '../core/session-state.ts'
import type { Json } from '../core/task.ts'

export interface FetchRequest {
  /** Normalised. */
  url: string
  /** The task and the attempt number, from 1. If omitted, the URL identifies the page, and this is the first attempt. */
  task?: { readonly id: string; readonly attempt: number }
  /** Extra request headers; lower-case names. Dropped when a redirect leaves the origin. */
  headers?: Readonly<Record<string, string>>
  /** What the route accepts as a page in addition to text with a 2xx status. */
  accept?: Accept
  /** A start page: if it looks suspect, that is an error. Default false: a suspect page is only marked as such. */
  isStart?: true
  session?: string
  /** Proxies (`host:port`) and browser profiles, by name, to avoid when another is available. */
  avoid?: ReadonlySet<string>
  /** Sent as JSON in a POST request. If omitted, the request is a GET. Never cached. */
  post?: Json
  /** If omitted, the page is fetched without a browser. */
  browser?: BrowserRequest
  /** If the request is blocked, it will be retried in a browser. */
  hasFallback?: true
}

/** How a page is opened in a browser. */
export interface BrowserRequest extends BrowserRoute {
  /** The signed-in session. If omitted, the browser is not signed in. */
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
 * Which hosts may be requested when. Shared by the crawl loop, which only starts requests that may go out at once, and by the
 * chain, which waits for a slot (redirects and robots.txt lead to hosts the loop did not plan for).
 */
export interface RateLimit {
  /** 0 when a request to `host` could start now; otherwise milliseconds to wait; Infinity while it has no free slot. */
  waitMs(host: string, use?: SlotUse): number
  /** Waits for a slot and takes it. A host with a long pause is refused with `E_RATE_LIMITED` (verdict: later) instead. */
  acquire(host: string, signal: AbortSignal, use?: SlotUse): Promise<Slot>
  /** No request to `host` before `untilMs` (a 429, a 503 with Retry-After). */
  pause(host: string, untilMs: number, reason: string): void
  /** At least this long between two requests (robots.txt crawl-delay), within the configured cap. */
  setDelay(host: string, delayMs: number): void
  /** Hosts that cannot take a request now, for the frontier to skip. */
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
   * For a file, which may take hours: it counts toward its host's request limit (always leaving one request for pages), but not
   * toward the worker's. Default false.
   */
  isFile?: boolean
}

export interface Slot extends Disposable {
  readonly host: string
}

/** Where the bytes of a URL come from: `fetch/http/byte-stream.ts`. */
export interface ByteSource extends AsyncDisposable {
  /** Follows redirects. Resolves with the headers of a 200, or of a 206 or 416 if a range was requested. Throws `ScrapeError`. */
  open(request: ByteRequest, signal: AbortSignal): Promise<ByteAnswer>
}

export interface ByteRequest {
  url: string
  /** Lower-case names; cookies included. Sent to the URL's own origin only. */
  headers: Readonly<Record<string, string>>
  /** Only the bytes from here on, provided the file is still the version that `validator` (an ETag or a date) names. */
  range?: { from: number; validator: string }
  onRedirect?: (url: string) => Promise<void>
}

export interface ByteAnswer {
  status: number
  /** Lower-case names; for repeated headers, the first value. */
  headers: Readonly<Record<string, string>>
  /** The final URL, after redirects. */
  url: string
  /** The server compressed the body although we asked it not to: `body` is decompressed, and no range of it can be requested. */
  isEncoded: boolean
  /** Bytes still to come, as announced; undefined if the server did not say, or if `isEncoded`. */
  length: number | undefined
  /** Throws `ScrapeError` (`E_BODY_SHORT` for a truncated body). Can be read only once; stopping early ends the exchange. */
  body: AsyncIterable<Uint8Array>
  /** Ends the exchange if it is still open, for callers that do not read the body at all. */
  close(): void
}
