/** Pages that are no block by any sign we know, and may yet not be the page: counted everywhere, and refused where a run begins. */
import { ScrapeError } from '../core/errors.ts'
import type { Page } from '../core/page.ts'
import { rulesOf } from './accept.ts'
import type { BlockVerdict } from './block-signals.ts'
import { isBlank } from './content-check.ts'
import type { FetchRequest } from './contract.ts'
import { keptPage } from './http-page.ts'
import { withPage } from './status.ts'

/** Marks a suspect page. Throws `E_SUSPECT` for a start page: with the first page of a search the whole search is lost. */
export function checkSuspect(page: Page, { isSuspect, signal }: BlockVerdict, { isStart, accept }: FetchRequest): void {
  if (isSuspect !== true || isBlank(page)) return // a route that accepts empty answers expects them
  page.suspicion = signal
  if (isStart !== true || rulesOf(accept).suspect === true) return
  const { url, status } = page
  const message = `${signal} instead of a start page: ${url}`
  throw withPage(new ScrapeError('E_SUSPECT', message, { url, status }), keptPage(page))
}
