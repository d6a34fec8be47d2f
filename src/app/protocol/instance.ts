/**
 * One instance of a worker of the task protocol: claims tasks of one type, runs each as a small crawl, answers, and tells how it
 * is. Several tasks at a time share one fetch chain.
 *
 *   stream ──read / take over──▶ active ──result + acknowledge──▶ done
 *                                  ├─ failed, may pass ──▶ delayed, for any instance
 *                                  └─ stop: handed back ──▶ the next one
 */
import { toScrapeError } from '../../core/errors.ts'
import { backoffMs } from '../../crawl/backoff.ts'
import { TaskHistory } from '../../protocol/health.ts'
import { MESSAGE_BYTES_MAX, readMessage, type TaskMessage, taskSchema } from '../../protocol/messages.ts'
import { type Entry, entryKey, type Finish, type GroupReader } from '../../protocol/redis/group-reader.ts'
import { PROMOTE } from '../../protocol/redis/lua.ts'
import { refusalText } from '../../protocol/refusal.ts'
import { HEALTH_KEPT, type StreamNames } from '../../protocol/streams.ts'
import { CommandEar } from './command-ear.ts'
import { poisonFinish, resultFinish, retryFinish } from './instance-messages.ts'
import { Pulse } from './pulse.ts'
import { repeat } from './repeat.ts'
import { crawlTask, type TaskCrawlParts, type TaskOutcome } from './task-crawl.ts'
import { TaskShare } from './task-share.ts'

export interface InstanceOptions {
  type: string
  names: StreamNames
  reader: GroupReader
  /** Of every crawl; `concurrency` is what the instance has in flight in all. */
  parts: TaskCrawlParts
  tasksMax: number
  leaseMs: number
  healthMs: number
  /** How long a drain waits for tasks that are begun. */
  drainMs: number
  /** Ceiling of the wait before the first retry of a task; doubles each time. */
  retryMs: number
  onLog: (level: 'info' | 'warn', message: string) => void
  onTask: (end: TaskEnd) => void
}

export interface TaskEnd {
  status: string
  items: number
  requests: number
  ms: number
}

/** How the work came to its end: `stop` hands tasks back, `drain` finishes them first. */
export type StopWord = 'stop' | 'drain'

const BLOCK_MS = 1_000
const LOOK_AGAIN_MS = 50
const TEND_MS = 1_000
const RETRY_MS_MAX = 300_000
const PROMOTED_AT_ONCE = 100
/** A task that took its workers along so often is not given to another one. */
const LOSSES_MAX = 3
/** From here on it runs with nothing beside it: others must not be taken along again, and the next loss is its own. */
const LOSSES_ALONE = 2
/** Tries of a stop; what is still going on then is abandoned. */
const GRACE_MS = 3_000

interface Active {
  entry: Entry
  task: TaskMessage
  stop: AbortController
  /** Somebody else has it, or it goes back: its outcome is nobody's. */
  isGivenUp: boolean
}

export class Instance {
  readonly #options: InstanceOptions
  readonly #reader: GroupReader
  readonly #history = new TaskHistory()
  readonly #ear: CommandEar
  readonly #pulse: Pulse
  readonly #share: TaskShare
  readonly #active = new Map<string, Active>()
  /** Taken over, and to be run alone. */
  readonly #suspects: Active[] = []
  #isPaused = false
  #stopWord: StopWord | undefined
  #wake: (() => void) | undefined
  #lastTrimMs = 0

  constructor(options: InstanceOptions) {
    this.#options = options
    this.#reader = options.reader
    this.#ear = new CommandEar(options.reader, options.names, { workerId: options.parts.workerId, type: options.type })
    this.#pulse = new Pulse(options, this.#history)
    this.#share = new TaskShare({ concurrency: options.parts.concurrency, tasksMax: options.tasksMax })
  }

