/**
 * The cookies of an identity, over all its pages. A jar for each site, so that one site's flood is its own: the least recently
 * used site is forgotten, and a jar that grew beyond what browsers keep begins anew. No cookie is taken for a public suffix.
 */
import { LRUCache } from 'lru-cache'
import { siteOf } from '../net/same-site.ts'
import { ChainCookies } from './redirect-cookies.ts'

/** What `http.ts` needs of cookies: within one chain of redirects, or of an identity. */
export interface CookieKeeper {
  store(setCookie: string | readonly string[], url: URL): void
  /** The Cookie header for `url`; empty when there is none. */
  headerFor(url: URL): string
}

const SITES_MAX = 100
/** Chromium keeps 180 a site; so many were set, again or anew. */
const SET_MAX = 2000

export class IdentityCookies implements CookieKeeper {
  readonly #sites = new LRUCache<string, { jar: ChainCookies; set: number }>({ max: SITES_MAX })

  store(setCookie: string | readonly string[], url: URL): void {
    const key = siteOf(url.hostname)
    let site = this.#sites.get(key)
    if (site === undefined || site.set > SET_MAX) {
      site = { jar: new ChainCookies(), set: 0 }
      this.#sites.set(key, site)
    }
    site.set += typeof setCookie === 'string' ? 1 : setCookie.length
    site.jar.store(setCookie, url)
  }

  headerFor(url: URL): string {
    if (this.#sites.size === 0) return ''
    return this.#sites.get(siteOf(url.hostname))?.jar.headerFor(url) ?? ''
  }
}
