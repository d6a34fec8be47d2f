/** Links of a page, for following. One bad link never affects the others. */
import { countNotFetched, type NotFetchedCounts } from '../core/not-fetched.ts'
import type { Anchor, DocumentSelection } from '../core/selection.ts'
import { attributeOf } from './attributes.ts'
import { Document, Place } from './place.ts'
import { textOf } from './text.ts'

interface FoundAnchors {
  /** The http(s) links, absolute, in page order. */
  anchors: Anchor[]
  /** Links that are not URLs. */
  bad: number
  /** Distinct links with a scheme that is not fetched: `mailto:`, `javascript:` … */
  otherSchemes: number
}

/** A page with more links is a trap or a sitemap. */
export const LINKS_MAX = 10_000

const isWeb = (url: string): boolean => url.startsWith('http://') || url.startsWith('https://')

class Link implements Anchor {
  readonly href: string
  readonly #place: Place

  constructor(href: string, place: Place) {
    this.href = href
    this.#place = place
  }

  get text(): string {
    return this.#place.text()
  }

  attr(name: string): string | undefined {
    return this.#place.ownAttr(name)
  }
}

/** The link target as written in the page; links inside SVG may still use the old name. */
function hrefOf(place: Place): string | undefined {
  const { index } = place.document
  return attributeOf(index, place.token, 'href') ?? attributeOf(index, place.token, 'xlink:href')
}

/**
 * What `enqueue.links` follows: every match of `css` with an http(s) href, in page order. The others are counted: those that are
 * not URLs at all, and distinct ones with other schemes.
 */
export function anchors($: DocumentSelection, css: string): FoundAnchors {
  const found: Anchor[] = []
  const others = new Set<string>()
  let bad = 0
  for (const place of $.all(css) as Place[]) {
    const href = hrefOf(place)
    if (href === undefined) continue
    const url = place.document.resolve(href)
    if (url === undefined) bad++
    else if (isWeb(url)) found.push(new Link(url, place))
    else if (others.size < LINKS_MAX) others.add(url)
  }
  return { anchors: found, bad, otherSchemes: others.size }
}

export interface PageLink {
  readonly url: string
  /** The rel attribute, lower case; empty if there is none. */
  readonly rel: string
  /** The link, or the page's robots meta tag, asks crawlers not to follow. */
  readonly nofollow: boolean
  /** Only if requested. */
  readonly text?: string
}

export interface AllLinksOptions {
  /** At most this many, the first ones on the page. */
  max?: number
  text?: boolean
  /** Counts omitted links: over `max`, with other schemes, not URLs. */
  leftOut?: NotFetchedCounts
}

/** Every distinct http(s) link of a page (`a` and `area`), in page order. Fragments (`#part`) are ignored. */
export function allLinks(page: string | DocumentSelection, baseUrl: string, options: AllLinksOptions = {}): PageLink[] {
  const { max = LINKS_MAX, text = false, leftOut = {} } = options
  const $ = typeof page === 'string' ? new Place(new Document(page, baseUrl), -1, '') : page
  const isPageNofollow = $.all('meta[name="robots" i][content]').some((meta) =>
    /\b(?:nofollow|none)\b/i.test(meta.ownAttr('content')!),
  )
  const links = new Map<string, PageLink>()
  const others = new Set<string>()
  for (const place of $.all('a, area') as Place[]) {
    const href = hrefOf(place)
    if (href === undefined) continue
    const resolved = place.document.resolve(href)
    const url = resolved === undefined || !isWeb(resolved) ? undefined : withoutFragment(resolved)
    if (url === undefined || (links.size >= max && !links.has(url))) {
      const name = url ?? resolved ?? href
      if (others.has(name)) continue
      if (others.size < LINKS_MAX) others.add(name)
      countNotFetched(leftOut, url !== undefined ? 'links' : resolved === undefined ? 'url' : 'scheme')
    } else if (!links.has(url)) {
      const rel = place.ownAttr('rel')?.trim().toLowerCase() ?? ''
      links.set(url, {
        url,
        rel,
        nofollow: isPageNofollow || rel.split(/\s+/).includes('nofollow'),
        ...(text ? { text: textOf(place.document.index, place.token) } : {}),
      })
    }
  }
  return [...links.values()]
}

function withoutFragment(url: string): string {
  const end = url.indexOf('#')
  return end === -1 ? url : url.slice(0, end)
}
