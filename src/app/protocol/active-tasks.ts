/**
 * The tasks an instance has claimed: each is run, answered, and acknowledged. A task that was lost with earlier workers runs
 * alone, and after the third loss is answered as failed.
 *
 *   entry ──▶ active ──result + acknowledge──▶ done
 *     │         ├─ failed, retryable ──▶ delayed, for any instance
 *     │         └─ lost, or stopped ──▶ the next worker
 *     ├─ lost twice ──▶ suspect ──all others done──▶ active
 *     └─ unreadable ──▶ errors
 */

import { backoffMs } from '../../core/backoff.ts'
import { toScrapeError } from '../../core/errors.ts'
import type { TaskHistory } from '../../protocol/health.ts'
import { MESSAGE_BYTES_MAX, readMessage, type TaskMessage, taskSchema } from '../../protocol/messages.ts'
import { type Entry, entryKey, type Finish, type GroupReader } from '../../protocol/redis-group-reader.ts'
import { refusalText } from '../../protocol/refusal.ts'
import type { HealthReport } from './health-report.ts'
import type { InstanceOptions } from './instance.ts'
import { poisonFinish, resultFinish, retryFinish } from './instance-messages.ts'
import { crawlTask, type TaskOutcome } from './task-crawl.ts'
import { TaskShare } from './task-share.ts'

const RETRY_MS_MAX = 300_000
/** A task that was lost with its worker this often is not given to another one. */
const LOSSES_MAX = 3
/** From here on the task runs alone, so that it cannot take others down with it and the next loss is clearly its own. */
const LOSSES_ALONE = 2

interface Active {
  entry: Entry
  task: TaskMessage
  stop: AbortController
  /** Another worker has the task, or it is being handed back: its outcome is discarded. */
  isGivenUp: boolean
}

interface ActiveTasksParts {
  history: TaskHistory
  pulse: HealthReport
  /** Called when a task ends. */
  onFree: () => void
}

export class ActiveTasks {
  readonly #options: InstanceOptions
  readonly #reader: GroupReader
  readonly #parts: ActiveTasksParts
  readonly #share: TaskShare
  readonly #active = new Map<string, Active>()
  /** Tasks taken over from lost workers, to be run alone. */
  readonly #suspects: Active[] = []
  #isClosed = false

  constructor(options: InstanceOptions, parts: ActiveTasksParts) {
    this.#options = options
    this.#reader = options.reader
    this.#parts = parts
    this.#share = new TaskShare({ concurrency: options.parts.concurrency, tasksMax: options.tasksMax })
  }

  get size(): number {
    return this.#active.size + this.#suspects.length
  }

  /** How many more tasks fit. */
  room(): number {
    const isOneAlone = this.#active.values().some(({ entry }) => isSuspect(entry))
    if (this.#suspects.length > 0 || isOneAlone) return 0
    return this.#share.room({ active: this.#active.size, inFlight: this.#options.parts.chains.inFlight })
  }

  begin(entry: Entry): void {
    const read = readMessage(taskSchema, entry.message, MESSAGE_BYTES_MAX.task)
    const { type } = this.#options
    if (!read.ok) return void this.#refuse(entry, read.reason)
    if (read.value.scraper_type !== type)
      return void this.#refuse(entry, `a task for "${read.value.scraper_type}" on the stream of "${type}"`)
    const active = { entry, task: read.value, stop: new AbortController(), isGivenUp: false }
    if (entry.deliveries > LOSSES_MAX) return void this.#bury(active)
    if (isSuspect(entry)) this.#suspects.push(active)
    else void this.#work(active)
    this.#beginSuspect()
  }

  /** Renews the leases on our tasks, and drops tasks that another worker has taken over. */
  async renew(): Promise<void> {
    for (const entry of await this.#reader.renew()) {
      const active = this.#active.get(entryKey(entry))
      if (active !== undefined) giveUp(active)
      const waiting = this.#suspects.findIndex((suspect) => suspect.entry === entry)
      if (waiting !== -1) this.#suspects.splice(waiting, 1)
    }
  }

  /** Hands back the tasks that have not begun. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#reader.release(this.#suspects.splice(0).map(({ entry }) => entry))
  }

  async handBack(): Promise<void> {
    const left = [...this.#active.values()]
    this.abandon()
    await this.#reader.release(left.map(({ entry }) => entry))
  }

  abandon(): void {
    for (const one of this.#active.values()) giveUp(one)
  }

  #beginSuspect(): void {
    if (this.#active.size > 0 || this.#isClosed) return
    const suspect = this.#suspects.shift()
    if (suspect !== undefined) void this.#work(suspect)
  }

  async #work(active: Active): Promise<void> {
    const { parts, onLog, onTask } = this.#options
    const { entry, task } = active
    const startedMs = performance.now()
    this.#active.set(entryKey(entry), active)
    try {
      const outcome = await crawlTask(task, parts, active.stop.signal)
      if (active.isGivenUp) return
      const ms = performance.now() - startedMs
      const finish = this.#finishOf(task, outcome, ms)
      const isOurs = await this.#reader.finish(entry, finish)
      if (!isOurs) return onLog('warn', `task ${task.task_id} had been given to somebody else: its result is dropped`)
      const { requests_made: requests } = outcome.metadata
      this.#share.learn(requests)
      this.#parts.history.add(outcome.status === 'success' || outcome.status === 'partial')
      const status = finish.retry === undefined ? outcome.status : 'retry'
      onTask({ status, items: outcome.items.length, requests, ms })
    } catch (error) {
      onLog('warn', `task ${task.task_id}: ${toScrapeError(error, 'E_SERVICE').message}; it is left to its lease`)
    } finally {
      this.#active.delete(entryKey(entry))
      this.#beginSuspect()
      this.#parts.onFree()
    }
  }

  #finishOf(task: TaskMessage, outcome: TaskOutcome, ms: number): Finish {
    const { names, type, retryMs, parts } = this.#options
    const { workerId } = parts
    if (!outcome.isWorthAnotherTry || task.retry_count >= task.max_retries)
      return resultFinish({ task, outcome, ms, workerId, memoryMb: this.#parts.pulse.memoryMb() })
    const waitMs = backoffMs(task.retry_count + 1, { delayMsMin: retryMs, delayMsMax: RETRY_MS_MAX })
    return retryFinish({ task, outcome, workerId, waitMs, delayed: names.delayed(type) })
  }

  /** A bad message stops nothing: a copy goes to the error stream, and the next message is read. */
  async #refuse(entry: Entry, reason: string): Promise<void> {
    const { onLog, parts } = this.#options
    onLog('warn', `message ${entry.id} on ${entry.stream} is refused: ${reason}`)
    await this.#reader.finish(entry, { error: refusalText(entry, reason, parts.workerId) }).catch(() => {})
  }

  async #bury({ entry, task }: Active): Promise<void> {
    const finish = poisonFinish(task, entry.deliveries - 1, this.#options.parts.workerId)
    await this.#reader.finish(entry, finish).catch(() => {})
    this.#parts.history.add(false)
  }
}

const isSuspect = ({ deliveries }: Entry) => deliveries > LOSSES_ALONE

function giveUp(active: Active): void {
  active.isGivenUp = true
  active.stop.abort()
}
