/** The dictionary of queues: a number for each host, lane and priority. Rows are never renamed, so they can be cached. */
import { LRUCache } from 'lru-cache'
import type { NewTask } from '../../core/task.ts'
import { DEFAULT_LANE } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import { numbersText, textsText } from './array-text.ts'

const QUEUES_CACHED_MAX = 50_000

export interface Queue {
  readonly id: number
  readonly lane: string
  readonly priority: number
  readonly host: string
}

type Named = Omit<Queue, 'id'>

export class Queues {
  readonly #db: Database
  readonly #runId: number
  readonly #byName = new LRUCache<string, Queue>({ max: QUEUES_CACHED_MAX })
  readonly #byId = new LRUCache<number, Queue>({ max: QUEUES_CACHED_MAX })

  constructor(db: Database, runId: number) {
    this.#db = db
    this.#runId = runId
  }

  /** The numbers of the tasks' queues, in order. Queries the server only for unknown names. */
  async idsOf(tasks: readonly NewTask[]): Promise<number[]> {
    const missing = new Map<string, Named>()
    const names = tasks.map((task) => {
      const queue = { lane: task.lane ?? DEFAULT_LANE, priority: task.priority ?? 0, host: hostOf(task.url) }
      const name = nameOf(queue)
      if (!this.#byName.has(name)) missing.set(name, queue)
      return name
    })
    // With more names than the cache holds, the first would be evicted before they are used.
    const found = missing.size === 0 ? undefined : await this.#create(missing)
    return names.map((name) => (found?.get(name) ?? this.#byName.get(name)!).id)
  }

  async #create(missing: ReadonlyMap<string, Named>): Promise<Map<string, Queue>> {
    const queues = [...missing.values()]
    const rows = await this.#db.rows<[string]>('select id from sluice.queues($1, $2, $3, $4)', [
      this.#runId,
      textsText(queues.map(({ host }) => host)),
      textsText(queues.map(({ lane }) => lane)),
      numbersText(queues.map(({ priority }) => 0 - priority)),
    ])
    const found = new Map<string, Queue>()
    for (const [i, [id]] of rows.entries()) {
      const queue = { ...queues[i]!, id: Number(id) }
      this.#remember(queue)
      found.set(nameOf(queue), queue)
    }
    return found
  }

  async byId(ids: Iterable<number>): Promise<Map<number, Queue>> {
    const found = new Map<number, Queue>()
    const missing: number[] = []
    for (const id of ids) {
      const known = this.#byId.get(id)
      if (known === undefined) missing.push(id)
      else found.set(id, known)
    }
    if (missing.length > 0) {
      const text = 'select id, lane, weight, host from sluice.queue where id = any($1::int[])'
      const rows = await this.#db.rows<[string, string, string, string]>(text, [numbersText(missing)])
      for (const [id, lane, weight, host] of rows) {
        const queue = { id: Number(id), lane, priority: 0 - Number(weight), host }
        this.#remember(queue)
        found.set(queue.id, queue)
      }
    }
    return found
  }

  #remember(queue: Queue): void {
    this.#byName.set(nameOf(queue), queue)
    this.#byId.set(queue.id, queue)
  }
}

function nameOf({ host, lane, priority }: Named): string {
  return `${host} ${lane} ${priority}`
}
