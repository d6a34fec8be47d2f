/** The `memory:` engine: everything is in this process and gone when it ends. For tests, experiments and small single runs. */
import { addCounts, noCounts } from '../../core/counts.ts'
import type { ErrorRecord } from '../../core/errors.ts'
import { contentKey, type ItemRow, type LoggedItem } from '../../core/item.ts'
import type { NewTask } from '../../core/task.ts'
import type * as c from '../contract.ts'
import { groupByCause, leaseLost, matches } from '../shared/dead-letters.ts'
import { isServed } from '../shared/fair-share.ts'
import { chunksOf, identityOf, taskOf } from '../shared/intake.ts'
import { Heap } from './heap.ts'
import { type Entry, Queues } from './queues.ts'

export function openMemoryFrontier(options: c.FrontierOptions = {}): c.Frontier {
  return new MemoryFrontier(options.now ?? Date.now)
}

interface Delayed {
  entry: Entry
  atMs: number
}

class MemoryFrontier implements c.Frontier {
  readonly engine = 'memory:'
  readonly can = { durable: false, shared: false, tellsAge: true }
  readonly dead: c.DeadLetters
  readonly items: c.ItemLog

  readonly #now: () => number
  readonly #seen = new Set<string>()
  readonly #queues = new Queues()
  readonly #delayed = new Heap<Delayed>((a, b) => a.atMs - b.atMs)
  /** In the order they are tried: a suspect that is lost again goes to the end. */
  readonly #suspects = new Set<Entry>()
  readonly #claimed = new Map<string, Entry>()
  readonly #dead = new Map<string, { entry: Entry; letter: c.DeadLetter }>()
  readonly #itemKeys = new Map<string, string>()
  readonly #meta = new Map<string, string>()
  #log: LoggedItem[] = []
  #confirmed: { seq: number; positions: c.SinkPositions } = { seq: 0, positions: {} }
  readonly #count = { pending: 0, claimed: 0, completed: 0, failed: 0, seen: 0, items: 0 }
  readonly #counts = noCounts()
  #lastClaim = 0
  #pauseReason: string | undefined

