/**
 * Initial selectors for a new scraper, from a look at the site. All of them come from the lists below, never from the page: the
 * content of a page must not end up as code. (Path patterns do repeat its URLs; guess-routes.ts says within what limits.)
 */
import type { DocumentSelection } from '../../core/selection.ts'
import { anchors, release, select } from '../../extract/html.ts'
import { fits, listPattern, mainShape, thingPattern, weight } from './guess-routes.ts'

interface Page {
  text: string
  url: string
}

export interface ListGuess {
  /** Selector for links to the detail pages; undefined when the page has no links within its own site. */
  links: string | undefined
  /** Selector for links to other pages of the list, including previous ones. */
  next: string | undefined
  /** One page that the links lead to. */
  example: string | undefined
  /** `match` of the routes: for list pages, and for detail pages. */
  listMatch: string | undefined
  pageMatch: string | undefined
}

export interface PageGuess {
  title: string
  description: string | undefined
  price: string | undefined
}

/** From the most reliable sign of "one of many entries" to any link at all. */
const SURE_LINKS = ['article h2 a', 'article h3 a', 'article h1 a', 'h2 a', 'h3 a', 'article a']
/** These may match a navigation as well: the one with the most links of one shape is chosen. */
const PLAIN_LINKS = [
  ['main li a', 'main td a', 'main a'],
  ['li a', 'a'],
]
/** Links to the next page of a list → those and links to the previous page: neither is an entry of the list. */
const LIST_PAGES = [
  { next: 'a[rel~="next"]', pages: ['a[rel~="next"]', 'a[rel~="prev"]'] },
  { next: 'li.next a', pages: ['li.next a', 'li.prev a', 'li.previous a'] },
  { next: 'a.next', pages: ['a.next', 'a.prev', 'a.previous'] },
  { next: '.next a', pages: ['.next a', '.prev a', '.previous a'] },
  { next: '.pagination a', pages: ['.pagination a'] },
  { next: '.pager a', pages: ['.pager a'] },
]
const TITLES = ['main h1', 'h1']
const DESCRIPTION = 'meta[name="description"]'
const PRICES = ['[itemprop="price"]', '.price_color', '.price', '[class*="price"]']

const LINKS_MIN = 3

interface Links {
  css: string
  urls: string[]
}

export function guessList(page: Page): ListGuess {
  return read(page, ($) => {
    const pages = listPages($, page.url)
    const marked = new Set(pages.flatMap((css) => inSite($, css, page.url)))
    const list = listPattern(page.url, [...marked], inSite($, 'a', page.url))
    const linksOf = (css: string): Links => {
      const urls = inSite($, css, page.url)
      const things = urls.filter((url) => !marked.has(url))
      return {
        css: things.length < urls.length ? except(css, pages) : css,
        urls: list === undefined ? things : things.filter((url) => !fits(list, url)),
      }
    }
    const best = bestLinks(
      SURE_LINKS.map(linksOf),
      PLAIN_LINKS.map((group) => group.map(linksOf)),
    )
    const listMatch = list !== undefined && fits(list, page.url) ? list : undefined
    const isPlain = best !== undefined && pages.length > 0 && !SURE_LINKS.some((css) => best.css.startsWith(css))
    return {
      links: best?.css,
      next: pages.length === 0 ? undefined : pages.join(', '),
      example: best === undefined ? undefined : (mainShape(best.urls) ?? best).urls[0],
      listMatch,
      pageMatch: isPlain ? thingPattern(best.urls, [page.url, ...marked], listMatch) : undefined,
    }
  })
}

function bestLinks(sure: Links[], plain: Links[][]): Links | undefined {
  const isEnough = ({ urls }: Links) => urls.length >= LINKS_MIN
  const weightOf = ({ urls }: Links) => {
    const shape = mainShape(urls)
    return shape === undefined ? 0 : weight(shape)
  }
  const mostAlike = plain.flatMap((group) =>
    group
      .filter(isEnough)
      .sort((a, b) => weightOf(b) - weightOf(a))
      .slice(0, 1),
  )
  return sure.find(isEnough) ?? mostAlike[0] ?? [...sure, ...plain.flat()].findLast(({ urls }) => urls.length > 0)
}

/** Every sign on this page: a site may mark its next page and number the others. Of `li.next a` and `.next a`, one is enough. */
function listPages($: DocumentSelection, url: string): string[] {
  const known = new Set<string>()
  return LIST_PAGES.flatMap(({ next, pages }) => {
    const urls = inSite($, next, url).filter((one) => !known.has(one))
    for (const one of urls) known.add(one)
    return urls.length === 0 ? [] : pages
  })
}

const except = (css: string, pages: readonly string[]) => `${css}:not(${pages.join(', ')})`

export function guessPage(page: Page): PageGuess {
  return read(page, ($) => ({
    // Every page has a title; not every page has a heading.
    title: TITLES.find((css) => ($.text(css, { optional: true }) ?? '') !== '') ?? 'title',
    description: ($.attr(DESCRIPTION, 'content', { optional: true }) ?? '').trim() === '' ? undefined : DESCRIPTION,
    price: PRICES.find((css) => isNumber($, css)),
  }))
}

/** Defaults for a scraper when the site could not be read. */
export const BLIND: ListGuess & PageGuess = {
  links: 'a',
  next: undefined,
  example: undefined,
  listMatch: undefined,
  pageMatch: undefined,
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
    return false // text without a number
  }
}
