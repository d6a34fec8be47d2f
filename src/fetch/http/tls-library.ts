/** The optional package that shakes hands as a browser does: how it is found, and what its errors mean. */
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { optionalPackage } from '../../core/optional-package.ts'

export type TlsLibrary = Pick<typeof import('wreq-js'), 'createTransport' | 'fetch' | 'getProfiles'>

/** Native code without an install script. Throws `E_PACKAGE_MISSING`, also when it does not start on this machine. */
export async function loadTlsLibrary(load: () => Promise<TlsLibrary> = () => import('wreq-js')): Promise<TlsLibrary> {
  return await optionalPackage('the identity tls needs', 'wreq-js', load)
}

/**
 * The library's errors are sentences without a code. Each pattern has a space, or follows one: a URL, which the sentence repeats,
 * has none, so no site can choose what we read. What none of them fits is a lost connection.
 */
const SENTENCES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/ \(Connect\): \[[A-Z0-9_]+\]/, 'E_TLS'],
  [/ \(Connect\): operation timed out/, 'E_TIMEOUT_CONNECT'],
  [/ message head is too large/, 'E_HEADERS_TOO_LARGE'],
  [/ end of file before message length| unexpected EOF during chunk/, 'E_BODY_SHORT'],
  [/ invalid [\w -]+ parsed| Invalid chunk size| http2 error: (?:stream|connection) error detected/, 'E_PROTOCOL'],
]

/** The door we gave it turned it away: it knows why. */
export function isFromDoor(error: unknown): boolean {
  return / \(ProxyConnect\): /.test(String(error))
}

/** What is seen when a server closes a kept connection just as a request is sent on it. */
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
