/** A sitemap may only list pages of its own site: it must not send a crawler to another one. */

interface HostRule {
  /** Sites that the user named, as URLs: their hosts and ports count. */
  sites: readonly string[]
  /** Other hosts whose pages are accepted, as `host` or `host:port`. */
  more?: readonly string[]
  /** Accept pages of any host. */
  isAny?: boolean
}

/** Entries that were skipped because of their host: the most frequent hosts by name, the rest together. */
export class ForeignHosts {
  readonly #counts = new Map<string, number>()
  total = 0

  add(host: string): void {
    this.total++
    const known = this.#counts.get(host)
    if (known !== undefined || this.#counts.size < HOSTS_MAX) this.#counts.set(host, (known ?? 0) + 1)
  }

  /** `3 entries for other hosts skipped: cdn.example (2), x.example (1)`; undefined if there are none. */
  text(): string | undefined {
    if (this.total === 0) return undefined
    const most = [...this.#counts].sort(([, a], [, b]) => b - a).slice(0, HOSTS_SHOWN_MAX)
    const shown = most.map(([host, count]) => `${host} (${count})`).join(', ')
    const rest = this.#counts.size > most.length ? ', …' : ''
    return `${this.total} ${this.total === 1 ? 'entry' : 'entries'} for other hosts skipped: ${shown}${rest}`
  }
}

const HOSTS_MAX = 1_000
const HOSTS_SHOWN_MAX = 5

/** The site is the same with or without `www.`, but not with another port or any other name. */
export function ownHosts({ sites, more = [], isAny = false }: HostRule): (host: string) => boolean {
  if (isAny) return () => true
  const own = new Set(
    [...sites.map((url) => URL.parse(url)?.host ?? ''), ...more.map((host) => host.toLowerCase())].map(bare),
  )
  return (host) => own.has(bare(host))
}

const bare = (host: string) => host.replace(/^www\./, '')
