/**
 * Path patterns for the routes of a new scraper, so that a list page is recognised as one whichever selector finds it. A pattern
 * repeats text from the site and becomes code, so only short paths of letters, digits and `_ . ~ -` are allowed.
 */
import { compileMatch } from '../../crawl/routes.ts'

/** One pattern for many pages: `/item/:id`. */
interface Shape {
  pattern: string
  urls: string[]
}

const SAFE = /^[\w.~/-]{1,200}$/
/** The last number of a path, unless letters follow: they would become part of the name `:n`. */
const LAST_NUMBER = /\d+(?!\w)(?=\D*$)/
/** Fewer pages of one shape may be similar by chance. */
const ALIKE_MIN = 3

export const fits = (pattern: string, url: string): boolean => compileMatch(pattern)(pathOf(url)) !== undefined

/**
 * What the pages of a list have in common: the path of its start page if only the query differs, or a path with the page number.
 * Also undefined when most other links look the same: then it does not distinguish the list from its entries.
 */
export function listPattern(start: string, pages: readonly string[], links: readonly string[]): string | undefined {
  if (pages.length === 0) return undefined
  const path = pathOf(pages[0]!)
  if (!SAFE.test(path)) return undefined
  const pattern = path === pathOf(start) ? path : path.replace(LAST_NUMBER, ':n')
  const known = new Set(pages)
  const others = links.filter((url) => !known.has(url))
  const isTelling = others.filter((url) => fits(pattern, url)).length <= others.length / 2
  return isTelling && pages.every((url) => fits(pattern, url)) ? pattern : undefined
}

/** The shape that most of these share, where they differ in one segment. */
export function mainShape(urls: readonly string[]): Shape | undefined {
  const shapes = new Map<string, string[]>()
  for (const url of urls)
    for (const pattern of patternsOf(pathOf(url))) {
      const alike = shapes.get(pattern)
      if (alike === undefined) shapes.set(pattern, [url])
      else alike.push(url)
    }
  const found = [...shapes].map(([pattern, alike]) => ({ pattern, urls: alike }))
  return found.filter((shape) => shape.urls.length >= ALIKE_MIN).sort((a, b) => weight(b) - weight(a))[0]
}

/**
 * The pattern of the entries, if it is clear which links they are and it matches no list page. If all links are entries, the
 * list's pattern is enough: it takes precedence for list pages, while a pattern here would reject them.
 */
export function thingPattern(urls: readonly string[], list: readonly string[], listMatch: string | undefined) {
  const shape = mainShape(urls)
  if (shape === undefined || isBare(shape.pattern)) return undefined
  if (listMatch !== undefined && shape.urls.length === urls.length) return undefined
  if (listMatch === undefined && list.some((url) => fits(shape.pattern, url))) return undefined
  const second = mainShape(urls.filter((url) => !fits(shape.pattern, url)))
  const isClear = second === undefined || 2 * weight(second) <= weight(shape)
  return isClear ? shape.pattern : undefined
}

/** `/about` and `/terms` share only their depth, so they say less about entries of one kind. */
export const weight = ({ pattern, urls }: Shape): number => (isBare(pattern) ? urls.length / 2 : urls.length)

const isBare = (pattern: string): boolean => /^\/:id\/?$/.test(pattern)

/** The last segment first: of two equal shapes, the one that varies further down is preferred. */
function patternsOf(path: string): string[] {
  if (!SAFE.test(path)) return []
  const segments = path.split('/')
  return segments.flatMap((segment, i) => (segment === '' ? [] : [segments.with(i, ':id').join('/')])).reverse()
}

const pathOf = (url: string): string => new URL(url).pathname
