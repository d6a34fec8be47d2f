/** From what a handler enqueues to tasks for the frontier: normalised, matched to a route, checked, within the limits. */
import { hash } from 'node:crypto'
import { ScrapeError } from '../core/errors.ts'
import type { ResolvedLimits } from '../core/options.ts'
import { isFileLane, type Json, type NewTask } from '../core/task.ts'
import { hostOf, normaliseUrl } from '../core/url.ts'
import type { CompiledScraper } from './compiled.ts'
import { postOf } from './request.ts'
import { findRoute, type Route, unmatched } from './routes.ts'

/** Where links may lead. Tasks named one by one may go anywhere; found links keep to `hosts`. */
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
  /** Found by a selector: a bad one is refused and counted, and does not cost the page. */
  isLink?: boolean
}

export interface ToTasksRequest {
  /** undefined: the first route that matches. */
  route: string | undefined
  targets: unknown
  /** Relative URLs are resolved against it; undefined in `start`. */
  base: string | undefined
  depth: number
  /** Whose tasks they are unless they say so. */
  session?: string | undefined
  /** How many more tasks this page may add. */
  room: number
}

export interface RefusedCounts {
  refused: number
  /** Of these, how many only because the page had added `linksMax` already. */
  overLimit: number
}

/** Streams, so that a start list of a million URLs is never held. Refusals are counted in `counts`. */
export function* toTasks(
  compiled: CompiledScraper,
  policy: EnqueuePolicy,
  request: ToTasksRequest,
  counts: RefusedCounts,
): Generator<NewTask> {
  let room = request.room
  if (request.route !== undefined && !compiled.routes.has(request.route)) throw noSuchRoute(compiled, request.route)
  for (const target of asTargets(request.targets)) {
    if (request.depth > policy.depthMax || room <= 0) {
      if (room <= 0) counts.overLimit++
      counts.refused++
      continue
    }
    try {
      const task = toTask(compiled, request, target)
      if (target.isLink && policy.hosts !== 'any' && !policy.hosts.has(hostOf(task.url))) {
        counts.refused++
        continue
      }
      room--
      yield task
    } catch (error) {
      if (!target.isLink) throw error
      counts.refused++
    }
  }
}

/** A mistake in the scraper, whoever found the link. */
function noSuchRoute({ scraper, routes }: CompiledScraper, name: string): ScrapeError {
  return new ScrapeError('E_ROUTE_UNMATCHED', `scraper "${scraper.name}" has no route "${name}"`, {
    notes: [`routes: ${[...routes.keys()].join(', ')}`],
    fix: 'Mend the name of the route.',
  })
}

function toTask(
  compiled: CompiledScraper,
  { route: name, base, depth, session: inherited }: ToTasksRequest,
  target: TargetObject,
): NewTask {
  const url = normaliseUrl(target.url, base)
  const route =
    name === undefined ? findRoute(compiled.routes, compiled.scraper.name, new URL(url)) : compiled.routes.get(name)
  if (route === undefined) throw noSuchRoute(compiled, String(name))
  if (name !== undefined && route.definition.match !== undefined && route.match(new URL(url).pathname) === undefined) {
    throw unmatched(new Map([[name, route]]), compiled.scraper.name, new URL(url))
  }
  const { priority = route.definition.priority, lane = route.definition.lane, session = inherited } = target
  const data = checkData(route, target.data, url)
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

/** One URL answers every body in its own way. */
function postKey({ definition: { post } }: Route, data: Json | undefined, url: string): string | undefined {
  if (post === undefined) return undefined
  return `POST ${url} ${hash('sha256', JSON.stringify(postOf(data, post, url)))}`
}

/** What belongs to a user is another task for each of them, whatever else it is called. */
export const keyOf = (session: string, name: string) => JSON.stringify([session, name])

export function checkPriority(priority: number | undefined, url: string): void {
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw new ScrapeError('E_ROUTE_DATA', `the priority of a task is a whole number, not ${priority}`, { url })
}

/** Checked here, so that data nobody can store costs its page and not the commit of its whole batch. */
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
