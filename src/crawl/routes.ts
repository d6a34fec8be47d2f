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
  // Parameters stop at the next slash and are matched lazily, so no pattern can backtrack over more than one segment.
  const source = pattern.replace(/:([A-Za-z_]\w*)|\*|[.+?^${}()|[\]\\]/g, (token, name?: string) => {
    if (name !== undefined) {
      names.push(name)
      return '([^/]+?)'
    }
    return token === '*' ? '.*' : `\\${token}`
  })
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
