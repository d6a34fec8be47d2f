/**
 * The counters of a `sqlite:` frontier. Each transaction loads the totals, records what moves between the queues, and saves the
 * sums once at its end, so that fifty tasks of one host cost one update, and counting never scans a table.
 */
import { LRUCache } from 'lru-cache'
import type { Task } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import { rowsOf } from '../../drivers/sqlite/rows.ts'
import type { Database } from './database.ts'

/** Queues are never renamed, so they can be cached across processes. */
const QUEUES_CACHED_MAX = 10_000

/** Queues with fewer pending tasks are left out of the index of large ones: with 100,000 hosts it would only cause churn. */
const SIZE_PENDING_MIN = 16

export interface Queue {
  readonly id: number
  readonly lane: string
  readonly priority: number
  readonly host: string
}

/** What a transaction changes in one queue. */
interface Moves {
  readonly queue: Queue
  ready: number
  pending: number
  claimed: number
  /** It was served: its turn is over. */
  isServed: boolean
}

const TOTALS = [
  'pending',
  'claimed',
  'completed',
  'failed',
  'dead',
  'seen',
  'items',
  'backlog',
  'suspects',
  'last_turn',
  'last_lease',
  'confirmed',
] as const

type Totals = Record<(typeof TOTALS)[number], number> & { pause_reason: string | null }

export type Ledger = ReturnType<typeof createLedger>

export function createLedger(db: Database) {
  const select = rowsOf<Totals>(db.prepare('select * from totals'))
  const update = db.prepare(`update totals set ${TOTALS.map((name) => `${name} = ?`).join(', ')}`)
  const findQueue = db.prepareRows<[number]>('select id from queue where host = ? and lane = ? and weight = ?')
  const getQueue = db.prepareRows<[number, string, number, string]>(
    'select id, lane, weight, host from queue where id = ?',
  )
  const insertQueue = db.prepare('insert into queue (host, lane, weight) values (?, ?, ?)')
  const serve = db.prepareRows<[number, number]>(`
    update queue set ready = ready + ?1, pending = pending + ?2,
      turn = case when ready + ?1 = 0 then null when ?3 or turn is null then ?4 else turn end
    where id = ?5 returning pending, size`)
  const count = db.prepareRows<[number, number]>(
    'update queue set pending = pending + ? where id = ? returning pending, size',
  )
  const resize = db.prepare('update queue set size = ? where id = ?')
  const laneMoves = db.prepare(`
    insert into lane (name, pending, claimed) values (?1, ?2, ?3)
    on conflict do update set pending = pending + ?2, claimed = claimed + ?3`)

  const byName = new LRUCache<string, Queue>({ max: QUEUES_CACHED_MAX })
  const byId = new LRUCache<number, Queue>({ max: QUEUES_CACHED_MAX })
  let totals = {} as Totals
  let before = ''
  const moves = new Map<number, Moves>()

  function remember(queue: Queue): Queue {
    byName.set(nameOf(queue), queue)
    byId.set(queue.id, queue)
    return queue
  }

  function applyMoves(lanes: Map<string, { pending: number; claimed: number }>): void {
    for (const { queue, ready, pending, claimed, isServed } of moves.values()) {
      totals.pending += pending
      totals.claimed += claimed
      const lane = lanes.get(queue.lane) ?? { pending: 0, claimed: 0 }
      lanes.set(queue.lane, lane)
      lane.pending += pending
      lane.claimed += claimed
      // Claimed tasks are counted per lane; numbers per host come from the inflight table on request, as it is small.
      if (ready === 0 && pending === 0 && !isServed) continue
      const row =
        ready !== 0 || isServed
          ? serve.get(ready, pending, Number(isServed), ++totals.last_turn, queue.id)
          : count.get(pending, queue.id)
      const [pendingNow, size] = row!
      const sizeNow = sizeOf(pendingNow)
      if (sizeNow !== size) resize.run(sizeNow, queue.id)
    }
    moves.clear()
  }

  return {
    get totals(): Totals {
      return totals
    },

    load(): void {
      moves.clear()
      totals = { ...select.get()! }
      before = JSON.stringify(totals)
    },

    /** Writes the moves so far. Called before the queues are read, and at the end of the transaction. */
    save(): void {
      const lanes = new Map<string, { pending: number; claimed: number }>()
      applyMoves(lanes)
      for (const [name, { pending, claimed }] of lanes) {
        if (pending !== 0 || claimed !== 0) laneMoves.run(name, pending, claimed)
      }
      const after = JSON.stringify(totals)
      if (after === before) return
      update.run(...TOTALS.map((name) => totals[name]))
      before = after
    },

    /** After a rollback: a queue that this transaction created does not exist. */
    forget(): void {
      byName.clear()
      byId.clear()
    },

    moves(queue: Queue): Moves {
      let found = moves.get(queue.id)
      if (found === undefined) {
        found = { queue, ready: 0, pending: 0, claimed: 0, isServed: false }
        moves.set(queue.id, found)
      }
      return found
    },

    queueOf(task: Pick<Task, 'url' | 'lane' | 'priority'>): Queue {
      const { lane, priority } = task
      const host = hostOf(task.url)
      const known = byName.get(nameOf({ host, lane, priority }))
      if (known !== undefined) return known
      const row = findQueue.get(host, lane, -priority)
      const id = row?.[0] ?? Number(insertQueue.run(host, lane, -priority).lastInsertRowid)
      return remember({ id, lane, priority, host })
    },

    queue(id: number): Queue {
      const known = byId.get(id)
      if (known !== undefined) return known
      const [, lane, weight, host] = getQueue.get(id)!
      return remember({ id, lane, priority: 0 - weight, host })
    },
  }
}

function nameOf({ host, lane, priority }: Omit<Queue, 'id'>): string {
  return `${host} ${lane} ${priority}`
}

/** Logarithmic, so that a queue moves in the index of large ones 20 times on its way to a million, not a million times. */
function sizeOf(pending: number): number {
  return pending < SIZE_PENDING_MIN ? 0 : 32 - Math.clz32(pending)
}
