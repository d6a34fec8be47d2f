/** Routes: from a URL to the route that reads it and the parameters in its path. */
import { ScrapeError } from '../core/errors.ts'
import type { RouteDefinition, Scraper } from '../core/scraper.ts'

export interface Route {
  readonly name: string
  readonly definition: RouteDefinition
  /** The parameters of a path, or undefined when it does not fit. */
  match(pathname: string): Record<string, string> | undefined
}

export function compileRoutes(scraper: Scraper): Map<string, Route> {
  return new Map(
    Object.entries(scraper.routes).map(([name, definition]) => [
      name,
      { name, definition, match: compileMatch(definition.match) },
    ]),
  )
}

const NO_PARAMS: Record<string, string> = Object.freeze(Object.create(null))

function compileMatch(pattern: string | undefined): Route['match'] {
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
 * A parameter stops at the slash; one that another follows in the same segment also stops at the character between them. So
 * there is one way to match at most, and no path, however made, can keep the expression busy.
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
    return segment // a stray % is the site's spelling, not our error
  }
}

/** The first route, in the order of the definition, whose pattern fits; else the first that takes any URL. */
export function findRoute(routes: ReadonlyMap<string, Route>, scraper: string, url: URL): Route {
  for (const route of routes.values()) {
    if (route.definition.match !== undefined && route.match(url.pathname) !== undefined) return route
  }
  const any = [...routes.values()].find((route) => route.definition.match === undefined)
  if (any !== undefined) return any
  throw unmatched(routes, scraper, url)
}

export function unmatched(routes: ReadonlyMap<string, Route>, scraper: string, url: URL): ScrapeError {
  const known = [...routes.values()].map(({ name, definition }) => `${name} ${definition.match ?? '(any)'}`).join(' · ')
  return new ScrapeError('E_ROUTE_UNMATCHED', `no route of "${scraper}" matches ${url.href}`, {
    url: url.href,
    notes: [`routes: ${known}`],
  })
}