  /** Until it is stopped, by the signal or by a command. */
  async run(stop: AbortSignal): Promise<StopWord> {
    await this.#reader.open()
    await this.#ear.open()
    const onStop = () => this.#end('drain')
    stop.addEventListener('abort', onStop, { once: true })
    if (stop.aborted) onStop()
    const { promise: failed, reject } = Promise.withResolvers<never>()
    const timers = [
      repeat(() => this.#tend(), TEND_MS, reject),
      repeat(() => this.#renew(), this.#options.leaseMs / 3, reject),
      repeat(() => this.#report(), this.#options.healthMs, reject),
    ]
    try {
      await this.#report()
      await this.#tend() // what others left behind comes before what is new
      await Promise.race([this.#claimLoop(), failed])
      await this.#drain()
      await this.#report()
      return this.#stopWord ?? 'drain'
    } finally {
      stop.removeEventListener('abort', onStop)
      for (const end of timers) end()
      for (const one of this.#active.values()) this.#giveUp(one)
    }
  }

  #end(word: StopWord): void {
    if (this.#stopWord !== 'stop') this.#stopWord = word
    this.#wake?.()
  }

  async #claimLoop(): Promise<void> {
    while (this.#stopWord === undefined) {
      const room = this.#room()
      if (room === 0) await this.#untilWoken()
      else {
        const entries = await this.#reader.read(room, BLOCK_MS)
        if (this.#stopWord === undefined && !this.#isPaused) for (const entry of entries) this.#begin(entry)
        else await this.#reader.release(entries)
      }
    }
  }

  #room(): number {
    if (this.#isPaused || this.#suspects.length > 0 || this.#isAlone()) return 0
    return this.#share.room({ active: this.#active.size, inFlight: this.#options.parts.chains.inFlight })
  }

  #isAlone(): boolean {
    return this.#active.values().some(({ entry }) => isSuspect(entry))
  }

  /** Something ended; or a moment, since a chain that is free tells nobody. */
  async #untilWoken(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LOOK_AGAIN_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }

  #begin(entry: Entry): void {
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

  #beginSuspect(): void {
    if (this.#active.size > 0 || this.#stopWord !== undefined) return
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
      this.#share.learn(outcome.metadata.requests_made)
      this.#history.add(outcome.status === 'success' || outcome.status === 'partial')
      onTask({
        status: finish.retry === undefined ? outcome.status : 'retry',
        items: outcome.items.length,
        requests: outcome.metadata.requests_made,
        ms,
      })
    } catch (error) {
      onLog('warn', `task ${task.task_id}: ${toScrapeError(error, 'E_SERVICE').message}; it is left to its lease`)
    } finally {
      this.#active.delete(entryKey(entry))
      this.#beginSuspect()
      this.#wake?.()
    }
  }

  #finishOf(task: TaskMessage, outcome: TaskOutcome, ms: number): Finish {
    const { names, type, retryMs, parts } = this.#options
    const { workerId } = parts
    if (!outcome.isWorthAnotherTry || task.retry_count >= task.max_retries)
      return resultFinish({ task, outcome, ms, workerId, memoryMb: this.#pulse.memoryMb() })
    const waitMs = backoffMs(task.retry_count + 1, { delayMsMin: retryMs, delayMsMax: RETRY_MS_MAX })
    return retryFinish({ task, error: outcome.error!, workerId, waitMs, delayed: names.delayed(type) })
  }

  /** Hurts nobody: its copy is on the stream of errors, and the next message is read. */
  async #refuse(entry: Entry, reason: string): Promise<void> {
    const { onLog, parts } = this.#options
    onLog('warn', `message ${entry.id} on ${entry.stream} is refused: ${reason}`)
    await this.#reader.finish(entry, { error: refusalText(entry, reason, parts.workerId) }).catch(() => {})
  }

  async #bury({ entry, task }: Active): Promise<void> {
    const finish = poisonFinish(task, entry.deliveries - 1, this.#options.parts.workerId)
    await this.#reader.finish(entry, finish).catch(() => {})
    this.#history.add(false)
  }

  /** What needs no hurry: commands, tasks whose time has come, tasks of dead workers, what may be removed. */
  async #tend(): Promise<void> {
    const { names, type } = this.#options
    for (const command of await this.#ear.hear()) await this.#obey(command)
    if (this.#stopWord !== undefined) return
    await this.#reader.run(PROMOTE, [names.delayed(type), names.tasks(type)[1], PROMOTED_AT_ONCE])
    const room = this.#room()
    if (room > 0) for (const entry of await this.#reader.takeOver(room)) this.#begin(entry)
    if (performance.now() - this.#lastTrimMs < 10 * TEND_MS) return
    this.#lastTrimMs = performance.now()
    await this.#reader.trim(0)
  }

  async #obey(command: string): Promise<void> {
    this.#options.onLog('info', `command: ${command}`)
    if (command === 'pause' || command === 'resume') this.#isPaused = command === 'pause'
    if (command === 'drain' || command === 'stop') this.#end(command)
    await this.#report()
  }

  async #renew(): Promise<void> {
    for (const entry of await this.#reader.renew()) {
      const active = this.#active.get(entryKey(entry))
      if (active !== undefined) this.#giveUp(active)
      const waiting = this.#suspects.findIndex((suspect) => suspect.entry === entry)
      if (waiting !== -1) this.#suspects.splice(waiting, 1)
    }
  }

  #giveUp(active: Active): void {
    active.isGivenUp = true
    active.stop.abort()
  }

  async #report(): Promise<void> {
    const { names } = this.#options
    const health = this.#pulse.take({ active: this.#active.size + this.#suspects.length, isPaused: this.#isPaused })
    await this.#reader.call('XADD', names.health, 'MAXLEN', '~', HEALTH_KEPT, '*', 'message', JSON.stringify(health))
  }

  /** Tasks that are begun get their time, unless told to stop; the rest goes back at once. */
  async #drain(): Promise<void> {
    await this.#reader.release(this.#suspects.splice(0).map(({ entry }) => entry))
    const { drainMs } = this.#options
    const endMs = performance.now() + drainMs
    while (this.#active.size > 0 && this.#stopWord === 'drain' && performance.now() < endMs) await this.#untilWoken()
    const left = [...this.#active.values()]
    for (const one of left) this.#giveUp(one)
    await this.#reader.release(left.map(({ entry }) => entry))
    const givenUpAtMs = performance.now() + GRACE_MS
    while (this.#active.size > 0 && performance.now() < givenUpAtMs) await this.#untilWoken()
  }
}

const isSuspect = ({ deliveries }: Entry) => deliveries > LOSSES_ALONE
