/** Cookies within one redirect chain, so that cookie walls that set a cookie and redirect back let us through. */
import { createRequire } from 'node:module'
import type { CookieJar } from 'tough-cookie'

/** Loaded with the first cookie: most chains set none. */
const toughCookie = () => createRequire(import.meta.url)('tough-cookie') as typeof import('tough-cookie')

/** A hostile chain must not make us parse an endless number of cookies. */
const COOKIES_PER_HOP_MAX = 50
const COOKIE_BYTES_MAX = 4096

export class ChainCookies {
  /**
   * One jar per port: RFC 6265 shares cookies between the ports of a host, but we treat services on other ports as other parties.
   * The default ports of http and https (both written as '') are one site.
   */
  readonly #jars = new Map<string, CookieJar>()

  store(setCookie: string | readonly string[], url: URL): void {
    let jar = this.#jars.get(url.port)
    if (jar === undefined) {
      jar = new (toughCookie().CookieJar)(undefined, { looseMode: true })
      this.#jars.set(url.port, jar)
    }
    const lines = typeof setCookie === 'string' ? [setCookie] : setCookie.slice(0, COOKIES_PER_HOP_MAX)
    for (const line of lines) {
      if (line.length <= COOKIE_BYTES_MAX) jar.setCookieSync(line, url.href, { ignoreError: true })
    }
  }

  /** The Cookie header for `url`; empty if there are none. */
  headerFor(url: URL): string {
    return this.#jars.get(url.port)?.getCookieStringSync(url.href) ?? ''
  }
}
