/** Claims: from ready to inflight under one lease number, spread over hosts; suspects alone. */
import type { Task } from '../../core/task.ts'
import type { ClaimRequest, Lease } from '../contract.ts'
import { byTurn, type Candidate, deal, isServed, laneGroups } from '../shared/fair-share.ts'
import { unpackData } from '../shared/intake.ts'
import type { Database } from './database.ts'
import type { Ledger, Queue } from './ledger.ts'
import type { Places } from './places.ts'

interface ReadyQueue extends Queue, Candidate {}

const COLUMNS = 't.seq, t.id, t.url, t.route, t.data, t.depth, t.session, t.attempts, t.losses'
type Row = [number, Uint8Array, string, string, string | null, number, string | null, number, number]

type QueueRow = [number, number, string, number, number]

export function createClaim({ db, ledger, places }: { db: Database; ledger: Ledger; places: Places }) {
  const waitingLanes = db.prepareRows<[string]>('select name from lane where pending > 0')
  const queues = (condition: string) => `
    select id, weight, host, turn, ready from queue where lane = ? and turn is not null ${condition}
    order by weight, turn limit ?`
  const readyQueues = db.prepareRows<QueueRow>(queues(''))
  const freeQueues = db.prepareRows<QueueRow>(queues('and host not in (select value from json_each(?))'))
  const readyTasks = db.prepareRows<Row>(`
    select ${COLUMNS} from ready r cross join task t on t.seq = r.seq where r.queue = ? order by r.seq limit ?`)
  const deleteReady = db.prepare('delete from ready where queue = ? and seq <= ?')
  // With many hosts a claim takes one task of each: one statement for all of them instead of two for each.
  const firstTasks = db.prepareRows<Row>(`
    select ${COLUMNS} from json_each(?) q cross join task t
    on t.seq = (select r.seq from ready r where r.queue = q.value order by r.seq limit 1) order by q.key`)
  const deleteFirst = db.prepare(`
    delete from ready where (queue, seq) in (select q.value ->> 0, q.value ->> 1 from json_each(?) q)`)
  const suspects = db.prepareRows<[number, number, number]>('select turn, seq, queue from suspect order by turn')
  const suspectTask = db.prepareRows<Row>(`select ${COLUMNS} from task t where t.seq = ?`)
  const deleteSuspect = db.prepare('delete from suspect where turn = ?')
  const heldBy = db.prepareRows<[number | null]>('select max(alone) from inflight where worker = ?')
  const insertInflight = db.prepare(
    'insert into inflight (seq, queue, lease, worker, expires_ms, alone) values (?, ?, ?, ?, ?, ?)',
  )

  function lease(row: Row, queue: Queue, request: ClaimRequest & { nowMs: number }): Lease {
    const [seq, id, url, route, data, depth, session, attempts, losses] = row
    const { last_lease: number } = ledger.totals
    insertInflight.run(seq, queue.id, number, request.workerId, request.nowMs + request.leaseMs, losses > 0 ? 1 : 0)
    const task: Task = {
      id: Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString('hex'),
      url,
      route,
      ...unpackData(data),
      depth,
      priority: queue.priority,
      lane: queue.lane,
      session: session ?? undefined,
    }
    return { task, token: `${number}.${seq}`, attempt: attempts + 1, losses }
  }

  function candidates(lane: string, max: number, avoid: ReadonlySet<string>): ReadyQueue[] {
    const rows = avoid.size === 0 ? readyQueues.all(lane, max) : freeQueues.all(lane, JSON.stringify([...avoid]), max)
    return rows.map(([id, weight, host, turn, ready]) => ({ id, lane, priority: 0 - weight, host, turn, ready }))
  }

  function takeReady(counts: ReadonlyMap<ReadyQueue, number>): Map<ReadyQueue, Row[]> {
    const rows = new Map<ReadyQueue, Row[]>()
    const singles: ReadyQueue[] = []
    for (const [queue, count] of counts) {
      const moves = ledger.moves(queue)
      moves.ready -= count
      moves.pending -= count
      moves.claimed += count
      moves.isServed = true
      if (count === 1) singles.push(queue)
      else rows.set(queue, takeSome(queue, count))
    }
    if (singles.length > 0) for (const [i, row] of takeFirst(singles).entries()) rows.set(singles[i]!, [row])
    return rows
  }

  function takeSome(queue: ReadyQueue, count: number): Row[] {
    const rows = readyTasks.all(queue.id, count)
    deleteReady.run(queue.id, rows.at(-1)![0])
    return rows
  }

  function takeFirst(queues: readonly ReadyQueue[]): Row[] {
    const rows = firstTasks.all(JSON.stringify(queues.map(({ id }) => id)))
    deleteFirst.run(JSON.stringify(rows.map(([seq], i) => [queues[i]!.id, seq])))
    return rows
  }

  function claimReady(request: ClaimRequest & { nowMs: number }): Lease[] {
    const avoid = new Set(request.avoidHosts)
    const lanes = waitingLanes.all().map(([name]) => name)
    const leases: Lease[] = []
    for (const group of laneGroups(lanes, request.lanes)) {
      const max = request.max - leases.length
      if (max <= 0) break
      const offered = group.flatMap((lane) => candidates(lane, max, avoid))
      const dealt = deal(group.length === 1 ? offered : offered.sort(byTurn), max)
      const counts = new Map<ReadyQueue, number>()
      for (const queue of dealt) counts.set(queue, (counts.get(queue) ?? 0) + 1)
      const rows = new Map([...takeReady(counts)].map(([queue, taken]) => [queue, taken.values()]))
      for (const queue of dealt) leases.push(lease(rows.get(queue)!.next().value!, queue, request))
    }
    return leases
  }

  /** A suspect for a worker without leases; nothing for a worker that holds a suspect; undefined: claim as usual. */
  function claimSuspect(request: ClaimRequest & { nowMs: number }): Lease[] | undefined {
    const [alone] = heldBy.get(request.workerId)!
    if (alone !== null) return alone === 1 ? [] : undefined
    const found = nextSuspect(request)
    if (found === undefined) return undefined
    const { turn, seq, queue } = found
    deleteSuspect.run(turn)
    const moves = ledger.moves(queue)
    moves.pending--
    moves.claimed++
    return [lease(suspectTask.get(seq)!, queue, request)]
  }

  function nextSuspect({ lanes, avoidHosts }: ClaimRequest): { turn: number; seq: number; queue: Queue } | undefined {
    for (const [turn, seq, queueId] of suspects.iterate()) {
      const queue = ledger.queue(queueId)
      if (!avoidHosts?.includes(queue.host) && isServed(queue.lane, lanes)) return { turn, seq, queue }
    }
    return undefined
  }

  /** Runs inside the caller's transaction. */
  return function claim(request: ClaimRequest & { nowMs: number }): Lease[] {
    if (ledger.totals.pause_reason !== null || ledger.totals.pending === 0) return []
    places.promote(request.nowMs)
    ledger.save()
    ledger.totals.last_lease++
    const alone = ledger.totals.suspects > 0 ? claimSuspect(request) : undefined
    const leases = alone ?? claimReady(request)
    if (leases.length === 0) ledger.totals.last_lease--
    return leases
  }
}
