/** What goes wrong on the demo site under `misbehave`, by product number, and how a correct run handles it. */

/**
 * Every number is small, so a catalogue of 100 books has all of them. The counters ("twice", "once") belong to one started site:
 * a second run against the same site meets only the slow, the missing and the broken page.
 */
export const MISBEHAVIOUR = {
  /** Responds with 503 to its first two requests, then with its page. */
  flaky: 7,
  /** Responds with 429 and `Retry-After: 1` to its first request, then with its page. */
  rateLimited: 23,
  /** Takes 2 s longer than other pages. */
  slow: 42,
  /** Listed like any other book, but its page is a 404. */
  missing: 44,
  /** Always responds with 200 and an apology without product markup: no retry helps, so it must end as a dead letter. */
  softError: 66,
  /**
   * Books shown twice on listing page 2, the second time under another spelling of the same address: the first with a fragment,
   * the second with tracking parameters. They must be fetched and written once.
   */
  duplicates: { page: 2, fragment: 25, tracking: 26 },
  flakyFailures: 2,
  retryAfterSeconds: 1,
  slowMs: 2000,
} as const

/** What a run over product pages must end with. */
export interface ExpectedTotals {
  /** Books written: all but the missing and the broken. */
  readonly items: number
  /** Product pages that end as 404. */
  readonly notFound: number
  /** Product pages that can never be read. */
  readonly softErrors: number
  /** Distinct pages that a crawl from page 1 requests. */
  readonly pages: number
  /** Responses that cause a retry, which succeeds: 2 × 503 and 1 × 429. */
  readonly failures: number
}

/** `listings` is the number of listing pages that the crawl reads. */
export function expectedTotals(products: number, listings: number, misbehave: boolean): ExpectedTotals {
  const has = (id: number) => (misbehave && id <= products ? 1 : 0)
  const notFound = has(MISBEHAVIOUR.missing)
  const softErrors = has(MISBEHAVIOUR.softError)
  return {
    items: products - notFound - softErrors,
    notFound,
    softErrors,
    pages: products + listings,
    failures: has(MISBEHAVIOUR.flaky) * MISBEHAVIOUR.flakyFailures + has(MISBEHAVIOUR.rateLimited),
  }
}
