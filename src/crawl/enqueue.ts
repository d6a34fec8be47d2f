/** Turns what a handler enqueues into tasks for the frontier: normalised, matched to a route, checked, within the limits. */
import { hash } from 'node:crypto'
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import { countNotFetched, type NotFetchedCounts, type NotFetchedReason } from '../core/not-fetched.ts'
import type { ResolvedLimits } from '../core/options.ts'
import { isFileLane, type Json, type NewTask } from '../core/task.ts'
import { hostOf, normaliseUrl, pathOf } from '../core/url.ts'
import type { CompiledScraper } from './compile-scraper.ts'
import type { DroppedLinks } from './dropped-links.ts'
import { identityOf, type QueuedRoutes, type RouteConflict } from './queued-routes.ts'
import { postOf } from './request.ts'
import { claimingRoute, findRoute, type Route, unmatched } from './routes.ts'

/** Where links may lead. Tasks named explicitly may go anywhere; links found on a page are restricted to `hosts`. */
export interface EnqueuePolicy {
  readonly hosts: 'any' | ReadonlySet<string>
  readonly depthMax: number
  readonly linksMax: number
}

export function enqueuePolicy(limits: ResolvedLimits, startHosts: Iterable<string>): EnqueuePolicy {
  const { hosts } = limits
  return {
    hosts: hosts === 'any' ? 'any' : new Set(hosts === 'same' ? startHosts : hosts),
    depthMax: limits.depth ?? Number.POSITIVE_INFINITY,
    linksMax: limits.linksMax,
  }
}

interface TargetObject {
  url: string | URL
  data?: unknown
  priority?: number
  lane?: string
  key?: string
  session?: string
  /** Found by a selector: a bad link is refused and counted, and does not fail the page. */
  isLink?: boolean
}

export interface ToTasksRequest {
  /** undefined: the route whose `match` claims the URL. */
  route: string | undefined
  /** Keeps `route`, whichever `match` would claim the URL: the user wants to see how that route reads it. */
  isRouteFixed?: true
  targets: unknown
  /** Relative URLs are resolved against it; undefined in `start`. */
  base: string | undefined
  depth: number
  /** The session of tasks that do not name their own. */
  session?: string | undefined
  /** How many more tasks this page may add. */
  room: number
  /** What this page, or `start`, has queued so far; accepted tasks are added. */
  queued?: QueuedRoutes
  onConflict?: (conflict: RouteConflict) => void
  /** Links this page has already skipped. If omitted, every occurrence counts. */
  dropped?: DroppedLinks
}

export interface EnqueueCounts {
  refused: number
  /** The refused ones, by reason. */
  notFetched: NotFetchedCounts
  /** Enqueued before by the same page, for the same route. */
  repeated: number
  /** Went to a route other than the one named. */
  rerouted: number
  /** Not queued, because another route has the URL or claims it. */
  conflicts: number
}

export const newCounts = (): EnqueueCounts => ({ refused: 0, notFetched: {}, repeated: 0, rerouted: 0, conflicts: 0 })

/** Streams, so that a start list of a million URLs is never held in memory. Dropped links are counted in `counts`. */
export function* toTasks(
  compiled: CompiledScraper,
  policy: EnqueuePolicy,
  request: ToTasksRequest,
  counts: EnqueueCounts,
): Generator<NewTask> {
  const { queued, dropped } = request
  let room = request.room
  const refuse = (reason: NotFetchedReason, name: string) => {
    if (dropped?.isFirst(name) === false) {
      counts.repeated++
      return
    }
    counts.refused++
    countNotFetched(counts.notFetched, reason)
  }
  const conflict = (found: RouteConflict) => {
    counts.conflicts++
    request.onConflict?.(found)
  }
  if (request.route !== undefined && !compiled.routes.has(request.route)) throw noSuchRoute(compiled, request.route)
  for (const target of asTargets(request.targets)) {
    if (request.depth > policy.depthMax) {
      refuse('depth', nameOf(target, request.base))
      continue
    }
    try {
      const task = toTask(compiled, request, target)
      if (target.isLink && policy.hosts !== 'any' && !policy.hosts.has(hostOf(task.url))) {
        refuse('host', task.url)
        continue
      }
      if ('owner' in task) {
        conflict(task)
        continue
      }
      const identity = identityOf(task)
      const owner = queued?.get(identity)
      if (owner === task.route) counts.repeated++
      else if (owner !== undefined) conflict({ url: task.url, wanted: task.route, owner, why: 'queued' })
      else if (room <= 0) refuse('links', identity)
      else {
        if (request.route !== undefined && task.route !== request.route) counts.rerouted++
        queued?.set(identity, task.route)
        room--
        yield task
      }
    } catch (error) {
      if (!target.isLink) throw error
      refuse(reasonOf(toScrapeError(error, 'E_URL_INVALID')), nameOf(target, request.base))
    }
  }
}

/** Why a link or file with this error is not fetched. */
export function reasonOf({ code }: ScrapeError): NotFetchedReason {
  if (code === 'E_URL_SCHEME') return 'scheme'
  if (code === 'E_ROUTE_UNMATCHED') return 'route'
  return code === 'E_ROUTE_DATA' || code === 'E_DEFINITION' ? 'data' : 'url'
}

/** For values that are not URLs. */
const NAME_CHARS_MAX = 200

