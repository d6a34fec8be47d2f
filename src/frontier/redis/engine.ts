/**
 * The ledger in Redis as a frontier: every change is one Lua script. With ready queues inside Redis it is a complete engine; with
 * another transport, only the delivery of ready tasks to workers differs.
 */
import { every } from '../../core/every.ts'
import type { NewTask } from '../../core/task.ts'
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
import { createCommit, createExtend } from './commit.ts'
import { createDead } from './dead.ts'
import { createItems } from './items.ts'
import { Link, type LinkOptions } from './link.ts'
import { getMeta, setMeta, setPause } from './meta.ts'
import { dropRun, expireRun, KEEP_MS, openEpoch, refuseEviction, touchRun } from './runs.ts'
import { readNextDueMs, readStats } from './stats.ts'
import { createSweep } from './sweep.ts'
import { type ReadyTransport, redisTransport } from './transport.ts'

export interface RedisFrontierOptions extends FrontierOptions, LinkOptions {
  /** Runs in one Redis are isolated from each other. Default `default`. */
  runId?: string
  /** How long the keys of a finished run are kept. Default 7 days. */
  keepMs?: number
}

/** How often the run is marked as in use. */
const TOUCH_MS = 3_600_000

export async function openRedisFrontier(url: string, options: RedisFrontierOptions = {}): Promise<Frontier> {
  const link = await openLedger(url, options)
  return new LedgerFrontier({ engine: 'redis:', link, transport: redisTransport(link), options })
}

/** A connection to the ledger of a run, which is emptied first if `fresh`. */
export async function openLedger(url: string, options: RedisFrontierOptions): Promise<Link> {
  const link = new Link(url, options.runId ?? 'default', options)
  try {
    await link.attempt(() => refuseEviction(link))
    if (options.fresh === true) await link.attempt(() => dropRun(link))
    const { isEnding } = await openEpoch(link, { mustExist: options.mustExist === true })
    await link.attempt(async () => {
      if (isEnding) await expireRun(link, 0)
      await touchRun(link)
    })
    return link
  } catch (error) {
    link.close()
    throw error
  }
}

interface LedgerParts {
  engine: string
  link: Link
  transport: ReadyTransport
  options: Pick<RedisFrontierOptions, 'keepMs' | 'onWarning'>
}

export class LedgerFrontier implements Frontier {
  readonly engine: string
  readonly can = { durable: true, shared: true }
  readonly dead: DeadLetters
  readonly items: ItemLog
  readonly commit: (outcomes: readonly Outcome[]) => Promise<Committed>
  readonly extend: (leases: readonly Lease[], leaseMs: number) => Promise<{ lost: Lease[] }>
  readonly sweep: (options: SweepOptions) => Promise<{ returned: number; dead: number }>

  readonly #link: Link
  readonly #transport: ReadyTransport
  readonly #keepMs: number
  readonly #admission = new Admission()
  readonly #touch: NodeJS.Timeout
  readonly #warn: (message: string) => void
  #hasToldOfStrays = false
  #closed: Promise<void> | undefined

  constructor(parts: LedgerParts) {
    const { engine, link, transport, options } = parts
    const { keepMs = KEEP_MS.finished, onWarning = () => {} } = options
    this.#warn = onWarning
    this.engine = engine
    this.#link = link
    this.#transport = transport
    this.#keepMs = keepMs
    link.onLost(() => this.#admission.forget())
    this.dead = createDead(link, () => transport.fed())
    this.items = createItems(link)
    const extend = createExtend(link)
    this.extend = async (leases, leaseMs) => {
      const { lost } = await extend(leases, leaseMs)
      transport.over(lost)
      return { lost }
    }
    this.sweep = createSweep(link, (letters) => transport.died(letters))
    const commit = createCommit(link, this.#admission)
    this.commit = async (outcomes) => {
      const committed = await commit(outcomes)
      const isStale = new Set(committed.stale)
      transport.over(outcomes.map((outcome) => (isStale.has(outcome.lease) ? outcome.lease : outcome)))
      return committed
    }
    this.#touch = every(() => this.#stayAlive().catch(() => {}), TOUCH_MS)
    this.#touch.unref()
  }

  async add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<Added> {
    const total: Added = { added: 0, seen: 0 }
    for await (const chunk of chunksOf(tasks)) {
      const [added] = await this.#link.run<[number]>(ADD, {
        op: this.#link.nextOp(),
        hasAnswer: true,
        args: () => this.#admission.argsOf(chunk),
      })
      this.#admission.remember(chunk)
      total.added += added
      total.seen += chunk.length - added
      if (added > 0) this.#transport.fed()
    }
    return total
  }

  claim(request: ClaimRequest): Promise<Lease[]> {
    return this.#transport.claim(request)
  }

  /** A run is not over until messages from other programs have been read. */
  async stats(): Promise<FrontierStats> {
    const stats = await readStats(this.#link, (count) => this.#tellOfStrays(count))
    if (stats.remaining > 0) return stats
    await this.#transport.readToEnd()
    return await readStats(this.#link)
  }

  /** Once for each handle on the run. */
  #tellOfStrays(count: number): void {
    if (this.#hasToldOfStrays) return
    this.#hasToldOfStrays = true
    this.#warn(
      `${count} ${count === 1 ? 'entry' : 'entries'} under ${this.#link.prefix} in Redis at ${this.#link.place} cannot be read and ${count === 1 ? 'was' : 'were'} skipped; another program seems to write there`,
    )
  }

  nextDueMs(): Promise<number | undefined> {
    return readNextDueMs(this.#link)
  }

  pause(reason: string): Promise<void> {
    return setPause(this.#link, reason)
  }

  resume(): Promise<void> {
    return setPause(this.#link, undefined)
  }

  getMeta(name: string): Promise<string | undefined> {
    return getMeta(this.#link, name)
  }

  setMeta(name: string, value: string): Promise<void> {
    return setMeta(this.#link, name, value)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    clearInterval(this.#touch)
    const isFinished = await this.#isFinished()
    await this.#transport.close({ isFinished })
    // A finished run expires. If it is opened again it stays; the next process that opens it does what an outage prevented.
    if (isFinished) await expireRun(this.#link, this.#keepMs).catch(() => {})
    this.#link.close()
  }

  /** Another process may have closed the run when nothing was left and set it to expire, and then we found more to do. */
  async #stayAlive(): Promise<void> {
    await touchRun(this.#link)
    const { isEnding } = await openEpoch(this.#link, { mustExist: true })
    if (isEnding && !(await this.#isFinished())) await expireRun(this.#link, 0)
  }

  async #isFinished(): Promise<boolean> {
    try {
      return this.#link.redis.status === 'ready' && (await this.stats()).remaining === 0
    } catch {
      return false
    }
  }
}
