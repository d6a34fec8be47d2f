/** Pages that match no known block but look like one: counted on every route, and refused as start pages. */
import { ScrapeError } from '../../core/errors.ts'
import { withPage } from '../../core/failed-page.ts'
import type { Page } from '../../core/page.ts'
import type { FetchRequest } from '../contract.ts'
import { rulesOf } from '../http/accept.ts'
import { isBlank } from '../http/content-check.ts'
import { keptPage } from '../http/http-page.ts'
import type { BlockVerdict } from './signals.ts'

/** Marks a suspect page. Throws `E_SUSPECT` for a start page, because everything else depends on it. */
export function checkSuspect(page: Page, { isSuspect, signal }: BlockVerdict, { isStart, accept }: FetchRequest): void {
  if (isSuspect !== true || isBlank(page)) return // the route accepts empty responses
  page.suspicion = signal
  if (isStart !== true || rulesOf(accept).suspect === true) return
  const { url, status } = page
  const message = `${signal} instead of a start page: ${url}`
  throw withPage(new ScrapeError('E_SUSPECT', message, { url, status }), keptPage(page))
}
