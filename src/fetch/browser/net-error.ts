/** Maps Chromium's network errors to our codes. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EgressProxy } from '../net/egress.ts'

/** By the name of the network error; the first match wins. */
const CODES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/^ERR_(?:CERT_|SSL_|BAD_SSL_|ECH_)/, 'E_TLS'],
  [/^ERR_NAME_|^ERR_DNS_|^ERR_ICANN_/, 'E_DNS'],
  [/^ERR_TOO_MANY_REDIRECTS$/, 'E_REDIRECT_LIMIT'],
  [/^ERR_UNSAFE_REDIRECT$|^ERR_INVALID_REDIRECT$/, 'E_REDIRECT_BAD'],
  [/^ERR_(?:CONTENT_LENGTH_MISMATCH|INCOMPLETE_CHUNKED_ENCODING|INCOMPLETE_HTTP2)/, 'E_BODY_SHORT'],
  [/^ERR_CONTENT_DECODING/, 'E_ENCODING'],
  [/^ERR_RESPONSE_HEADERS_TOO_BIG$/, 'E_HEADERS_TOO_LARGE'],
  [/^ERR_(?:INVALID_(?:HTTP_RESPONSE|CHUNKED_ENCODING|RESPONSE)|RESPONSE_|HTTP2_|HTTP_1_1|QUIC_)/, 'E_PROTOCOL'],
  [/^ERR_(?:TIMED_OUT|CONNECTION_TIMED_OUT)$/, 'E_TIMEOUT_CONNECT'],
  [/^ERR_(?:BLOCKED_BY_CLIENT|DISALLOWED_URL_SCHEME|UNKNOWN_URL_SCHEME|FILE_)/, 'E_URL_SCHEME'],
  [/^ERR_(?:INVALID_URL|UNSAFE_PORT)$/, 'E_URL_INVALID'],
]

/** Extracts `ERR_…` from a driver message; empty if there is none. */
export function netErrorOf(error: unknown): string {
  return /net::(ERR_[A-Z0-9_]+)/.exec(messageOf(error))?.[1] ?? ''
}

interface Failed {
  /** The hop that failed. */
  url: string
  /** A response had begun: a lost connection then means a truncated body. */
  hasResponse: boolean
  door: EgressProxy
}

/** Why the egress proxy refused a navigation; undefined if the proxy was not the reason. */
export function refusalOf(cause: unknown, url: string, door: EgressProxy): ScrapeError | undefined {
  const name = netErrorOf(cause)
  if (!name.startsWith('ERR_SOCKS_') && name !== 'ERR_PROXY_CONNECTION_FAILED') return undefined
  const { hostname, port, protocol } = new URL(url)
  if (door.hasShutOut(hostname)) return new ScrapeError('E_REDIRECT_BAD', `${url} is another site`, { url })
  const failure = door.failureOf(hostname, Number(port) || (protocol === 'https:' ? 443 : 80))
  return failure && new ScrapeError(failure.code, failure.message, { ...failure.details, url })
}

export function navigationError(cause: unknown, { url, hasResponse, door }: Failed): ScrapeError {
  const refusal = refusalOf(cause, url, door)
  if (refusal !== undefined) return refusal
  const name = netErrorOf(cause)
  const known = CODES.find(([pattern]) => pattern.test(name))?.[1]
  const code = known ?? (hasResponse ? 'E_BODY_SHORT' : 'E_CONNECTION')
  return new ScrapeError(code, `${name || messageOf(cause)} (${url})`, { url, cause })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
