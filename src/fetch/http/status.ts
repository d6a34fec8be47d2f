/** Maps a status to a page, a redirect, or an error with a code. */
import type { ErrorCode } from '../../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../../core/errors.ts'
import type { FetchRequest } from '../contract.ts'
import { acceptsStatus } from './accept.ts'
import { headerOf, type RawHeaders } from './http-page.ts'
import { parseRetryAfterMs } from './retry-after.ts'

/** page: deliver it · redirect: follow it · failed: an error with a code · file: not a page by its type. */
export type Outcome = 'page' | 'redirect' | 'failed' | 'file'

/** For a 429 without Retry-After: long enough to matter, short enough not to lose the run. */
const RETRY_AFTER_MS_DEFAULT = 30_000

export function outcomeOf(status: number, headers: RawHeaders, request: FetchRequest): Outcome {
  if (acceptsStatus(request.accept, status)) return 'page'
  if (status >= 200 && status < 300) {
    // An unrequested part would be mistaken for the whole.
    return status === 206 && request.headers?.['range'] === undefined ? 'failed' : 'page'
  }
  const leads = status >= 300 && status < 400 && status !== 304 && status !== 305 && status !== 306
  return leads && (headers['location'] ?? '') !== '' ? 'redirect' : 'failed'
}

/** The error for a status whose outcome is `failed`. */
export function statusError(
  status: number,
  headers: RawHeaders,
  at: { url: string; nowMs: number; retryAfterMsMax: number },
): ScrapeError {
  const retryAfterMs = parseRetryAfterMs(headerOf(headers, 'retry-after'), at.nowMs, at.retryAfterMsMax)
  const details: ErrorDetails = { url: at.url, status }
  if (status === 429) {
    details.retryAfterMs = retryAfterMs ?? Math.min(RETRY_AFTER_MS_DEFAULT, at.retryAfterMsMax)
  } else if (status === 503 && retryAfterMs !== undefined) details.retryAfterMs = retryAfterMs
  return new ScrapeError(codeOfStatus(status), `${reasonOf(status)} from ${at.url}`, details)
}

function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'E_UNAUTHORIZED'
  if (status === 403) return 'E_FORBIDDEN'
  if (status === 404 || status === 410) return 'E_NOT_FOUND'
  if (status === 429) return 'E_RATE_LIMITED'
  if (status >= 500 && status < 600) return 'E_SERVER'
  if (status >= 300 && status < 304) return 'E_REDIRECT_BAD'
  return status === 307 || status === 308 ? 'E_REDIRECT_BAD' : 'E_STATUS'
}

function reasonOf(status: number): string {
  if (status === 206) return 'only a part of the page, which nobody asked for (206),'
  if (codeOfStatus(status) === 'E_REDIRECT_BAD') return `status ${status} without a Location`
  return `status ${status}`
}
