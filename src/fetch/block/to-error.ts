/** The last link of the chain: an answer that turns out to be a block becomes an error that names the vendor and the sign. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { pageOf, withPage } from '../../core/failed-page.ts'
import type { Page } from '../../core/page.ts'
import type { Accept } from '../../core/scraper.ts'
import { hostOf } from '../../core/url.ts'
import { acceptsStatus } from '../http/accept.ts'
import { headerOf, keptPage } from '../http/http-page.ts'
import { parseRetryAfterMs } from '../http/retry-after.ts'
import { checkForBlock } from './check.ts'
import { type BlockClass, type BlockVerdict, UNKNOWN_VENDOR } from './signals.ts'

interface JudgeOptions {
  /** Longest Retry-After that is obeyed. */
  retryAfterMsMax: number
  events?: Pick<EventBus, 'emit'>
  now?: () => number
}

export interface Judgement {
  verdict: BlockVerdict
  /** To be thrown; undefined if the answer is a page. */
  error: ScrapeError | undefined
}

export interface Judge {
  /** Checks a response that would be delivered. `accept`: what the route accepts. */
  page(page: Page, accept?: Accept): Judgement
  /** For a failed response: the same error, or a more specific one. Errors without a response are returned as they are. */
  failure(error: ScrapeError): Judgement & { error: ScrapeError }
}

const CODES: Readonly<Record<Exclude<BlockClass, 'none'>, ErrorCode>> = {
  rate_limit: 'E_RATE_LIMITED',
  challenge: 'E_CAPTCHA',
  captcha: 'E_CAPTCHA',
  blocked: 'E_BLOCKED',
  geo: 'E_BLOCKED',
  consent: 'E_BLOCKED',
  login_wall: 'E_LOGIN_WALL',
  gone: 'E_NOT_FOUND',
}

const WORDS: Readonly<Record<Exclude<BlockClass, 'none'>, string>> = {
  rate_limit: 'asked to slow down',
  challenge: 'a challenge',
  captcha: 'a CAPTCHA',
  blocked: 'blocked',
  geo: 'blocked for where we are',
  consent: 'a consent page',
  login_wall: 'a login',
  gone: 'no such page any more',
}

const NOT_JUDGED: BlockVerdict = { class: 'none', vendor: '', signal: '', confidence: 0 }

/** A route that accepts a status gets its pages, unless they are certainly block pages. */
const ACCEPTED_CONFIDENCE_MIN = 0.9

/** Undefined for a page. A 403 with which a provider says "closed" is `E_NOT_FOUND`. */
function blockError(
  verdict: BlockVerdict,
  page: Page,
  { retryAfterMsMax, nowMs }: { retryAfterMsMax: number; nowMs: number },
): ScrapeError | undefined {
  if (verdict.class === 'none') return undefined
  const { url, status } = page
  const by = verdict.vendor === '' || verdict.vendor === UNKNOWN_VENDOR ? '' : ` by ${verdict.vendor}`
  const message = `${WORDS[verdict.class]}${by} (${verdict.signal}) in place of ${url}`
  const retryAfterMs = parseRetryAfterMs(headerOf(page.headers, 'retry-after'), nowMs, retryAfterMsMax)
  const details = { url, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  return withPage(new ScrapeError(CODES[verdict.class], message, details), keptPage(page))
}

export function createJudge(options: JudgeOptions): Judge {
  const now = options.now ?? Date.now

  function judge(page: Page): BlockVerdict {
    const { url, status, headers, body } = page
    return checkForBlock({ url, status, headers, body })
  }

  function report(page: Page, { class: cls, vendor, signal }: BlockVerdict): void {
    if (cls === 'none' || cls === 'gone') return
    options.events?.emit({ type: 'blocked', url: page.url, host: hostOf(page.url), class: cls, vendor, signal })
  }

  const errorOf = (verdict: BlockVerdict, page: Page) =>
    blockError(verdict, page, { retryAfterMsMax: options.retryAfterMsMax, nowMs: now() })

  return {
    page(page, accept) {
      const verdict = judge(page)
      const isWanted = acceptsStatus(accept, page.status) && verdict.confidence < ACCEPTED_CONFIDENCE_MIN
      if (verdict.class === 'gone' || isWanted) return { verdict, error: undefined }
      report(page, verdict)
      return { verdict, error: errorOf(verdict, page) }
    },
    failure(error) {
      const page = pageOf(error)
      if (page === undefined) return { verdict: NOT_JUDGED, error }
      const verdict = judge(page)
      report(page, verdict)
      // If the status is all there is to report, its own error is the clearest.
      const isSaid =
        verdict.signal.startsWith('status ') || (verdict.class === 'blocked' && error.code === 'E_FORBIDDEN')
      const isPlain = verdict.vendor === UNKNOWN_VENDOR && isSaid
      const named =
        isPlain || (verdict.class === 'gone' && error.details.status !== 403) ? undefined : errorOf(verdict, page)
      if (named === undefined) return { verdict, error }
      Object.assign(named.details, error.details) // keeps the wait times of a throttled response
      return { verdict, error: named }
    },
  }
}
