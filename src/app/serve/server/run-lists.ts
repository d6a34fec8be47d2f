/** Lists of runs for a server that is queried all the time: what was just read is fresh enough for the next caller. */
import { LRUCache } from 'lru-cache'
import type { ListedRun } from '../../../runs/run-list.ts'
import { type PageRequest, pageOfRuns } from '../../../runs/run-pages.ts'

const FRESH_MS = 500
const PAGES_MAX = 100
const SETTLED_MAX = 20_000

type RunQuery = Pick<PageRequest, 'limit' | 'before' | 'scraper' | 'state'>
type Page = Awaited<ReturnType<typeof pageOfRuns>>

export class RunLists {
  readonly #parts: Pick<PageRequest, 'places' | 'store'>
  readonly #pages = new LRUCache<string, Promise<Page>>({ max: PAGES_MAX, ttl: FRESH_MS })
  /** Runs as last seen: these do not change any more, except through this server. */
  readonly #settled = new LRUCache<string, ListedRun>({ max: SETTLED_MAX })

  constructor(parts: Pick<PageRequest, 'places' | 'store'>) {
    this.#parts = parts
  }

  page(query: RunQuery): Promise<Page> {
    const key = JSON.stringify(query)
    let page = this.#pages.get(key)
    if (page === undefined) {
      page = this.#look(query)
      page.catch(() => {})
      this.#pages.set(key, page)
    }
    return page
  }

  /** A run was changed: cached lists are out of date. */
  forget(): void {
    this.#pages.clear()
  }

  async #look(query: RunQuery): Promise<Page> {
    const page = await pageOfRuns({ ...this.#parts, ...query, known: (id) => this.#settled.get(id) })
    for (const run of page.runs) if (isSettled(run)) this.#settled.set(run.id, run)
    return page
  }
}

/** Finished, with nothing to retry. */
const isSettled = ({ state, isAlive, numbers }: ListedRun) => state === 'finished' && !isAlive && numbers.dead === 0
