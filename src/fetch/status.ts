/** What went wrong, in our codes: from a status, from an error of undici, Node or OpenSSL. */
import type { ErrorCode } from '../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../core/errors.ts'
import type { Page } from '../core/page.ts'
import { acceptsStatus } from './accept.ts'
import type { FetchRequest } from './contract.ts'
import { headerOf, type RawHeaders } from './http-page.ts'
import { parseRetryAfterMs } from './retry-after.ts'

/** page: deliver it · redirect: follow it · failed: an error with a code · file: not a page by its type. */
export type Outcome = 'page' | 'redirect' | 'failed' | 'file'

/** 429 without Retry-After: long enough to matter, short enough not to lose the run. */
const RETRY_AFTER_MS_DEFAULT = 30_000

const failedPage = new WeakMap<ScrapeError, Page>()

/** The page that came with an error status, for the block check and the dead-letter snapshot; its body may be cut. */
export function pageOf(error: ScrapeError): Page | undefined {
  return failedPage.get(error)
}

export function withPage(error: ScrapeError, page: Page): ScrapeError {
  failedPage.set(error, page)
  return error
}

export function outcomeOf(status: number, headers: RawHeaders, request: FetchRequest): Outcome {
  if (acceptsStatus(request.accept, status)) return 'page'
  if (status >= 200 && status < 300) {
    // A part we did not ask for would pass for the whole.
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

/** Codes of undici, Node and the C library. OpenSSL has hundreds of its own: those are matched by their prefix below. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  UND_ERR_CONNECT_TIMEOUT: 'E_TIMEOUT_CONNECT',
  ETIMEDOUT: 'E_TIMEOUT_CONNECT',
  UND_ERR_HEADERS_TIMEOUT: 'E_TIMEOUT_HEADERS',
  UND_ERR_BODY_TIMEOUT: 'E_TIMEOUT_BODY',
  UND_ERR_HEADERS_OVERFLOW: 'E_HEADERS_TOO_LARGE',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'E_BODY_SHORT',
  ENOTFOUND: 'E_DNS',
  EAI_AGAIN: 'E_DNS',
  EAI_FAIL: 'E_DNS',
  EAI_NODATA: 'E_DNS',
  EAI_NONAME: 'E_DNS',
  ENODATA: 'E_DNS',
  ESERVFAIL: 'E_DNS',
  EMFILE: 'E_RESOURCES',
  ENFILE: 'E_RESOURCES',
  ENOMEM: 'E_RESOURCES',
  ENOBUFS: 'E_RESOURCES',
  EAGAIN: 'E_RESOURCES',
  EPROTO: 'E_TLS',
  HOSTNAME_MISMATCH: 'E_TLS',
}

const TLS_CODE =
  /^ERR_SSL_|^ERR_TLS_|^CERT_|^CRL_|^UNABLE_TO_|SELF_SIGNED|^INVALID_(?:CA|PURPOSE)|^PATH_LENGTH_EXCEEDED/

export interface TransportFailure {
  url: string
  /** A response had begun: a lost connection is then a cut body, not a failed connection. */
  hasResponse: boolean
}

/** Any error of the transport in our family. */
export function transportError(cause: unknown, { url, hasResponse }: TransportFailure): ScrapeError {
  if (cause instanceof ScrapeError) {
    if (cause.details.url !== undefined) return cause
    return new ScrapeError(cause.code, `${cause.message} (${url})`, { ...cause.details, url })
  }
  const error = (cause ?? {}) as NodeJS.ErrnoException
  let code = codeOfError(error)
  if (code === 'E_RESOURCES') return shortage(error, url)
  if (hasResponse && code === 'E_CONNECTION') code = 'E_BODY_SHORT'
  // undici counts before it reads: a length it cannot make sense of looks like one that was not reached.
  if (!hasResponse && code === 'E_BODY_SHORT') code = 'E_PROTOCOL'
  return new ScrapeError(code, `${plainWords(error) || error.code || String(cause)} (${url})`, { url, cause })
}

/** Errors from a port that does not speak TLS. */
const NO_TLS = /wrong version number|packet length too long|http request|unknown protocol|record layer failure/i

/** OpenSSL's messages contain addresses, source files and line numbers; only one part is the reason. */
function plainWords({ message, reason }: NodeJS.ErrnoException & { reason?: string }): string {
  const said = reason ?? /:SSL routines:[^:]*:([^:\n]+)/.exec(message)?.[1]
  if (said === undefined) return message
  return NO_TLS.test(said) ? `the server does not speak TLS on this port: ${said}` : `TLS failed: ${said}`
}

/** How long a page waits for free resources; a random time up to the same length is added. */
const SHORTAGE_MS = 1_000

function shortage(cause: NodeJS.ErrnoException, url: string): ScrapeError {
  const retryAfterMs = Math.round(SHORTAGE_MS * (1 + Math.random()))
  return new ScrapeError('E_RESOURCES', `${cause.message || cause.code} (${url})`, { url, cause, retryAfterMs })
}

function codeOfError(error: NodeJS.ErrnoException): ErrorCode {
  const code = error.code ?? ''
  const known = CODES[code]
  if (known !== undefined) return known
  if (error.name === 'HTTPParserError')
    return error.message.includes('Invalid EOF state') ? 'E_BODY_SHORT' : 'E_PROTOCOL'
  if (TLS_CODE.test(code)) return 'E_TLS'
  // undici's words for an answer it cannot place: data nobody asked for, a 100 or 101 out of turn.
  if (code === 'UND_ERR_SOCKET' && /^bad (?:response|upgrade)$/.test(error.message)) return 'E_PROTOCOL'
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    return /path|url/i.test(error.message) ? 'E_URL_INVALID' : 'E_DEFINITION'
  }
  return 'E_CONNECTION'
}
