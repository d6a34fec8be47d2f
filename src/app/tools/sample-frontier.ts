/**
 * A frontier that accepts only a few of the tasks each page finds, alternating between routes, with new routes first: a handful
 * of pages then covers every kind of page, where a whole run would first read all listings. It reports the yield of every page.
 */
import { DEFAULT_LANE, isFileLane, type NewTask } from '../../core/task.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { over } from '../../frontier/over.ts'

/** What a page yielded before sampling. */
export interface PageYield {
  route: string
  url: string
  items: number
  links: number
}

const START_TASKS_MAX = 1_000

interface SampleOptions {
  /** How many tasks of one route a page may add. */
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
        const tasks = (outcome.tasks ?? []).filter(({ lane = '' }) => !isFileLane(lane)) // no files for a check
        onPage({ route: lease.task.route, url: lease.task.url, items: items.length, links: tasks.length })
        return { ...outcome, tasks: sample(tasks, perRoute, known) }
      })
      const committed = await inner.commit(sampled)
      // No sink drains these items, so nothing must wait for one.
      return { ...committed, items: { ...committed.items, backlog: 0 } }
    },
  })
}

/** The first of every route, then the second of every route, and so on. The scraper's own priorities would favour one route. */
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
