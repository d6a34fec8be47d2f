/** The `postgres:` engine: one database, many runs, any number of machines. The database's clock is authoritative. */
import { ScrapeError } from '../../core/errors.ts'
import type { NewTask } from '../../core/task.ts'
import { Database, type DatabaseOptions } from '../../drivers/postgres/database.ts'
import { migrate } from '../../drivers/postgres/migrate.ts'
import type {
  Added,
  ClaimRequest,
  Committed,
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
import { ADD, Admission } from './admit.ts'
import { numbersText } from './array-text.ts'
import { Claim } from './claim.ts'
import { commit } from './commit.ts'
import { createDead } from './dead.ts'
import { createItems } from './items.ts'
import { FRONTIER_MIGRATIONS } from './migrations.ts'
import { Operations } from './operations.ts'
import { QueueMarks } from './queue-marks.ts'
import { Queues } from './queues.ts'
import { dropRun } from './runs.ts'
import { createStats } from './stats.ts'
import { extend, sweep } from './sweep.ts'

export interface PostgresFrontierOptions extends FrontierOptions, DatabaseOptions {}

const DEFAULT_RUN = 'default'

export async function openPostgresFrontier(url: string, options: PostgresFrontierOptions = {}): Promise<Frontier> {
  const { runId: name = DEFAULT_RUN, fresh = false } = options
  const db = new Database(url, options)
  try {
    const [runId, clientNo] = await db.attempt(async () => {
      await migrate(db.pool, FRONTIER_MIGRATIONS)
      if (fresh) await dropRun(db.pool, name)
      if (options.mustExist) await findRun(db, name)
      const text = `select sluice.open_run($1), nextval('sluice.client_no')`
      const { rows } = await db.pool.query({ text, values: [name], rowMode: 'array' })
      return (rows[0] as [number, string]).map(Number) as [number, number]
    })
    return new PostgresFrontier({ db, runId, clientNo }, options)
  } catch (error) {
    await db.close()
    throw error
  }
}

async function findRun({ pool, place }: Database, name: string): Promise<void> {
  const { rowCount } = await pool.query('select 1 from sluice.run where name = $1', [name])
  if (rowCount === 0) throw new ScrapeError('E_RUN_NOT_FOUND', `no run ${name} in ${place}`)
}

class PostgresFrontier implements Frontier {
  readonly engine = 'postgres:'
  readonly can = { durable: true, shared: true, keepsItems: true, tellsAge: true }
  readonly dead: DeadLetters
  readonly items: ItemLog
  readonly stats: () => Promise<FrontierStats>

  readonly #parts
  readonly #claim: Claim
  /** Lease duration of the latest claim. */
  #leaseMs = 0

  constructor(base: { db: Database; runId: number; clientNo: number }, options: PostgresFrontierOptions) {
    const { db, runId, clientNo } = base
    const { now, keepsItems = false } = options
    const queues = new Queues(db, runId)
    const turns = new QueueMarks()
    const parts = {
      ...{ db, runId, queues, turns, keepsItems },
      operations: new Operations(clientNo),
      admission: new Admission(queues),
      now: now ?? (() => Date.now()),
      serverNow: () => now?.() ?? null,
    }
    this.#parts = parts
    this.#claim = new Claim({ ...parts, now: parts.serverNow })
    this.dead = createDead(parts)
    this.items = createItems(db, runId)
    this.stats = createStats(db, runId, parts.serverNow)
  }

  async add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<Added> {
    const total: Added = { added: 0, seen: 0 }
    for await (const chunk of chunksOf(tasks)) {
      const added = await this.#addChunk(chunk)
      total.added += added
      total.seen += chunk.length - added
    }
    return total
  }

  async #addChunk(chunk: readonly NewTask[]): Promise<number> {
    const { db, runId, operations, admission, now, serverNow } = this.#parts
    const tasks = chunk.filter((task) => !admission.isRecent(task))
    if (tasks.length === 0) return 0
    const values = await admission.valuesOf(tasks, now())
    const [row] = await operations.answered((op, forget) =>
      db.rows<[string]>(ADD, (isRepeat) => [runId, op, isRepeat, numbersText(forget), serverNow(), ...values]),
    )
    admission.committed(tasks)
    return Number(row![0])
  }

  claim(request: ClaimRequest): Promise<Lease[]> {
    this.#leaseMs = request.leaseMs
    return this.#claim.claim(request)
  }

  async extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }> {
    return { lost: await extend(this.#parts, leases, leaseMs) }
  }

  commit(outcomes: readonly Outcome[]): Promise<Committed> {
    return commit(this.#parts, outcomes)
  }

  /**
   * Does nothing within a lease duration of an outage: leases that expired during it belong to workers that were cut off like us
   * and are about to extend them.
   */
  async sweep(options: SweepOptions): Promise<{ returned: number; dead: number }> {
    const isNamed = (options.workerIds?.length ?? 0) > 0
    if (!isNamed && this.#parts.db.msSinceOutage < this.#leaseMs) return { returned: 0, dead: 0 }
    return await sweep(this.#parts, options)
  }

  async nextDueMs(): Promise<number | undefined> {
    const { db, runId, now, serverNow } = this.#parts
    const [row] = await db.rows<[string | null]>('select sluice.next_due($1, $2)', [runId, serverNow()])
    return row![0] === null ? undefined : now() + Number(row![0])
  }

  async pause(reason: string): Promise<void> {
    await this.#setPause(reason)
  }

  async resume(): Promise<void> {
    await this.#setPause(null)
  }

  async #setPause(reason: string | null): Promise<void> {
    const { db, runId } = this.#parts
    await db.rows('update sluice.run set pause_reason = $2 where run_id = $1', [runId, reason])
  }

  async getMeta(name: string): Promise<string | undefined> {
    const { db, runId } = this.#parts
    const rows = await db.rows<[string]>('select value from sluice.meta where run_id = $1 and name = $2', [runId, name])
    return rows[0]?.[0]
  }

  async setMeta(name: string, value: string): Promise<void> {
    const { db, runId } = this.#parts
    const text = 'insert into sluice.meta values ($1, $2, $3) on conflict (run_id, name) do update set value = $3'
    await db.rows(text, [runId, name, value])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.db.close()
  }
}
