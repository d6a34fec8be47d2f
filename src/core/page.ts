/** A page: one fetched response, decoded and within its limits. */

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
