/**
 * What a client remembers between its claims, so that no row on the server has to: which queue of each level was served last, and
 * for each queue the number below which nothing is left.
 *
 * A level is a lane (or all lanes that share one) and a priority. Its queues form a ring ordered by number; a claim continues
 * after the queue served last, so the client knows which come next and sends only their marks.
 *
 * A mark may be wrong: another client returned a task, or a slow transaction committed a smaller number late. So from time to
 * time a queue is searched from its beginning: every second, or less often if such a search takes long, because dead rows cannot
 * be vacuumed while a snapshot is held somewhere.
 */
import { isFileLane } from '../../core/task.ts'
import type { Queue } from './queues.ts'

const LOOK_MS = 1000
/** Full searches may take up to this share of the time. */
const LOOK_SHARE_MAX = 1 / 20
/** A full search this cheap is done whenever a queue gives too little. */
const LOOK_CHEAP_MS = 20
const MARKS_MAX = 50_000
const LEVELS_MAX = 64
/** Levels beyond this number are served without marks. */
const LEVELS_MARKED_MAX = 8

interface Mark {
  seq: number
  lookedMs: number
  /** Duration of the claim in which the queue was last searched from its beginning. */
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
  /** Time on the server, once it is known. */
  tookMs: number
}

const FIRST_LANES = ['manual', 'priority']

export class QueueMarks {
  /** By group and weight; most recently used last. */
  readonly #levels = new Map<string, Level>()
  readonly #marks = new Map<number, Mark>()
  /** Numbers of the queues that have a mark, ascending, by class and weight. */
  readonly #rings = new Map<string, number[]>()

  /** What to send with the next claim. `ignored`: queues to search from their beginning. */
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

  /** Tasks were given out from this queue; `last` is the highest number among them. */
  served(queue: Queue, { last, sent }: { last: number; sent: Sent }): void {
    const known = this.#marks.get(queue.id)
    if (known !== undefined && sent.marks.has(queue.id)) {
      known.seq = last + 1
      return
    }
    const ring = known?.ring ?? this.#insert(queue)
    this.#marks.set(queue.id, { seq: last + 1, lookedMs: sent.atMs, costMs: sent.tookMs, ring })
  }

  /** The level continues after this queue. */
  turned(group: string, weight: number, turn: number): void {
    const name = `${group} ${weight}`
    this.#levels.delete(name)
    this.#levels.set(name, { group, weight, turn })
    if (this.#levels.size > LEVELS_MAX) this.#levels.delete(this.#levels.keys().next().value!)
  }

  /** There are tasks again from `seq` on. */
  returned(queueId: number, seq: number): void {
    const mark = this.#marks.get(queueId)
    if (mark !== undefined && seq < mark.seq) mark.seq = seq
  }

  /** These queues had too little even when searched from their beginning: nothing is left there. */
  emptied(short: readonly number[], sent: Sent): void {
    for (const id of short) {
      const mark = sent.marks.has(id) ? undefined : this.#marks.get(id)
      if (mark === undefined) continue
      mark.ring.splice(placeIn(mark.ring, id), 1)
      this.#marks.delete(id)
    }
  }

  /** The queues that gave too little because of a mark and are worth searching from their beginning now. */
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

/** As in `sluice.queue`: each lane that comes first has its own class, file lanes have one, all others share one. */
export function classOf(laneOrClass: string): string {
  if (/^[0123]$/.test(laneOrClass)) return laneOrClass
  if (isFileLane(laneOrClass)) return '3'
  const place = FIRST_LANES.indexOf(laneOrClass)
  return String(place === -1 ? FIRST_LANES.length : place)
}

/** Index of the first number that is not below `id`. */
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