  constructor(now: () => number) {
    this.#now = now
    this.dead = {
      list: async (filter = {}) => this.#listDead(filter),
      groups: async () => groupByCause(this.#dead.values().map(({ letter }) => letter)),
      retry: async (filter = {}) => this.#removeDead(filter, (entry) => this.#revive(entry)),
      drop: async (filter = {}) => this.#removeDead(filter, () => {}),
    }
    this.items = {
      read: async ({ afterSeq, max }) => this.#log.filter(({ seq }) => seq > afterSeq).slice(0, max),
      confirm: async (seq, positions) => this.#confirm(seq, positions),
      confirmed: async () => structuredClone(this.#confirmed),
    }
  }

  async add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<c.Added> {
    const total: c.Added = { added: 0, seen: 0 }
    for await (const chunk of chunksOf(tasks)) this.#admit(chunk, total)
    return total
  }

  #admit(tasks: readonly NewTask[], total: c.Added): void {
    for (const task of tasks) {
      const identity = identityOf(task)
      if (this.#seen.has(identity)) {
        total.seen++
        continue
      }
      this.#seen.add(identity)
      total.added++
      const filled = taskOf(task)
      const queue = this.#queues.of(filled)
      const seq = ++this.#count.seen
      const entry = { task: filled, seq, queue, addedAtMs: this.#now(), attempts: 0, losses: 0, lease: undefined }
      this.#place(entry, task.notBeforeMs ?? 0)
    }
  }

  async claim(request: c.ClaimRequest): Promise<c.Lease[]> {
    if (this.#pauseReason !== undefined || request.max < 1) return []
    this.#promote()
    const held = [...this.#claimed.values()].filter(({ lease }) => lease?.workerId === request.workerId)
    if (held.some(({ losses }) => losses > 0)) return []
    const suspect = held.length === 0 ? this.#nextSuspect(request) : undefined
    const entries = suspect === undefined ? this.#queues.take(request) : [suspect]
    return entries.map((entry) => this.#lease(entry, request))
  }

  #nextSuspect({ lanes, avoidHosts }: c.ClaimRequest): Entry | undefined {
    const suspect = this.#suspects
      .values()
      .find(({ queue }) => isServed(queue.lane, lanes) && !avoidHosts?.includes(queue.host))
    if (suspect !== undefined) this.#suspects.delete(suspect)
    return suspect
  }

  #lease(entry: Entry, { workerId, leaseMs }: c.ClaimRequest): c.Lease {
    const token = String(++this.#lastClaim)
    entry.lease = { token, workerId, expiresMs: this.#now() + leaseMs }
    this.#claimed.set(token, entry)
    this.#count.pending--
    this.#count.claimed++
    entry.queue.pending--
    entry.queue.claimed++
    return { task: entry.task, token, attempt: entry.attempts + 1, losses: entry.losses }
  }

  async extend(leases: readonly c.Lease[], leaseMs: number): Promise<{ lost: c.Lease[] }> {
    const lost = leases.filter((lease) => this.#holder(lease) === undefined)
    for (const lease of leases) {
      const entry = this.#holder(lease)
      if (entry?.lease !== undefined) entry.lease.expiresMs = this.#now() + leaseMs
    }
    return { lost }
  }

  async commit(outcomes: readonly c.Outcome[]): Promise<c.Committed> {
    const items = { new: 0, same: 0, changed: 0, backlog: 0 }
    const result: c.Committed = { settled: 0, stale: [], added: 0, seen: 0, items }
    for (const outcome of outcomes) {
      const entry = this.#holder(outcome.lease)
      if (entry === undefined) {
        result.stale.push(outcome.lease)
        continue
      }
      result.settled++
      this.#release(entry)
      this.#settle(entry, outcome)
      addCounts(this.#counts, outcome.counts)
      if (outcome.kind !== 'done') continue
      this.#admit(outcome.tasks ?? [], result)
      for (const item of outcome.items ?? []) items[this.#accept(item)]++
    }
    if (items.changed > 0) addCounts(this.#counts, { 'items.changed': items.changed })
    items.backlog = this.#log.length
    return result
  }

  #settle(entry: Entry, outcome: c.Outcome): void {
    switch (outcome.kind) {
      case 'done':
        this.#count.completed++
        break
      case 'retry':
        entry.attempts++
        this.#place(entry, outcome.atMs)
        break
      case 'postpone':
        this.#place(entry, outcome.atMs)
        break
      case 'dead':
        entry.attempts++
        this.#bury(entry, outcome.error, outcome.snapshot)
        break
      default:
        outcome satisfies never
    }
  }

  #accept(item: ItemRow): 'new' | 'same' | 'changed' {
    const content = item.content ?? contentKey(item.json)
    const known = this.#itemKeys.get(item.key)
    if (known !== undefined) return known === content ? 'same' : 'changed'
    this.#itemKeys.set(item.key, content)
    this.#log.push({ seq: ++this.#count.items, key: item.key, json: item.json })
    return 'new'
  }

  async sweep({ lossesMax, workerIds = [] }: c.SweepOptions): Promise<{ returned: number; dead: number }> {
    const result = { returned: 0, dead: 0 }
    for (const entry of [...this.#claimed.values()]) {
      const { expiresMs, workerId } = entry.lease!
      if (expiresMs > this.#now() && workerIds !== 'all' && !workerIds.includes(workerId)) continue
      this.#release(entry)
      entry.losses++
      // The first loss only makes it a suspect; after that it runs alone.
      if (entry.losses > lossesMax) {
        this.#bury(entry, leaseLost(entry.losses), undefined)
        result.dead++
      } else {
        this.#place(entry, 0)
        result.returned++
      }
    }
    return result
  }

  async stats(): Promise<c.FrontierStats> {
    return {
      ...this.#count,
      counts: { ...this.#counts },
      dead: this.#dead.size,
      remaining: this.#count.pending + this.#count.claimed,
      isPaused: this.#pauseReason !== undefined,
      pauseReason: this.#pauseReason,
      oldestAgeMs: this.#oldestAgeMs(),
      ...this.#queues.stats(),
    }
  }

  #oldestAgeMs(): number | undefined {
    this.#promote()
    let oldestMs = Number.POSITIVE_INFINITY
    for (const { addedAtMs } of this.#queues.heads()) oldestMs = Math.min(oldestMs, addedAtMs)
    for (const { addedAtMs } of this.#suspects) oldestMs = Math.min(oldestMs, addedAtMs)
    return oldestMs === Number.POSITIVE_INFINITY ? undefined : this.#now() - oldestMs
  }

  async nextDueMs(): Promise<number | undefined> {
    let nextMs = this.#delayed.peek()?.atMs ?? Number.POSITIVE_INFINITY
    for (const { lease } of this.#claimed.values()) nextMs = Math.min(nextMs, lease!.expiresMs)
    return nextMs === Number.POSITIVE_INFINITY ? undefined : nextMs
  }

  async pause(reason: string): Promise<void> {
    this.#pauseReason = reason
  }

  async resume(): Promise<void> {
    this.#pauseReason = undefined
  }

  async getMeta(name: string): Promise<string | undefined> {
    return this.#meta.get(name)
  }

  async setMeta(name: string, value: string): Promise<void> {
    this.#meta.set(name, value)
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #holder(lease: c.Lease): Entry | undefined {
    const entry = this.#claimed.get(lease.token)
    return entry?.task.id === lease.task.id ? entry : undefined
  }

  #release(entry: Entry): void {
    this.#claimed.delete(entry.lease!.token)
    entry.lease = undefined
    entry.queue.claimed--
    this.#count.claimed--
  }

  /** Moves it to pending: now, or when it is due. */
  #place(entry: Entry, atMs: number): void {
    entry.queue.pending++
    this.#count.pending++
    if (atMs > this.#now()) this.#delayed.push({ entry, atMs })
    else this.#ready(entry)
  }

  #ready(entry: Entry): void {
    if (entry.losses > 0) this.#suspects.add(entry)
    else this.#queues.put(entry)
  }

  #promote(): void {
    while ((this.#delayed.peek()?.atMs ?? Number.POSITIVE_INFINITY) <= this.#now()) {
      this.#ready(this.#delayed.pop()!.entry)
    }
  }

  #bury(entry: Entry, error: ErrorRecord, snapshot: string | undefined): void {
    const { task, attempts, losses } = entry
    this.#dead.set(task.id, { entry, letter: { task, error, attempts, losses, diedAtMs: this.#now(), snapshot } })
    this.#count.failed++
  }

  #revive(entry: Entry): void {
    this.#count.failed--
    this.#place({ ...entry, attempts: 0, losses: 0 }, 0)
  }

  #listDead({ limit = 100, after, ...filter }: c.DeadFilter & { limit?: number; after?: string }): c.DeadLetter[] {
    const letters = [...this.#dead.values().map(({ letter }) => letter)]
    const start = letters.findIndex(({ task }) => task.id === after) + 1
    return letters
      .slice(start)
      .filter((letter) => matches(letter, filter))
      .slice(0, limit)
  }

  #removeDead(filter: c.DeadFilter, then: (entry: Entry) => void): number {
    const found = [...this.#dead.values()].filter(({ letter }) => matches(letter, filter))
    for (const { entry } of found) {
      this.#dead.delete(entry.task.id)
      then(entry)
    }
    return found.length
  }

  #confirm(seq: number, positions: c.SinkPositions): void {
    if (seq < this.#confirmed.seq) return // a reader that was replaced must not move the sinks back
    this.#confirmed = { seq: Math.min(seq, this.#count.items), positions: { ...positions } }
    this.#log = this.#log.filter((item) => item.seq > seq)
  }
}
