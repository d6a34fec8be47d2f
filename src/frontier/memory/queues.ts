/** The waiting tasks of the `memory:` engine: one queue per lane, priority and host, served in turn. */
import type { Task } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { ClaimRequest, FrontierStats } from '../contract.ts'
import { byTurn, type Candidate, deal, laneGroups } from '../shared/fair-share.ts'
import { Heap } from './heap.ts'

/** A task that is not finished, in whatever state. */
export interface Entry {
  readonly task: Task
  /** Age: the order in which tasks were added. A task that is returned keeps its place. */
  readonly seq: number
  readonly queue: Queue
  readonly addedAtMs: number
  attempts: number
  losses: number
  /** Set while it is claimed. */
  lease: { token: string; workerId: string; expiresMs: number } | undefined
}

class Queue implements Candidate {
  readonly lane: string
  readonly priority: number
  readonly host: string
  readonly tasks = new Heap<Entry>((a, b) => a.seq - b.seq)
  turn = 0
  /** Waiting, due or not: more than `ready` if some are delayed or suspects. */
  pending = 0
  claimed = 0

  constructor(task: Task) {
    this.lane = task.lane
    this.priority = task.priority
    this.host = hostOf(task.url)
  }

  get ready(): number {
    return this.tasks.size
  }
}

export class Queues {
  readonly #all = new Map<string, Queue>()
  /** Lane → priority → the queues with a ready task, in round-robin order. */
  readonly #ready = new Map<string, Map<number, Set<Queue>>>()
  #turn = 0

  of(task: Task): Queue {
    const name = `${task.lane} ${task.priority} ${hostOf(task.url)}`
    const queue = this.#all.get(name) ?? new Queue(task)
    this.#all.set(name, queue)
    return queue
  }

  put(entry: Entry): void {
    entry.queue.tasks.push(entry)
    if (entry.queue.ready === 1) this.#toEnd(entry.queue)
  }

  /** Up to `max` tasks, in the order they are given out. */
  take(request: Pick<ClaimRequest, 'max' | 'lanes' | 'avoidHosts'>): Entry[] {
    const avoid = new Set(request.avoidHosts)
    const taken: Entry[] = []
    for (const group of laneGroups(this.#ready.keys(), request.lanes)) {
      const max = request.max - taken.length
      if (max <= 0) break
      const candidates = group.flatMap((lane) => this.#candidates(lane, avoid, max)).sort(byTurn)
      const dealt = deal(candidates, max)
      for (const queue of dealt) taken.push(queue.tasks.pop()!)
      for (const queue of new Set(dealt)) this.#toEnd(queue)
    }
    return taken
  }

  /** The first task of each queue: the oldest ready task is among them. */
  *heads(): Iterable<Entry> {
    for (const levels of this.#ready.values())
      for (const level of levels.values()) for (const queue of level) yield queue.tasks.peek()!
  }

  stats(): Pick<FrontierStats, 'lanes' | 'hosts'> {
    const lanes: FrontierStats['lanes'] = {}
    const hosts = new Map<string, { host: string; pending: number; claimed: number }>()
    for (const { lane, host, pending, claimed } of this.#all.values()) {
      lanes[lane] ??= { pending: 0, claimed: 0 }
      const sum = hosts.get(host) ?? { host, pending: 0, claimed: 0 }
      hosts.set(host, sum)
      lanes[lane].pending += pending
      lanes[lane].claimed += claimed
      sum.pending += pending
      sum.claimed += claimed
    }
    const open = [...hosts.values()].filter((host) => host.pending + host.claimed > 0)
    return { lanes, hosts: open.sort((a, b) => b.pending - a.pending).slice(0, 50) }
  }

  #candidates(lane: string, avoid: ReadonlySet<string>, max: number): Queue[] {
    const levels = this.#ready.get(lane)!
    const found: Queue[] = []
    for (const priority of [...levels.keys()].sort((a, b) => b - a)) {
      for (const queue of levels.get(priority)!) {
        if (found.length === max) return found
        if (!avoid.has(queue.host)) found.push(queue)
      }
    }
    return found
  }

  #toEnd(queue: Queue): void {
    const levels = this.#ready.get(queue.lane) ?? new Map<number, Set<Queue>>()
    const level = levels.get(queue.priority) ?? new Set()
    level.delete(queue)
    if (queue.ready > 0) level.add(queue)
    queue.turn = ++this.#turn
    if (level.size > 0) levels.set(queue.priority, level)
    else levels.delete(queue.priority)
    this.#ready.set(queue.lane, levels)
  }
}
