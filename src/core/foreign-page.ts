/** Requests that a web page of another site makes its reader's browser send, an `<img>` or a form included. */
import type { IncomingHttpHeaders } from 'node:http'

/** Typed by the user, or sent by a page of the server itself. `same-site` is another port of this machine: another program. */
const OWN_SITES: ReadonlySet<string> = new Set(['none', 'same-origin'])

/**
 * Browsers name the relation (`Sec-Fetch-Site`) on every request to loopback, and the page's origin on all but simple reads. Neither
 * can be set by the page. Programs that are not browsers send none of them.
 */
export function isFromForeignPage({
  host,
  origin,
  'sec-fetch-site': site,
}: Pick<IncomingHttpHeaders, 'host' | 'origin' | 'sec-fetch-site'>): boolean {
  if (site !== undefined && !OWN_SITES.has(String(site))) return true
  if (origin === undefined) return false
  const own = URL.parse(`http://${host ?? ''}`)
  return own === null || URL.parse(origin)?.origin !== own.origin
}
