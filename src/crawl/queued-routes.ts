/** One URL, one route: remembers which route each task was queued for, to notice when another route wants the same page. */
import type { NewTask } from '../core/task.ts'
import type { Route } from './routes.ts'

/** A page that was enqueued for one route but belongs to another. */
export interface RouteConflict {
  url: string
  /** The route it was enqueued for. */
  wanted: string
  /** The route that has it or, with `data`, that claims it. */
  owner: string
  /** queued: already queued for `owner` · data: `owner` claims it, but needs data that was not given. */
  why: 'queued' | 'data'
}

/** Whether one URL can be queued for two routes: if not, there is nothing to remember. */
export function canConflict(routes: ReadonlyMap<string, Route>): boolean {
  const shapes = new Set<string>()
  for (const { specificity } of routes.values()) shapes.add(JSON.stringify(specificity ?? null))
  return shapes.size < routes.size
}

/** Routes by the identity of tasks in the frontier (`identityOf`). A plain `Map` is sufficient. */
export interface QueuedRoutes {
  get(identity: string): string | undefined
  set(identity: string, route: string): void
}

export const identityOf = ({ key, url }: Pick<NewTask, 'key' | 'url'>) => key ?? url

/** About 3 MB of URLs. */
const REMEMBERED_MAX = 20_000

/** Only the latest ones: a start list of a million URLs, or a run of any length, takes no more memory than a short one. */
export class LatestRoutes implements QueuedRoutes {
  readonly #routes = new Map<string, string>()

  get(identity: string): string | undefined {
    return this.#routes.get(identity)
  }

  note(tasks: readonly NewTask[]): void {
    for (const task of tasks) if (!this.#routes.has(identityOf(task))) this.set(identityOf(task), task.route)
  }

  set(identity: string, route: string): void {
    this.#routes.set(identity, route)
    if (this.#routes.size > REMEMBERED_MAX) this.#routes.delete(this.#routes.keys().next().value!)
  }
}

/** A short description, for a log line or a list of refused links. */
export function conflictWords({ owner, why }: Pick<RouteConflict, 'owner' | 'why'>): string {
  return why === 'queued'
    ? `is already queued for route ${owner}`
    : `belongs to route ${owner}, which needs data that was not given`
}

const told = new WeakMap<object, Set<string>>()

/** Whether it is the first conflict between these two routes: a site may have thousands. `scraper` stands for one run. */
export function isNews(scraper: object, { wanted, owner, why }: RouteConflict): boolean {
  const pairs = told.get(scraper) ?? new Set()
  told.set(scraper, pairs)
  const pair = JSON.stringify([wanted, owner, why])
  if (pairs.has(pair)) return false
  pairs.add(pair)
  return true
}
