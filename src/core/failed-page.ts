/** The page behind an error: the response body sent with an error status. */
import type { ScrapeError } from './errors.ts'
import type { Page } from './page.ts'

const failedPage = new WeakMap<ScrapeError, Page>()

/** The page that came with an error status, for the block check and the dead-letter snapshot; its body may be truncated. */
export function pageOf(error: ScrapeError): Page | undefined {
  return failedPage.get(error)
}

export function withPage(error: ScrapeError, page: Page): ScrapeError {
  failedPage.set(error, page)
  return error
}
