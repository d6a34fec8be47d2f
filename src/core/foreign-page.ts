/** Requests that a browser sends on behalf of a page of another site, including those of an `<img>` or a form. */
import type { IncomingHttpHeaders } from 'node:http'

/** Typed by the user, or sent by one of the server's own pages. `same-site` is another port of this machine, so another program. */
const OWN_SITES: ReadonlySet<string> = new Set(['none', 'same-origin'])

/**
 * Browsers send `Sec-Fetch-Site` with every request to loopback, and the origin of the page with all but simple reads. The page
 * can set neither. Programs that are not browsers send neither.
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
