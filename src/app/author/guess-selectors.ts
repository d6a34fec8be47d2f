/**
 * First selectors for a new scraper, from a look at the site. All of them come from the lists below, never from the page: what
 * a page says must not end up as code.
 */
import type { DocumentSelection } from '../../core/selection.ts'
import { anchors, release, select } from '../../extract/html.ts'

export interface Page {
  text: string
  url: string
}

export interface ListGuess {
  /** Selector of links to the pages that matter; undefined when the page has no links into its own site. */
  links: string | undefined
  next: string | undefined
  /** One page the links lead to. */
  example: string | undefined
}

export interface PageGuess {
  title: string
  description: string | undefined
  price: string | undefined
}

/** From the surest sign of "one of many things" to any link at all. */
const LINKS = [
  'article h2 a',
  'article h3 a',
  'article h1 a',
  'h2 a',
  'h3 a',
  'article a',
  'main li a',
  'main td a',
  'main a',
  'li a',
  'a',
]
const NEXT = ['a[rel~="next"]', 'li.next a', 'a.next', '.next a', '.pagination a']
const TITLES = ['main h1', 'h1']
const DESCRIPTION = 'meta[name="description"]'
const PRICES = ['[itemprop="price"]', '.price_color', '.price', '[class*="price"]']

const LINKS_MIN = 3

export function guessList(page: Page): ListGuess {
  return read(page, ($) => {
    const found = LINKS.map((css) => ({ css, urls: inSite($, css, page.url) }))
    const best = found.find(({ urls }) => urls.length >= LINKS_MIN) ?? found.findLast(({ urls }) => urls.length > 0)
    return {
      links: best?.css,
      next: NEXT.find((css) => inSite($, css, page.url).length > 0),
      example: best?.urls[0],
    }
  })
}

export function guessPage(page: Page): PageGuess {
  return read(page, ($) => ({
    // Every page has a title; not every page has a heading.
    title: TITLES.find((css) => ($.text(css, { optional: true }) ?? '') !== '') ?? 'title',
    description: ($.attr(DESCRIPTION, 'content', { optional: true }) ?? '').trim() === '' ? undefined : DESCRIPTION,
    price: PRICES.find((css) => isNumber($, css)),
  }))
}

/** What a scraper starts with when nobody could look. */
export const BLIND: ListGuess & PageGuess = {
  links: 'a',
  next: undefined,
  example: undefined,
  title: 'title',
  description: DESCRIPTION,
  price: undefined,
}

function read<T>({ text, url }: Page, use: ($: DocumentSelection) => T): T {
  const $ = select(text, url)
  try {
    return use($)
  } finally {
    release($)
  }
}

function inSite($: DocumentSelection, css: string, url: string): string[] {
  const here = new URL(url)
  const found = new Set<string>()
  for (const { href } of anchors($, css).anchors) {
    const target = URL.parse(href)
    if (target === null || target.host !== here.host) continue
    target.hash = ''
    if (target.href !== here.href) found.add(target.href)
  }
  return [...found]
}

function isNumber($: DocumentSelection, css: string): boolean {
  try {
    return $.number(css, { optional: true }) !== undefined
  } catch {
    return false // text without a number in it
  }
}
