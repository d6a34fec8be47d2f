/** The cookies of a signed-in user as a request header, for pages and files that are fetched without a browser. */

import { isLoopbackHost } from '../../core/loopback.ts'
import type { SessionCookie, SessionState } from '../../core/session-state.ts'

/** As RFC 6265 says: cookies of this host and path, secure ones not over plain http, the longest path first. */
export function sessionHeaders(state: SessionState, url: string, nowMs: number = Date.now()): Record<string, string> {
  const target = new URL(url)
  const cookies = state.cookies
    .filter((cookie) => isFor(cookie, target) && (cookie.expires < 0 || cookie.expires * 1000 > nowMs))
    .sort((a, b) => b.path.length - a.path.length)
  const pairs = cookies
    .map(({ name, value }) => asBytes(`${name}=${value}`))
    .filter((pair) => [...pair].every((letter) => letter >= ' ' && letter !== '\x7f'))
  return pairs.length === 0 ? {} : { cookie: pairs.join('; ') }
}

/** As browsers do: a header is bytes, and one site's odd cookie must not end the run. */
const asBytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

function isFor({ domain, path, secure }: SessionCookie, { hostname, pathname, protocol }: URL): boolean {
  if (secure && protocol !== 'https:' && !isLoopbackHost(hostname)) return false
  const host = domain.replace(/^\./, '').toLowerCase()
  const isHost = hostname === host || (domain.startsWith('.') && hostname.endsWith(`.${host}`))
  const folder = path.endsWith('/') ? path : `${path}/`
  return isHost && (pathname === path || pathname.startsWith(folder))
}
