/** `enqueue` for `sluice try`: queues nothing, and reports the reason for every refusal. */

import { type ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import type { Enqueued } from '../../core/scraper.ts'
import type { NewTask, Task } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import { type EnqueueCounts, type EnqueuePolicy, newCounts, toTasks } from '../../crawl/enqueue.ts'
import { conflictWords, type RouteConflict } from '../../crawl/queued-routes.ts'
import { anchors } from '../../extract/html.ts'
import type { ChainFetcher } from '../../fetch/fetcher.ts'
import type { TriedPage } from './try-page.ts'

export interface Watching {
  task: Task
  page: Page
  tried: TriedPage
  fetcher: ChainFetcher
  signal: AbortSignal
}

/** `enqueue` as handlers know it. */
export function createEnqueue(compiled: CompiledScraper, policy: EnqueuePolicy, context: object, watching: Watching) {
  const { task, page, tried, fetcher, signal } = watching
  const open: EnqueuePolicy = { hosts: 'any', depthMax: Number.POSITIVE_INFINITY, linksMax: Number.POSITIVE_INFINITY }
  const queued = new Map<string, string>()
  const refuse = (url: string, route: string | undefined, why: string) => void tried.refused.push({ url, route, why })
  const onConflict = (conflict: RouteConflict) => refuse(conflict.url, conflict.wanted, conflictWords(conflict))
  const ask = (route: string | undefined, targets: unknown, counts: EnqueueCounts) =>
    toTasks(
      compiled,
      open,
      {
        route,
        targets,
        base: page.url,
        depth: task.depth + 1,
        session: task.session,
        room: Number.POSITIVE_INFINITY,
        queued,
        onConflict,
      },
      counts,
    )
  const add = async (found: NewTask, route: string | undefined, isLink: boolean, counts: EnqueueCounts) => {
    const why =
      outside(found, isLink, policy) ??
      (tried.links.length >= policy.linksMax ? `more than ${policy.linksMax} on one page (linksMax)` : undefined) ??
      (await forbidden(found.url, page, fetcher, signal))
    if (why !== undefined) {
      counts.refused++
      refuse(found.url, found.route, why)
      return
    }
    tried.links.push(found)
    if (route !== undefined && found.route !== route)
      tried.rerouted.push({ url: found.url, wanted: route, route: found.route })
  }
  const answer = (addedBefore: number, { repeated, refused, rerouted, conflicts }: EnqueueCounts): Enqueued => ({
    added: tried.links.length - addedBefore,
    seen: repeated,
    refused,
    rerouted,
    conflicts,
  })
  const addAll = async (route: string | undefined, targets: unknown) => {
    const counts = newCounts()
    const addedBefore = tried.links.length
    for (const found of ask(route, targets, counts)) await add(found, route, false, counts)
    return answer(addedBefore, counts)
  }
  const links = async (route: string, css: string, map?: (anchor: never) => unknown) => {
    const counts = newCounts()
    const addedBefore = tried.links.length
    const found = anchors((context as { $: never }).$, css)
    for (let i = 0; i < found.bad; i++) refuse(`(found by ${css})`, route, 'no usable URL')
    counts.refused += found.bad
    for (const anchor of found.anchors) {
      try {
        // Not marked as a link, so that a bad one throws with the reason.
        const target = { url: anchor.href, data: map?.(anchor as never) }
        for (const next of ask(route, target, counts)) await add(next, route, true, counts)
      } catch (error) {
        counts.refused++
        refuse(anchor.href, route, reasonOf(toScrapeError(error, 'E_URL_INVALID')))
      }
    }
    return answer(addedBefore, counts)
  }
  const enqueue = (routeOrUrl: string | URL, targets?: unknown) =>
    routeOrUrl instanceof URL ? addAll(undefined, routeOrUrl) : addAll(routeOrUrl, targets)
  return Object.assign(enqueue, { links })
}

function outside(task: NewTask, isLink: boolean, policy: EnqueuePolicy): string | undefined {
  if (task.depth > policy.depthMax) return `deeper than ${policy.depthMax} (limits.depth)`
  if (isLink && policy.hosts !== 'any' && !policy.hosts.has(hostOf(task.url)))
    return `another host: ${hostOf(task.url)} (limits.hosts)`
  return undefined
}

/** The rules for the page's own origin are known by now; robots.txt of other hosts is not fetched for this. */
async function forbidden(
  url: string,
  page: Page,
  { robots }: ChainFetcher,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (robots === undefined || hostOf(url) !== hostOf(page.url)) return undefined
  try {
    await robots.check(url, signal)
    return undefined
  } catch (error) {
    return `robots.txt forbids it (${toScrapeError(error, 'E_ROBOTS').details.notes?.[0]?.split(' of ')[0] ?? 'E_ROBOTS'})`
  }
}

function reasonOf(error: ScrapeError): string {
  if (error.code === 'E_ROUTE_UNMATCHED') return 'does not match the route’s pattern'
  if (error.code === 'E_ROUTE_DATA')
    return `its data breaks the route’s schema: ${error.details.notes?.join('; ') ?? ''}`
  return error.kind.what
}
