/** Follows redirects: collects cookies, decides which headers to keep, detects loops and enforces the limit. */
import { ScrapeError } from '../../core/errors.ts'
import type { CookieKeeper } from '../identity/identity-cookies.ts'
import { ChainCookies } from '../identity/redirect-cookies.ts'
import type { RawHeaders } from './http-page.ts'
import { redirectTarget } from './redirect.ts'

/** The state of a redirect chain. */
export interface Trail {
  readonly request: { readonly url: string }
  url: string
  /** The URLs before the current one. */
  redirects: string[]
  cookies: CookieKeeper | undefined
  /** JSON to POST; undefined for a GET, and after a redirect that turns it into one. */
  body: string | undefined
  /** Still at the origin the caller's headers are for; once it has been left, they are not sent again. */
  isHome: boolean
}

/** Follows one redirect. Throws `E_REDIRECT_BAD` or `E_REDIRECT_LIMIT`. */
type FollowRedirect = (answer: { readonly status: number; readonly headers: RawHeaders }) => void

export function redirectWalk(trail: Trail, redirectsMax: number): FollowRedirect {
  const method = () => (trail.body === undefined ? '' : 'POST ')
  const seen = new Set([method() + trail.url])
  return ({ status, headers }) => {
    const from = new URL(trail.url)
    const setCookie = headers['set-cookie']
    if (setCookie !== undefined) {
      trail.cookies ??= new ChainCookies()
      trail.cookies.store(setCookie, from)
    }
    const target = redirectTarget(headers, from)
    trail.redirects.push(trail.url)
    trail.url = target.href
    trail.isHome &&= target.origin === from.origin
    // As in browsers: only these two repeat the request as it is, wherever they lead.
    if (status !== 307 && status !== 308) trail.body = undefined
    // The same URL with another cookie is not a loop: that is how cookie walls let clients in.
    const visit = `${method()}${target.href}\n${trail.cookies?.headerFor(target) ?? ''}`.trimEnd()
    const { length } = trail.redirects
    const notes = () => [...trail.redirects, trail.url]
    if (seen.has(visit)) throw tooManyRedirects(trail.request.url, length, { why: 'a loop', notes: notes() })
    if (length > redirectsMax) throw tooManyRedirects(trail.request.url, length, { notes: notes() })
    seen.add(visit)
  }
}

export function tooManyRedirects(
  url: string,
  count: number,
  { why = 'the limit', notes }: { why?: string; notes: string[] },
): ScrapeError {
  return new ScrapeError('E_REDIRECT_LIMIT', `${count} redirects from ${url}: ${why}`, { url, notes })
}
