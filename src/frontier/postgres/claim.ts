/** Claims, on the client: which queue is next, where to start looking, and turning rows into leases. */
import type { Database } from '../../drivers/postgres/database.ts'
import type { ClaimRequest, Lease } from '../contract.ts'
import { unpackData } from '../shared/intake.ts'
import { numbersText, textsText } from './array-text.ts'
import type { Operations } from './operations.ts'
import { classOf, type QueueMarks, type Sent } from './queue-marks.ts'
import type { Queue, Queues } from './queues.ts'

const CLAIM = 'select * from sluice.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)'

/** Claims also fold the tallies, this often. */
const FOLD_MS = 5000

/**
 * Due tasks are searched for from a little before the last search (a transaction may have been slow), and from the beginning only
 * occasionally. See `queue-marks.ts` for the reason.
 */
const DUE_SLACK_MS = 1000
const DUE_LOOK_MS = 5000

const WHAT = { lease: '0', promoted: '1', short: '2', end: '3' } as const

type Row = [what: string, queue: string, seq: string, attempts: string, losses: string, depth: string, ...Texts]
type Texts = [hash: string, url: string, route: string, data: string | null, session: string | null]

interface Given {
  rows: Row[]
  short: number[]
}

interface ClaimParts {
  db: Database
  runId: number
  operations: Operations
  queues: Queues
  turns: QueueMarks
  /** Simulated time in tests; null: the server's clock. */
  now: () => number | null
}

