/**
 * What a client remembers between its claims, so that no row on the server has to: which queue of a level was served last, and
 * of each queue the number below which nothing is left.
 *
 * A level is a lane (or all lanes that share) and a priority. Its queues are a ring in the order of their numbers; a claim goes
 * on after the one that was served last, so the client can tell which come next and sends only their marks.
 *
 * A mark may be wrong: somebody else handed a task back, or a slow transaction committed a smaller number late. So now and then a
 * queue is looked at from its beginning: every second, or more rarely where such a look takes long, because dead rows cannot be
 * vacuumed while a snapshot is held somewhere.
 */
import { isFileLane } from '../../core/task.ts'
import type { Queue } from './queues.ts'

const LOOK_MS = 1000
/** A full look may take this share of the time. */
const LOOK_SHARE_MAX = 1 / 20
/** Up to this a full look is done whenever a queue gives too little. */
const LOOK_CHEAP_MS = 20
const MARKS_MAX = 50_000
const LEVELS_MAX = 64
/** More levels than this are served without marks. */
const LEVELS_MARKED_MAX = 8

interface Mark {
  seq: number
  lookedMs: number
  /** How long the claim took in which it was last looked at from its beginning. */
  costMs: number
  readonly ring: number[]
}

interface Level {
  readonly group: string
  readonly weight: number
  turn: number
}

export interface Sent {
  levels: Level[]
  marks: Map<number, number>
  atMs: number
  /** On the server, once it is known. */
  tookMs: number
}

const FIRST_LANES = ['manual', 'priority']

export class QueueMarks {
  /** By group and weight, the last used at the end. */
  readonly #levels = new Map<string, Level>()
  readonly #marks = new Map<number, Mark>()
  /** Numbers of the queues that have a mark, ascending, by class and weight. */
  readonly #rings = new Map<string, number[]>()

  /** What the next claim should know. `ignored`: queues to be looked at from their beginning. */
  toSend(max: number, ignored?: ReadonlySet<number>): Sent {
    const atMs = performance.now()
    const levels = [...this.#levels.values()]
    const marks = new Map<number, number>()
    for (const { group, weight, turn } of levels.slice(-LEVELS_MARKED_MAX)) {
      const ring = this.#rings.get(`${classOf(group)} ${weight}`) ?? []
      const start = placeIn(ring, turn + 1)
      for (let i = 0; i < Math.min(2 * max, ring.length); i++) {
        const id = ring[(start + i) % ring.length]!
        const mark = this.#marks.get(id)!
        const isDue = atMs - mark.lookedMs > Math.max(LOOK_MS, mark.costMs / LOOK_SHARE_MAX)
        if (!isDue && !ignored?.has(id)) marks.set(id, mark.seq)
      }
    }
    return { levels, marks, atMs, tookMs: 0 }
  }

  /** Tasks were given out of these queues, `last` being the highest number of each, in the order of the ring. */
  served(queue: Queue, { last, sent }: { last: number; sent: Sent }): void {
    const known = this.#marks.get(queue.id)
    if (known !== undefined && sent.marks.has(queue.id)) {
      known.seq = last + 1
      return
    }
    const ring = known?.ring ?? this.#insert(queue)
    this.#marks.set(queue.id, { seq: last + 1, lookedMs: sent.atMs, costMs: sent.tookMs, ring })
  }

  /** The level goes on after this queue. */
  turned(group: string, weight: number, turn: number): void {
    const name = `${group} ${weight}`
    this.#levels.delete(name)
    this.#levels.set(name, { group, weight, turn })
    if (this.#levels.size > LEVELS_MAX) this.#levels.delete(this.#levels.keys().next().value!)
  }

  /** Something is there again from `seq` on. */
  returned(queueId: number, seq: number): void {
    const mark = this.#marks.get(queueId)
    if (mark !== undefined && seq < mark.seq) mark.seq = seq
  }

  /** Looked at from their beginning, they had too little: nothing is left there. */
  emptied(short: readonly number[], sent: Sent): void {
    for (const id of short) {
      const mark = sent.marks.has(id) ? undefined : this.#marks.get(id)
      if (mark === undefined) continue
      mark.ring.splice(placeIn(mark.ring, id), 1)
      this.#marks.delete(id)
    }
  }

  /** Of the queues that gave too little because of a mark, those worth a look from their beginning now. */
  worthALook(short: readonly number[], sent: Sent): Set<number> {
    const nowMs = performance.now()
    return new Set(
      short.filter((id) => {
        const mark = this.#marks.get(id)
        if (mark === undefined || !sent.marks.has(id)) return false
        return mark.costMs < LOOK_CHEAP_MS || nowMs - mark.lookedMs > mark.costMs / LOOK_SHARE_MAX
      }),
    )
  }

  forgetMarks(): void {
    this.#marks.clear()
    this.#rings.clear()
  }

  #insert({ id, lane, priority }: Queue): number[] {
    if (this.#marks.size >= MARKS_MAX) this.forgetMarks()
    const name = `${classOf(lane)} ${0 - priority}`
    const ring = this.#rings.get(name) ?? []
    this.#rings.set(name, ring)
    ring.splice(placeIn(ring, id), 0, id)
    return ring
  }
}

/** As in `sluice.queue`: the lanes that come first have a class each, those of files one, all others share one. */
export function classOf(laneOrClass: string): string {
  if (/^[0123]$/.test(laneOrClass)) return laneOrClass
  if (isFileLane(laneOrClass)) return '3'
  const place = FIRST_LANES.indexOf(laneOrClass)
  return String(place === -1 ? FIRST_LANES.length : place)
}

/** Where the first number that is not below `id` stands. */
function placeIn(ring: readonly number[], id: number): number {
  let low = 0
  let high = ring.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ring[middle]! < id) low = middle + 1
    else high = middle
  }
  return low
}
