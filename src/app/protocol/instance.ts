/**
 * One worker instance of the task protocol: claims tasks of one type, receives commands, and reports its health. Several tasks at
 * a time share one fetch chain.
 *
 *   working ──pause──▶ paused ──resume──▶ working
 *      └─ drain: finishes tasks in progress · stop: hands them back ──▶ ended
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { TaskHistory } from '../../protocol/health.ts'
import type { GroupReader } from '../../protocol/redis-group-reader.ts'
import { PROMOTE } from '../../protocol/redis-lua.ts'
import { HEALTH_KEPT, type StreamNames } from '../../protocol/streams.ts'
import { ActiveTasks } from './active-tasks.ts'
import { CommandReader } from './command-reader.ts'
import { HealthReport } from './health-report.ts'
import { repeat } from './repeat.ts'
import type { TaskCrawlParts } from './task-crawl.ts'

export interface InstanceOptions {
  type: string
  names: StreamNames
  reader: GroupReader
  /** For every crawl; `concurrency` is the limit of requests in flight for the whole instance. */
  parts: TaskCrawlParts
  tasksMax: number
  leaseMs: number
  healthMs: number
  /** How long a drain waits for tasks in progress. */
  drainMs: number
  /** Upper bound of the wait before the first retry of a task; doubles each time. */
  retryMs: number
  onLog: (level: 'info' | 'warn', message: string) => void
  onTask: (end: TaskEnd) => void
  /** Redis has just answered; called about every second. */
  onAnswer?: () => void
}

export interface TaskEnd {
  status: string
  items: number
  requests: number
  ms: number
}

/** How the work ended: `stop` hands tasks back, `drain` finishes them first. */
export type StopWord = 'stop' | 'drain'

const BLOCK_MS = 1_000
const LOOK_AGAIN_MS = 50
const TEND_MS = 1_000
const TRIM_EVERY_MS = 10_000
const PROMOTED_AT_ONCE = 100
/** How long a stop may take; tasks still running then are abandoned. */
const GRACE_MS = 3_000

export class Instance {
  readonly #options: InstanceOptions
  readonly #reader: GroupReader
  readonly #ear: CommandReader
  readonly #pulse: HealthReport
  readonly #desk: ActiveTasks
  #isPaused = false
  #stopWord: StopWord | undefined
  readonly #ending = Promise.withResolvers<void>()
  #wake: (() => void) | undefined
  #lastTrimMs = 0

  constructor(options: InstanceOptions) {
    const history = new TaskHistory()
    this.#options = options
    this.#reader = options.reader
    this.#ear = new CommandReader(options.reader, options.names, {
      workerId: options.parts.workerId,
      type: options.type,
      onRefused: (id, reason) => options.onLog('warn', `command ${id} is refused: ${reason}`),
    })
    this.#pulse = new HealthReport(options, history)
    this.#desk = new ActiveTasks(options, { history, pulse: this.#pulse, onFree: () => this.#wake?.() })
  }

  /** Runs until stopped, by the signal or by a command. */
  async run(stop: AbortSignal): Promise<StopWord> {
    const onStop = () => this.#end('drain')
    stop.addEventListener('abort', onStop, { once: true })
    if (stop.aborted) onStop()
    using timers = new DisposableStack()
    const left = timers.adopt(new AbortController(), (controller) => controller.abort())
    try {
      await Promise.race([this.#work(timers), this.#untilOverdue(left.signal)])
      return this.#stopWord ?? 'drain'
    } finally {
      stop.removeEventListener('abort', onStop)
      this.#desk.abandon()
    }
  }

  async #work(timers: DisposableStack): Promise<void> {
    await this.#reader.open()
    await this.#ear.open()
    if (timers.disposed) return
    const { promise: failed, reject } = Promise.withResolvers<never>()
    timers.defer(repeat(() => this.#tend(), TEND_MS, reject))
    timers.defer(repeat(() => this.#desk.renew(), this.#options.leaseMs / 3, reject))
    timers.defer(repeat(() => this.#report(), this.#options.healthMs, reject))
    await this.#report()
    await this.#tend() // tasks left behind by other workers come before new ones
    await Promise.race([this.#claimLoop(), failed])
    await this.#drain()
    await this.#report()
  }

  /** Gives up even while Redis is down: tasks that could not be handed back are taken over once their lease expires. */
  async #untilOverdue(left: AbortSignal): Promise<void> {
    const pause = (ms: number) => sleep(ms, undefined, { signal: left })
    await this.#ending.promise
    const endMs = performance.now() + this.#options.drainMs
    while (this.#desk.size > 0 && this.#stopWord === 'drain' && performance.now() < endMs) await pause(LOOK_AGAIN_MS)
    if (!this.#reader.isAway) await pause(BLOCK_MS + GRACE_MS)
    if (this.#desk.size > 0) this.#options.onLog('warn', 'Redis is away: what is held is left to its lease')
  }

  #end(word: StopWord): void {
    if (this.#stopWord !== 'stop') this.#stopWord = word
    this.#ending.resolve()
    this.#wake?.()
  }

  async #claimLoop(): Promise<void> {
    while (this.#stopWord === undefined) {
      const room = this.#room()
      if (room === 0) await this.#untilWoken()
      else {
        const entries = await this.#reader.read(room, BLOCK_MS)
        if (this.#stopWord === undefined && !this.#isPaused) for (const entry of entries) this.#desk.begin(entry)
        else await this.#reader.release(entries)
      }
    }
  }

  #room(): number {
    return this.#isPaused ? 0 : this.#desk.room()
  }

  /** Waits until a task ends, or for a moment, since a chain that becomes free does not notify anyone. */
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

  /** Less urgent work: commands, delayed tasks that are due, tasks of dead workers, and cleanup. */
  async #tend(): Promise<void> {
    const { names, type } = this.#options
    for (const command of await this.#ear.hear()) await this.#obey(command)
    this.#options.onAnswer?.()
    if (this.#stopWord !== undefined) return
    await this.#reader.run(PROMOTE, [names.delayed(type), names.tasks(type)[1], PROMOTED_AT_ONCE])
    const room = this.#room()
    if (room > 0) for (const entry of await this.#reader.takeOver(room)) this.#desk.begin(entry)
    if (performance.now() - this.#lastTrimMs < TRIM_EVERY_MS) return
    this.#lastTrimMs = performance.now()
    await this.#reader.trim(0)
  }

  async #obey(command: string): Promise<void> {
    this.#options.onLog('info', `command: ${command}`)
    if (command === 'pause' || command === 'resume') this.#isPaused = command === 'pause'
    if (command === 'drain' || command === 'stop') this.#end(command)
    await this.#report()
  }

  async #report(): Promise<void> {
    const { names } = this.#options
    const health = this.#pulse.take({ active: this.#desk.size, isPaused: this.#isPaused })
    await this.#reader.call('XADD', names.health, 'MAXLEN', '~', HEALTH_KEPT, '*', 'message', JSON.stringify(health))
  }

  /** Tasks in progress get the drain time, unless told to stop; the rest is handed back at once. */
  async #drain(): Promise<void> {
    await this.#desk.close()
    const endMs = performance.now() + this.#options.drainMs
    while (this.#desk.size > 0 && this.#stopWord === 'drain' && performance.now() < endMs) await this.#untilWoken()
    await this.#desk.handBack()
    const givenUpAtMs = performance.now() + GRACE_MS
    while (this.#desk.size > 0 && performance.now() < givenUpAtMs) await this.#untilWoken()
  }
}
