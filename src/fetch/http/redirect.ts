/** Resolves the target of a redirect. */
import { isAscii, isUtf8 } from 'node:buffer'
import { ScrapeError } from '../../core/errors.ts'
import { URL_BYTES_MAX } from '../../core/url.ts'
import type { RawHeaders } from './http-page.ts'

/**
 * The URL of a Location header, relative to `base`, without credentials and fragment. Its query stays as the server wrote it
 * (a normalised one might be redirected again, forever). Throws `E_REDIRECT_BAD`.
 */
export function redirectTarget(headers: RawHeaders, base: URL): URL {
  const value = headers['location'] ?? ''
  const locations = typeof value === 'string' ? [value] : [...new Set(value)]
  const location = locations[0] ?? ''
  if (locations.length > 1) throw bad(base, 'several different Locations')
  if (location.length > URL_BYTES_MAX) throw bad(base, `a Location of ${location.length} bytes`)
  const target = URL.parse(readBytes(location), base.href)
  if (target === null) throw bad(base, `no URL: ${JSON.stringify(location.slice(0, 200))}`)
  if (target.protocol !== 'http:' && target.protocol !== 'https:') throw bad(base, `a ${target.protocol} URL`)
  if (target.href.length > URL_BYTES_MAX) throw bad(base, `a URL of ${target.href.length} bytes`)
  target.username = ''
  target.password = ''
  target.hash = ''
  if (target.hostname.endsWith('.')) target.hostname = target.hostname.replace(/\.+$/, '')
  if (target.hostname === '') throw bad(base, 'a URL without a host')
  return target
}

/** Headers arrive as bytes, one per character; non-ASCII ones are UTF-8 in practice. */
function readBytes(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return !isAscii(bytes) && isUtf8(bytes) ? bytes.toString('utf8') : header
}

function bad(base: URL, what: string): ScrapeError {
  return new ScrapeError('E_REDIRECT_BAD', `${base.href} redirects to ${what}`, { url: base.href })
}