/** Identifies a skipped link when it appears again on the page. */
function nameOf({ url }: TargetObject, base: string | undefined): string {
  try {
    return normaliseUrl(url, base)
  } catch {
    return String(url).slice(0, NAME_CHARS_MAX)
  }
}

/** A bug in the scraper, not a problem with the page. */
function noSuchRoute({ scraper, routes }: CompiledScraper, name: string): ScrapeError {
  return new ScrapeError('E_ROUTE_UNMATCHED', `scraper "${scraper.name}" has no route "${name}"`, {
    notes: [`routes: ${[...routes.keys()].join(', ')}`],
    fix: 'Mend the name of the route.',
  })
}

/** Returns a conflict if the route that claims the URL cannot take it. */
function toTask(
  compiled: CompiledScraper,
  { route: name, isRouteFixed, base, depth, session: inherited }: ToTasksRequest,
  target: TargetObject,
): NewTask | RouteConflict {
  const url = normaliseUrl(target.url, base)
  const named = name === undefined ? undefined : namedRoute(compiled, name, url)
  const isFixed = isRouteFixed === true || target.key !== undefined || named?.definition.post !== undefined
  const route =
    named === undefined
      ? findRoute(compiled.routes, compiled.scraper.name, new URL(url))
      : isFixed
        ? named
        : (claimingRoute(compiled.routes, pathOf(url), named) ?? named)
  const checked = dataFor(route, named, target.data, url)
  if (checked === undefined) return { url, wanted: name!, owner: route.name, why: 'data' }
  const { data } = checked
  const { priority = route.definition.priority, lane = route.definition.lane, session = inherited } = target
  const ownKey = target.key ?? postKey(route, data, url)
  const key = session === undefined ? ownKey : keyOf(session, ownKey ?? url)
  checkPriority(priority, url)
  if (lane !== undefined && isFileLane(lane))
    throw new ScrapeError('E_ROUTE_DATA', `the lane "${lane}" is for files; a page cannot wait there`, { url })
  return {
    url,
    route: route.name,
    depth,
    ...(data === undefined ? {} : { data }),
    ...(key === undefined ? {} : { key }),
    ...(priority === undefined ? {} : { priority }),
    ...(lane === undefined ? {} : { lane }),
    ...(session === undefined ? {} : { session }),
  }
}

/** Throws if its own pattern does not match. */
function namedRoute({ routes, scraper }: CompiledScraper, name: string, url: string): Route {
  const route = routes.get(name)!
  if (route.match(pathOf(url)) === undefined) throw unmatched(new Map([[name, route]]), scraper.name, new URL(url))
  return route
}

/**
 * Data for the named route is passed to the route that claims the URL. If that route rejects the data, it may work without it;
 * undefined if it cannot.
 */
function dataFor(
  route: Route,
  named: Route | undefined,
  given: unknown,
  url: string,
): { data: Json | undefined } | undefined {
  if (named === undefined || route === named) return { data: checkData(route, given, url) }
  for (const data of [given, undefined]) {
    try {
      return { data: checkData(route, data, url) }
    } catch (error) {
      if (!(error instanceof ScrapeError && error.code === 'E_ROUTE_DATA')) throw error
    }
  }
  return undefined
}

/** One URL answers differently to every body. */
function postKey({ definition: { post } }: Route, data: Json | undefined, url: string): string | undefined {
  if (post === undefined) return undefined
  return `POST ${url} ${hash('sha256', JSON.stringify(postOf(data, post, url)))}`
}

/** Each user gets a separate task for the same URL or key. */
export const keyOf = (session: string, name: string) => JSON.stringify([session, name])

export function checkPriority(priority: number | undefined, url: string): void {
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw new ScrapeError('E_ROUTE_DATA', `the priority of a task is a whole number, not ${priority}`, { url })
}

/** Checked here, so that data that cannot be stored fails its page and not the commit of the whole batch. */
function checkData(route: Route, data: unknown, url: string): Json | undefined {
  const problems: string[] = []
  const schema = route.definition.data
  let value = data
  if (schema !== undefined) {
    const result = schema['~standard'].validate(data ?? {})
    if (result instanceof Promise) {
      throw new ScrapeError(
        'E_DEFINITION',
        `routes.${route.name}.data: a schema that validates asynchronously cannot be used`,
      )
    }
    if (result.issues === undefined) value = result.value
    else
      problems.push(
        ...result.issues.map((issue) => `data.${(issue.path ?? []).map(String).join('.')}: ${issue.message}`),
      )
  }
  if (problems.length === 0) {
    try {
      if (value !== undefined) JSON.stringify(value)
      return value as Json | undefined
    } catch (error) {
      problems.push(`data: not representable as JSON: ${(error as Error).message.split('\n', 1)[0]}`)
    }
  }
  throw new ScrapeError('E_ROUTE_DATA', `data for route "${route.name}" cannot be used`, { url, notes: problems })
}

function* asTargets(targets: unknown): Generator<TargetObject> {
  if (typeof targets === 'string' || targets instanceof URL) yield { url: targets }
  else if (typeof targets === 'object' && targets !== null && 'url' in targets) yield targets as TargetObject
  else if (isIterable(targets)) for (const target of targets) yield* asTargets(target)
  else
    throw new ScrapeError(
      'E_URL_INVALID',
      `enqueue() got ${targets === null ? 'null' : typeof targets} in place of a URL`,
    )
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}
