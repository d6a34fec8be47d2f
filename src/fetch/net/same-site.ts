/** The sites of a visit: registrable domains, according to the public suffix list. */
import { createRequire } from 'node:module'
import { isIP } from 'node:net'

/** Loaded with the first page that is restricted to its site. */
const toughCookie = () => createRequire(import.meta.url)('tough-cookie') as typeof import('tough-cookie')

/** The sites a visit may contact: its own, and those its redirects lead to. */
export class Sites {
  readonly #sites = new Set<string>()

  constructor(url: string) {
    this.add(url)
  }

  add(url: string): void {
    this.#sites.add(siteOf(new URL(url).hostname))
  }

  has(hostname: string): boolean {
    return this.#sites.has(siteOf(hostname))
  }
}

/** The registrable domain; an IP address is its own site. */
export function siteOf(hostname: string): string {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (isIP(host) !== 0) return host
  return toughCookie().getPublicSuffix(host, { allowSpecialUseDomain: true, ignoreError: true }) ?? host
}
