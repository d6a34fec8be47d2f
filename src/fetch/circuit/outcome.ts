/** What the outcome of a request says about the health of its host. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'

/**
 * failed: the host has problems, or blocks us · answered: it is healthy, whatever happened to the page · throttled: it is healthy
 * but asked us to slow down, which the rate limit handles · unsent: no request was sent, or no response was seen.
 */
export type RequestOutcome = 'failed' | 'answered' | 'throttled' | 'unsent'

const FAILED: ReadonlySet<ErrorCode> = new Set([
  'E_TIMEOUT_CONNECT',
  'E_TIMEOUT_HEADERS',
  'E_TIMEOUT_BODY',
  'E_TIMEOUT_TOTAL',
  'E_CONNECTION',
  'E_PROTOCOL',
  'E_BODY_SHORT',
  'E_TLS',
  'E_DNS',
  'E_SERVER',
  'E_FORBIDDEN',
  'E_BLOCKED',
  'E_CAPTCHA',
  'E_LOGIN_WALL',
])

/** Responses we could not use; the host sent them nevertheless. */
const ANSWERED: ReadonlySet<ErrorCode> = new Set([
  'E_UNAUTHORIZED',
  'E_NOT_FOUND',
  'E_STATUS',
  'E_TOO_LARGE',
  'E_HEADERS_TOO_LARGE',
  'E_ENCODING',
  'E_CHARSET',
  'E_REDIRECT_LIMIT',
  'E_REDIRECT_BAD',
  'E_BROWSER_DOWNLOAD',
  'E_EMPTY',
  'E_CONTENT_TYPE',
  'E_SUSPECT',
])

const FAILED_STATUSES: ReadonlySet<number> = new Set([408, 425])

/** `error` undefined: a page was received. */
export function outcomeOfError(error: unknown): RequestOutcome {
  if (error === undefined) return 'answered'
  if (!(error instanceof ScrapeError)) return 'unsent'
  const { code } = error
  const { status } = error.details
  if (code === 'E_RATE_LIMITED') return status === undefined ? 'unsent' : 'throttled' // without a status, it is our own pause
  if (FAILED.has(code)) return 'failed'
  if (code === 'E_STATUS' && status !== undefined && FAILED_STATUSES.has(status)) return 'failed'
  return ANSWERED.has(code) ? 'answered' : 'unsent'
}

const HOST_CODES: ReadonlySet<ErrorCode> = new Set(['E_TIMEOUT_CONNECT', 'E_TLS', 'E_DNS', 'E_BLOCKED', 'E_CAPTCHA'])
const UNREACHABLE: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])

/** The failure would be the same for any page of the host. A 500, a reset or a 403 may concern one page only. */
export function isAboutHost(error: unknown): boolean {
  if (!(error instanceof ScrapeError)) return false
  if (HOST_CODES.has(error.code)) return true
  return error.code === 'E_CONNECTION' && UNREACHABLE.has((error.details.cause as { code?: unknown } | undefined)?.code)
}
