/** Maps errors of undici, Node and OpenSSL to our error codes. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'

/** Codes of undici, Node and the C library. OpenSSL has hundreds of its own, which are matched by prefix below. */
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

interface TransportFailure {
  url: string
  /** A response had begun: a lost connection then means a truncated body, not a failed connection. */
  hasResponse: boolean
}

/** Wraps any transport error in a `ScrapeError`. */
export function transportError(cause: unknown, { url, hasResponse }: TransportFailure): ScrapeError {
  if (cause instanceof ScrapeError) {
    if (cause.details.url !== undefined) return cause
    return new ScrapeError(cause.code, `${cause.message} (${url})`, { ...cause.details, url })
  }
  const error = (cause ?? {}) as NodeJS.ErrnoException
  let code = codeOfError(error)
  if (code === 'E_RESOURCES') return shortage(error, url)
  if (hasResponse && code === 'E_CONNECTION') code = 'E_BODY_SHORT'
  // undici checks the length before it parses it: an invalid Content-Length looks like a body that was too short.
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

/** How long a page waits for free resources; a random delay of up to the same length is added. */
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
  // What undici reports for an unexpected answer: unsolicited data, a 100 or 101 out of turn.
  if (code === 'UND_ERR_SOCKET' && /^bad (?:response|upgrade)$/.test(error.message)) return 'E_PROTOCOL'
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    return /path|url/i.test(error.message) ? 'E_URL_INVALID' : 'E_DEFINITION'
  }
  return 'E_CONNECTION'
}