export class Claim {
  readonly #parts: ClaimParts
  #foldedMs = performance.now()
  #dueLookedMs = Number.NEGATIVE_INFINITY
  #dueAfterMs = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: ClaimParts) {
    this.#parts = parts
  }

  /**
   * One claim at a time: overlapping claims read the same rows, and the second has to try the lock of each row that the first
   * holds. Three at once gave 17,000 tasks a second, one after the other 27,000.
   */
  claim(request: ClaimRequest): Promise<Lease[]> {
    if (request.max < 1 || request.lanes?.length === 0) return Promise.resolve([])
    const claimed = this.#last.then(() => this.#claim(request))
    this.#last = claimed.catch(() => {})
    return claimed
  }

  async #claim(request: ClaimRequest): Promise<Lease[]> {
    const { turns } = this.#parts
    const sent = turns.toSend(request.max)
    const { rows, short } = await this.#ask(request, sent)
    const leases = await this.#leases(rows, request, sent)
    if (leases.length >= request.max || leases.some(({ losses }) => losses > 0)) return leases
    // Another client may have returned tasks below our marks: look there before reporting that there is nothing.
    const again = turns.worthALook(short, sent)
    if (again.size === 0) return leases
    const rest = { ...request, max: request.max - leases.length }
    const sentAgain = turns.toSend(rest.max, again)
    const more = await this.#ask(rest, sentAgain)
    return [...leases, ...(await this.#leases(more.rows, rest, sentAgain))]
  }

  async #ask(request: ClaimRequest, sent: Sent): Promise<Given> {
    const { db, runId, operations, turns, now } = this.#parts
    const op = operations.next()
    const { levels } = sent
    const marks = [...sent.marks].sort(([a], [b]) => a - b) // the server uses a binary search
    const isFolding = sent.atMs - this.#foldedMs > FOLD_MS
    if (isFolding) this.#foldedMs = sent.atMs
    const isFullLook = sent.atMs - this.#dueLookedMs > DUE_LOOK_MS
    const values = (isRepeat: boolean) => [
      runId,
      op,
      isRepeat,
      request.workerId,
      request.max,
      Math.ceil(request.leaseMs),
      now(),
      isFullLook ? 0 : this.#dueAfterMs,
      request.lanes === undefined ? null : textsText(request.lanes),
      textsText(request.avoidHosts ?? []) ?? '{}',
      textsText(levels.map(({ group }) => group)),
      numbersText(levels.map(({ weight }) => weight)),
      numbersText(levels.map(({ turn }) => turn)),
      numbersText(marks.map(([queue]) => queue)),
      numbersText(marks.map(([, seq]) => seq)),
      isFolding,
    ]
    const given: Given = { rows: [], short: [] }
    for (const row of await db.rows<Row>(CLAIM, values)) {
      if (row[0] === WHAT.lease) given.rows.push(row)
      else if (row[0] === WHAT.promoted) turns.returned(Number(row[1]), Number(row[2]))
      else if (row[0] === WHAT.short) given.short.push(Number(row[1]))
      else {
        sent.tookMs = Number(row[3])
        if (row[1] !== '1') continue
        this.#dueAfterMs = Number(row[2]) - DUE_SLACK_MS
        if (isFullLook) this.#dueLookedMs = sent.atMs
      }
    }
    turns.emptied(given.short, sent)
    return { ...given, rows: given.rows.map((row) => withOp(row, op)) }
  }

  /** In the order in which they should be processed: lanes, priorities, then one task of each queue per round. */
  async #leases(rows: readonly Row[], request: ClaimRequest, sent: Sent): Promise<Lease[]> {
    if (rows.length === 0) return []
    const byQueue = Map.groupBy(rows, ([, queue]) => Number(queue))
    const queues = await this.#parts.queues.byId(byQueue.keys())
    const rank = (queue: Queue) =>
      request.lanes === undefined ? Number(classOf(queue.lane)) : request.lanes.indexOf(queue.lane)
    const groupOf = (queue: Queue) => (request.lanes === undefined ? classOf(queue.lane) : queue.lane)
    const turnOf = new Map(sent.levels.map(({ group, weight, turn }) => [`${group} ${weight}`, turn]))
    const dealt: { lease: Lease; rank: number; priority: number; round: number; place: number }[] = []
    const ends = new Map<string, { group: string; weight: number; count: number; place: number; id: number }>()
    for (const [id, own] of byQueue) {
      const queue = queues.get(id)!
      const group = groupOf(queue)
      const weight = 0 - queue.priority
      const level = `${group} ${weight}`
      const place = id > (turnOf.get(level) ?? 0) ? id : id + 2 ** 32
      own.sort((a, b) => Number(a[2]) - Number(b[2]))
      for (const [round, row] of own.entries()) {
        dealt.push({ lease: leaseOf(row, queue), rank: rank(queue), priority: queue.priority, round, place })
      }
      if (own[0]![4] !== '0') continue // a suspect: does not affect the round-robin
      this.#parts.turns.served(queue, { last: Number(own.at(-1)![2]), sent })
      // The round ends with the last queue among those that gave most: with 3 hosts and 4 tasks, the one that gave 2.
      const end = ends.get(level)
      if (end === undefined || own.length > end.count || (own.length === end.count && place > end.place)) {
        ends.set(level, { group, weight, count: own.length, place, id })
      }
    }
    for (const { group, weight, id } of ends.values()) this.#parts.turns.turned(group, weight, id)
    dealt.sort((a, b) => a.rank - b.rank || b.priority - a.priority || a.round - b.round || a.place - b.place)
    return dealt.map(({ lease }) => lease)
  }
}

/** Replaces `what`, which is no longer needed, with the number of the claim. */
function withOp(row: Row, op: string): Row {
  row[0] = op
  return row
}

/** A token consists of the numbers of the claim, the task and its queue: `17.4711.3`. */
function leaseOf(row: Row, { lane, priority }: Queue): Lease {
  const [op, queue, seq, attempts, losses, depth, hash, url, route, data, session] = row
  return {
    task: {
      id: hash.slice(2), // \x
      url,
      route,
      ...unpackData(data),
      depth: Number(depth),
      priority,
      lane,
      session: session ?? undefined,
    },
    token: `${op}.${seq}.${queue}`,
    attempt: Number(attempts) + 1,
    losses: Number(losses),
  }
}

export interface Token {
  readonly lease: string
  readonly seq: number
  readonly queue: number
}

/** Anything that is not one of our tokens matches no lease. */
export function readToken(token: string): Token {
  const [lease = '', seq, queue] = token.split('.')
  const isOurs = /^\d{1,18}$/.test(lease) && Number.isSafeInteger(Number(seq))
  return isOurs ? { lease, seq: Number(seq), queue: Number(queue) } : { lease: '0', seq: 0, queue: 0 }
}
