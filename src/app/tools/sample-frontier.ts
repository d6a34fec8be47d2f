/**
 * A frontier that lets in only a few of the tasks each page finds, the routes in turn and a new route before all others: so a
 * handful of pages meets every kind of page, where a whole run would first read all listings. It tells what every page gave.
 */
import { DEFAULT_LANE, isFileLane, type NewTask } from '../../core/task.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { over } from '../../frontier/over.ts'

/** What a page was worth before anything was left out. */
export interface PageYield {
  route: string
  url: string
  items: number
  links: number
}

const START_TASKS_MAX = 1_000

interface SampleOptions {
  /** Tasks of one route a page may add. */
  perRoute: number
  onPage: (page: PageYield) => void
}

export function sampleFrontier(inner: Frontier, { perRoute, onPage }: SampleOptions): Frontier {
  const known = new Set<string>()
  return over(inner, {
    add: (tasks) => inner.add(firstOf(tasks, START_TASKS_MAX)),
    async commit(outcomes) {
      const sampled = outcomes.map((outcome) => {
        if (outcome.kind !== 'done') return outcome
        const { lease, items = [] } = outcome
        const tasks = (outcome.tasks ?? []).filter(({ lane = '' }) => !isFileLane(lane)) // a look needs no files
        onPage({ route: lease.task.route, url: lease.task.url, items: items.length, links: tasks.length })
        return { ...outcome, tasks: sample(tasks, perRoute, known) }
      })
      const committed = await inner.commit(sampled)
      // No sink drains these items, so nobody must wait for one.
      return { ...committed, items: { ...committed.items, backlog: 0 } }
    },
  })
}

/** The first of every route, then the second of every route, and so on. The scraper's own priorities would favour one. */
function sample(tasks: readonly NewTask[], perRoute: number, known: Set<string>): NewTask[] {
  const byRoute = new Map<string, NewTask[]>()
  for (const task of tasks) {
    const found = byRoute.get(task.route) ?? []
    const priority = known.has(task.route) ? 0 : 1
    known.add(task.route)
    if (found.length < perRoute) found.push({ ...task, priority, lane: DEFAULT_LANE })
    byRoute.set(task.route, found)
  }
  const routes = [...byRoute.values()]
  return Array.from({ length: perRoute }, (_, turn) => routes.flatMap((found) => found[turn] ?? [])).flat()
}

async function* firstOf(tasks: Iterable<NewTask> | AsyncIterable<NewTask>, max: number): AsyncGenerator<NewTask> {
  let count = 0
  for await (const task of tasks) {
    if (count++ === max) return
    yield { ...task, priority: 0, lane: DEFAULT_LANE }
  }
}
