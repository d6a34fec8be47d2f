/** The optional package that imitates browser TLS handshakes: how it is loaded, and what its errors mean. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { optionalPackage } from '../../core/optional-package.ts'

export type TlsLibrary = Pick<typeof import('wreq-js'), 'createTransport' | 'fetch' | 'getProfiles'>

/** Native code without an install script. Throws `E_PACKAGE_MISSING`, also if it does not start on this machine. */
export async function loadTlsLibrary(load: () => Promise<TlsLibrary> = () => import('wreq-js')): Promise<TlsLibrary> {
  return await optionalPackage('the identity tls needs', 'wreq-js', load)
}

/**
 * The library's errors are messages without a code. Each pattern contains a space, or follows one: a URL in the message has none,
 * so no site can influence the match. An error that matches no pattern is a lost connection.
 */
const SENTENCES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/ \(Connect\): \[[A-Z0-9_]+\]/, 'E_TLS'],
  [/ \(Connect\): operation timed out/, 'E_TIMEOUT_CONNECT'],
  [/ message head is too large/, 'E_HEADERS_TOO_LARGE'],
  [/ end of file before message length| unexpected EOF during chunk/, 'E_BODY_SHORT'],
  [/ invalid [\w -]+ parsed| Invalid chunk size| http2 error: (?:stream|connection) error detected/, 'E_PROTOCOL'],
]

/** The egress proxy refused the connection, and knows why. */
export function isFromDoor(error: unknown): boolean {
  return / \(ProxyConnect\): /.test(String(error))
}

/** What happens when a server closes a kept-alive connection just as a request is sent on it. */
export function isLostInSending(error: unknown): boolean {
  return / \(SendRequest\): (?:connection closed before message completed|connection reset|.*broken pipe)/i.test(
    String(error),
  )
}

export function readTlsError(error: unknown, hasResponse: boolean): ScrapeError {
  const sentence = String(error)
  const found = SENTENCES.find(([pattern]) => pattern.test(sentence))?.[1]
  const what = sentence.slice(sentence.lastIndexOf('): ') + 1).replace(/^: /, '')
  return new ScrapeError(found ?? (hasResponse ? 'E_BODY_SHORT' : 'E_CONNECTION'), what.slice(0, 500), { cause: error })
}
