/** Routes: finds the route that reads a URL, and the parameters in its path. */
import { ScrapeError } from '../core/errors.ts'
import type { RouteDefinition, Scraper } from '../core/scraper.ts'

export interface Route {
  readonly name: string
  readonly definition: RouteDefinition
  /** undefined: accepts any URL it is enqueued for, and claims none. */
  readonly specificity: Specificity | undefined
  /** The parameters of a path, or undefined if it does not match. */
  match(pathname: string): Record<string, string> | undefined
}

/**
 * How specific a pattern is: one pair for each of its segments, left to right. The first number is the kind of the segment, the
 * second the number of literal characters.
 */
type Specificity = readonly (readonly [kind: number, literals: number])[]

export function compileRoutes(scraper: Scraper): Map<string, Route> {
  return new Map(
    Object.entries(scraper.routes).map(([name, definition]) => [
      name,
      { name, definition, match: compileMatch(definition.match), specificity: specificityOf(definition.match) },
    ]),
  )
}

const NO_PARAMS: Record<string, string> = Object.freeze(Object.create(null))

export function compileMatch(pattern: string | undefined): Route['match'] {
  if (pattern === undefined) return () => NO_PARAMS
  const names: string[] = []
  const source = pattern
    .split('/')
    .map((segment) => segmentSource(segment, names))
    .join('/')
  const regex = new RegExp(`^${source}$`)
  return (pathname) => {
    const found = regex.exec(pathname)
    if (found === null) return undefined
    if (names.length === 0) return NO_PARAMS
    const params: Record<string, string> = Object.create(null)
    names.forEach((name, i) => {
      params[name] = decode(found[i + 1]!)
    })
    return params
  }
}

/**
 * A parameter ends at the slash; if another one follows in the same segment, it also ends at the character between them. So
 * there is at most one way to match, and no malicious path can keep the expression busy.
 */
function segmentSource(segment: string, names: string[]): string {
  const parts = segment.split(/:([A-Za-z_]\w*)/) // text, name, text, name, … text
  let source = literal(parts[0]!)
  for (let i = 1; i < parts.length; i += 2) {
    names.push(parts[i]!)
    const text = parts[i + 1]!
    const isLast = i + 2 >= parts.length
    const stop = isLast || text === '' ? '' : `\\${text[0]}`.replace(/^\\(?=\w)/, '')
    source += `([^/${stop}]+)${literal(text)}`
  }
  return source
}

function literal(text: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '.*')
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment // a stray % is how the site spells it, not an error
  }
}

const PARAMETER = /:[A-Za-z_]\w*/g

function specificityOf(pattern: string | undefined): Specificity | undefined {
  return pattern?.split('/').map((segment) => {
    const literals = segment.replace(PARAMETER, '').replace('*', '').length
    if (segment.includes('*')) return [0, literals]
    if (segment.search(PARAMETER) === -1) return [3, literals]
    return [literals === 0 ? 1 : 2, literals]
  })
}

/**
 * Positive if `a` is more specific than `b`. Segments are compared left to right, and the first difference decides: text
 * beats text with a parameter, which beats a bare parameter, which beats `*`; of the same kind the one with more literal
 * characters wins. If one pattern is a prefix of the other, the longer one wins. This is a total order, so the result does not
 * depend on the order of the calls.
 */
function compareSpecificity(a: Specificity, b: Specificity): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a[i]![0] - b[i]![0] || a[i]![1] - b[i]![1]
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/**
 * The route whose `match` claims a path: the most specific one that matches. If several are equally specific, `named` if it is
 * among them, otherwise the first in the order of the definition. A task of a route with `post` is identified by its body, so
 * such a route claims nothing from a named one. undefined: no pattern matches.
 */
export function claimingRoute(
  routes: ReadonlyMap<string, Route>,
  pathname: string,
  named?: Route | undefined,
): Route | undefined {
  let best: Route | undefined
  for (const route of routes.values()) {
    if (route.specificity === undefined || route.match(pathname) === undefined) continue
    if (named !== undefined && route !== named && route.definition.post !== undefined) continue
    const difference = best === undefined ? 1 : compareSpecificity(route.specificity, best.specificity!)
    if (difference > 0 || (difference === 0 && route === named)) best = route
  }
  return best
}

/** The route whose `match` claims the URL; otherwise the first that accepts any URL. */
export function findRoute(routes: ReadonlyMap<string, Route>, scraper: string, url: URL): Route {
  const found =
    claimingRoute(routes, url.pathname) ?? [...routes.values()].find((route) => route.specificity === undefined)
  if (found !== undefined) return found
  throw unmatched(routes, scraper, url)
}

export function unmatched(routes: ReadonlyMap<string, Route>, scraper: string, url: URL): ScrapeError {
  const known = [...routes.values()].map(({ name, definition }) => `${name} ${definition.match ?? '(any)'}`).join(' · ')
  return new ScrapeError('E_ROUTE_UNMATCHED', `no route of "${scraper}" matches ${url.href}`, {
    url: url.href,
    notes: [`routes: ${known}`],
  })
}
