/**
 * The cookies of an identity, across all its pages. Each site has its own jar, so that a flood of cookies affects only the site
 * that set them: the least recently used site is dropped, and a jar that grows beyond what browsers keep is replaced by an empty
 * one. Cookies for a public suffix are rejected.
 */
import { LRUCache } from 'lru-cache'
import { siteOf } from '../net/same-site.ts'
import { ChainCookies } from './redirect-cookies.ts'

/** What `http.ts` needs from cookies, whether they belong to one redirect chain or to an identity. */
export interface CookieKeeper {
  store(setCookie: string | readonly string[], url: URL): void
  /** The Cookie header for `url`; empty if there are none. */
  headerFor(url: URL): string
}

const SITES_MAX = 100
/** Cookies that may be set, including repeats, before the jar is replaced; Chromium keeps 180 per site. */
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
