/** A page: one fetched response, decoded and within its limits. */
import type { Page as DriverPage } from 'puppeteer-core'
import type { ScrapeError } from './errors.ts'
import type { SessionState } from './session-state.ts'

export interface Page {
  /** The URL asked for (the task's). */
  readonly requestedUrl: string
  /** Where the redirects ended. */
  readonly url: string
  /** URLs passed on the way, first to last, without the final one. */
  readonly redirects: readonly string[]
  readonly status: number
  /** Lower-case names, null prototype; repeated headers joined with ", " except set-cookie, which is an array. */
  readonly headers: Readonly<Record<string, string | string[]>>
  /** After content decoding. */
  readonly body: Buffer
  /** `text/html`, lower case, without parameters; empty when the server named none. */
  readonly contentType: string
  /** WHATWG name of the encoding used for `text`. */
  readonly charset: string
  /** The body as text; decoded on first use. */
  readonly text: string
  readonly bytes: { readonly wire: number; readonly decoded: number }
  readonly timings: PageTimings
  readonly fromCache: boolean
  readonly fetchedAtMs: number
  /** The browser's side of it, for pages that were fetched with one; there until `release`. */
  readonly live?: LivePage
  /** Why it looks like a block although none was recognised: almost no content, or a CAPTCHA and little else. */
  suspicion?: string
  /** What a person would have seen, as PNG, of a page that failed in a browser. */
  readonly screenshot?: Buffer
  /**
   * The page has been read: lets go of body and text. The promises and frames of a fetch grow old while it is under way, and
   * what dead old objects point to is kept until the next full collection; without this every page's text was promoted
   * (48 KB each: twice the memory, a tenth of the CPU).
   */
  release(): void
}

export interface PageTimings {
  /** From the request to the first byte of the final response, redirects included. */
  readonly firstByteMs: number
  /** From the request to the last byte. */
  readonly totalMs: number
}

/** A page that is still open in a browser. `release` closes it, together with its cookies, storage and cache. */
export interface LivePage {
  readonly driver: DriverPage
  /** Why it can do nothing more: its browser, its process or its window is gone, or had to be ended. Undefined while it can. */
  readonly failure: ScrapeError | undefined
  /** That failure, if it is what is behind an error of the driver: it may be told some moments after the error. */
  failureBehind(error: unknown): Promise<ScrapeError | undefined>
  /** The document as it is now. */
  content(): Promise<string>
  /** What a person would see, as PNG; undefined when the browser cannot tell any more. */
  screenshot(): Promise<Buffer | undefined>
  /** Cookies and local storage as they are now. */
  state(): Promise<SessionState>
  /** What the page downloaded. Waits for what is still coming, or may be about to, within the page's deadline. */
  downloads(): Promise<readonly Download[]>
}

/** A download of a browser. Plain ones are cancelled, to be fetched by a file worker; the others are kept. */
export type Download =
  | { readonly kind: 'link'; readonly url: string; readonly name: string }
  /** Made in the page (`blob:`, `data:`) or the answer to a form: only the browser could get it. */
  | { readonly kind: 'kept'; readonly path: string; readonly name: string; readonly bytes: number }
