/** A page: one fetched response, decoded and within its limits. */
import type { Page as DriverPage } from 'puppeteer-core'
import type { ScrapeError } from './errors.ts'
import type { SessionState } from './session-state.ts'

export interface Page {
  /** The requested URL (the task's). */
  readonly requestedUrl: string
  /** The URL after all redirects. */
  readonly url: string
  /** URLs of the redirects, first to last, without the final one. */
  readonly redirects: readonly string[]
  readonly status: number
  /** Lower-case names, null prototype; repeated headers joined with ", " except set-cookie, which is an array. */
  readonly headers: Readonly<Record<string, string | string[]>>
  /** After content decoding. */
  readonly body: Buffer
  /** `text/html`, lower case, without parameters; empty if the server sent none. */
  readonly contentType: string
  /** WHATWG name of the encoding used for `text`. */
  readonly charset: string
  /** The body as text; decoded on first use. */
  readonly text: string
  readonly bytes: { readonly wire: number; readonly decoded: number }
  readonly timings: PageTimings
  readonly fromCache: boolean
  readonly fetchedAtMs: number
  /** The open browser page, for pages fetched with a browser; available until `release`. */
  readonly live?: LivePage
  /** Why it looks like a block page although none was recognised: almost no content, or a CAPTCHA and little else. */
  suspicion?: string
  /** Screenshot (PNG) of a page that failed in a browser. */
  readonly screenshot?: Buffer
  /**
   * Releases body and text once the page has been read. The promises and frames of a fetch are promoted to the old generation
   * while it runs, and what dead old objects point to is kept until the next full collection; without this every page's text was
   * promoted (48 KB each: twice the memory, a tenth of the CPU).
   */
  release(): void
}

export interface PageTimings {
  /** From the request to the first byte of the final response, including redirects. */
  readonly firstByteMs: number
  /** From the request to the last byte. */
  readonly totalMs: number
}

/** A page that is still open in a browser. `release` closes it, together with its cookies, storage and cache. */
export interface LivePage {
  readonly driver: DriverPage
  /**
   * Why the page is no longer usable: its browser, process or window is gone or had to be ended. Undefined while it is usable.
   */
  readonly failure: ScrapeError | undefined
  /** That failure, if it caused an error of the driver: it may be reported a few moments after the error. */
  failureBehind(error: unknown): Promise<ScrapeError | undefined>
  /** The current document. */
  content(): Promise<string>
  /** A screenshot as PNG; undefined if the browser can no longer take one. */
  screenshot(): Promise<Buffer | undefined>
  /** Current cookies and local storage. */
  state(): Promise<SessionState>
  /** The page's downloads. Waits for those in progress or about to start, within the page's deadline. */
  downloads(): Promise<readonly Download[]>
}

/** A browser download. Plain ones are cancelled and fetched by a file worker; the others are kept. */
export type Download =
  | { readonly kind: 'link'; readonly url: string; readonly name: string }
  /** Created in the page (`blob:`, `data:`) or the response to a form: only the browser could get it. */
  | { readonly kind: 'kept'; readonly path: string; readonly name: string; readonly bytes: number }
