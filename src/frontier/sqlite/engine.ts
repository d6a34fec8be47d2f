/** The `sqlite:` engine: one file, any number of processes on one machine, everything durable when the promise resolves. */
import { addCounts, noCounts } from '../../core/counts.ts'
import type { NewTask } from '../../core/task.ts'
import type {
  Added,
  ClaimRequest,
  Committed,
  DeadFilter,
  DeadLetters,
  Frontier,
  FrontierOptions,
  FrontierStats,
  ItemLog,
  Lease,
  Outcome,
  SweepOptions,
} from '../contract.ts'
import { chunksOf } from '../shared/intake.ts'
import { createAdmission } from './admit.ts'
import { createClaim } from './claim.ts'
import { createCounters } from './counters.ts'
import { Database } from './database.ts'
import { createDead } from './dead.ts'
import { createItems } from './items.ts'
import { createLedger } from './ledger.ts'
import { createPlaces } from './places.ts'
import { createSettle } from './settle.ts'
import { createStats } from './stats.ts'

export async function openSqliteFrontier(path: string, options: FrontierOptions = {}): Promise<Frontier> {
  return frontierOn(await Database.open(path, options), options)
}

/** The engine on a file that is already open; it is closed with the engine. */
export function frontierOn(db: Database, { now = Date.now }: Pick<FrontierOptions, 'now'> = {}): Frontier {
  return new SqliteFrontier(db, now)
}

class SqliteFrontier implements Frontier {
  readonly engine = 'sqlite:'
  readonly can = { durable: true, shared: true }
  readonly dead: DeadLetters
  readonly items: ItemLog

  readonly #db: Database
  readonly #now: () => number
  readonly #parts

  constructor(db: Database, now: () => number) {
    this.#db = db
    this.#now = now
    const ledger = createLedger(db)
    const places = createPlaces({ db, ledger })
    const counters = createCounters(db)
    const base = { db, ledger, places, counters }
    this.#parts = {
      ...base,
      admission: createAdmission(base),
      claim: createClaim(base),
      settle: createSettle(base),
      items: createItems(base),
      dead: createDead(base),
      stats: createStats(base),
      peek: db.prepareRows<[number, string | null]>('select pending, pause_reason from totals'),
      pause: db.prepare('update totals set pause_reason = ?'),
      getMeta: db.prepareRows<[string]>('select value from meta where name = ?'),
      setMeta: db.prepare('insert into meta values (?1, ?2) on conflict do update set value = ?2'),
    }
    const { dead, items } = this.#parts
    this.dead = {
      list: (filter) => db.read(() => dead.list(filter)),
      groups: () => db.read(() => dead.groups()),
      retry: (filter = {}) => this.#removeDead(filter, this.#now()),
      drop: (filter = {}) => this.#removeDead(filter, undefined),
    }
    this.items = {
      read: (options) => db.look(() => items.read(options)),
      confirm: (seq, positions) => this.#write(() => items.confirm(seq, positions)),
      confirmed: () => this.#read(() => items.confirmed()),
    }
  }

  async add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<Added> {
    const total: Added = { added: 0, seen: 0 }
    for await (const chunk of chunksOf(tasks)) {
      const { added, seen } = await this.#write(() => this.#parts.admission.admit(chunk, this.#now()))
      total.added += added
      total.seen += seen
    }
    return total
  }

  async claim(request: ClaimRequest): Promise<Lease[]> {
    // An idle worker that claims again and again must not take the write lock each time.
    const [pending, pauseReason] = await this.#db.look(() => this.#parts.peek.get()!)
    if (pending === 0 || pauseReason !== null || request.max < 1) return []
    return this.#write(() => this.#parts.claim({ ...request, nowMs: this.#now() }))
  }

  extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }> {
    return this.#write(() => ({ lost: this.#parts.settle.extend(leases, this.#now() + leaseMs) }))
  }

  commit(outcomes: readonly Outcome[]): Promise<Committed> {
    const { settle, admission, items, ledger, counters } = this.#parts
    return this.#write(() => {
      const nowMs = this.#now()
      const counts = { new: 0, same: 0, changed: 0, backlog: 0 }
      const result: Committed = { settled: 0, stale: [], added: 0, seen: 0, items: counts }
      const discovered: NewTask[] = []
      const sums = noCounts()
      for (const outcome of outcomes) {
        if (!settle.settle(outcome, nowMs)) {
          result.stale.push(outcome.lease)
          continue
        }
        result.settled++
        addCounts(sums, outcome.counts)
        if (outcome.kind !== 'done') continue
        for (const task of outcome.tasks ?? []) discovered.push(task) // spreading 200,000 would overflow the stack
        for (const item of outcome.items ?? []) counts[items.accept(item)]++
      }
      const { added, seen } = admission.admit(discovered, nowMs)
      if (counts.changed > 0) addCounts(sums, { 'items.changed': counts.changed })
      counters.add(sums)
      counts.backlog = ledger.totals.backlog
      return { ...result, added, seen }
    })
  }

  sweep(options: SweepOptions): Promise<{ returned: number; dead: number }> {
    return this.#write(() => this.#parts.settle.sweep(options, this.#now()))
  }

  stats(): Promise<FrontierStats> {
    return this.#db.read(() => this.#parts.stats())
  }

  nextDueMs(): Promise<number | undefined> {
    return this.#db.read(() => {
      const times = [this.#parts.places.nextDueMs(), this.#parts.settle.nextExpiryMs()]
      const known = times.filter((time) => time !== undefined)
      return known.length === 0 ? undefined : Math.min(...known)
    })
  }

  async pause(reason: string): Promise<void> {
    await this.#db.write(() => this.#parts.pause.run(reason))
  }

  async resume(): Promise<void> {
    await this.#db.write(() => this.#parts.pause.run(null))
  }

  getMeta(name: string): Promise<string | undefined> {
    return this.#db.look(() => this.#parts.getMeta.get(name)?.[0])
  }

  async setMeta(name: string, value: string): Promise<void> {
    await this.#db.write(() => this.#parts.setMeta.run(name, value))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#db.close()
  }

  async #removeDead(filter: DeadFilter, nowMs: number | undefined): Promise<number> {
    const { dead } = this.#parts
    // Letters that die in the meantime are left for the next call: otherwise a poison task would be retried for ever.
    const last = await this.#db.look(() => dead.lastTurn())
    let removed = 0
    for (let turn = 0; ; ) {
      const step = await this.#write(() => dead.removeSome(filter, { turn, last, nowMs }))
      removed += step.count
      turn = step.turn
      if (step.count === 0) return removed
    }
  }

  /** A transaction that loads the counters first and saves them at the end. */
  #write<T>(body: () => T): Promise<T> {
    const { ledger, admission, items } = this.#parts
    const run = () => {
      ledger.load()
      const result = body()
      ledger.save()
      return result
    }
    return this.#db.write(run, (isCommitted) => {
      admission.ended(isCommitted)
      items.ended(isCommitted)
      if (!isCommitted) ledger.forget()
    })
  }

  #read<T>(body: () => T): Promise<T> {
    return this.#db.read(() => {
      this.#parts.ledger.load()
      return body()
    })
  }
}
