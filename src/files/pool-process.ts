/** One process of the pool as the pool sees it: jobs go in, results come out, and if it dies all its jobs end. */

import { type Child, startChild } from '../core/child.ts'
import { ScrapeError } from '../core/errors.ts'
import { every } from '../core/every.ts'
import type { FileJob, JobHooks, StoredFile } from './contract.ts'
import { type FromWorker, fromSentError, type Question, type ToWorker, toSentError } from './messages.ts'

interface ProcessOptions {
  /** The module that runs in the process. */
  entry: string
  /** Passed to that module. Plain data. */
  orders: unknown
  execArgv: readonly string[]
  env: NodeJS.ProcessEnv
  /** If an aborted job is not confirmed within this time, its process is stuck. */
  abortMsMax: number
  /** A process that has jobs and gives no answer for this long, not even to a ping, is in an endless loop. */
  silenceMsMax: number
  findStored(job: RunningJob, sha256: string, place: string): Promise<string | undefined>
  /** `isAnswered`: reported by the process itself; otherwise it died. */
  onSettled(job: RunningJob, isAnswered: boolean, stored?: StoredFile): void
  /** The process is gone. `isBlamed`: a job that was alone in it is to blame, not the process. */
  onExit(how: string, isBlamed: boolean): void
}

export interface RunningJob {
  readonly id: number
  readonly job: FileJob
  readonly hooks: JobHooks
  readonly signal: AbortSignal
  resolve(stored: StoredFile): void
  reject(error: unknown): void
}

/** How long an idle process may take to exit. */
const EXIT_MS_MAX = 5000
/** Maximum number of unanswered pings. Counted, not timed: an owner that was suspended itself must read the answers first. */
const PINGS_MAX = 4

export class PoolProcess {
  readonly jobs = new Map<number, RunningJob>()
  /** Takes no more jobs, and ends after its last. */
  isRetired = false
  readonly exited: Promise<void>
  readonly #child: Child<ToWorker>
  readonly #options: ProcessOptions
  readonly #aborts = new Map<number, () => void>()
  readonly #pinging: NodeJS.Timeout
  #pings = 0
  #isReady = false
  #isDismissed = false
  #broken: ScrapeError | undefined

  constructor(options: ProcessOptions) {
    this.#options = options
    const { entry, env, execArgv, orders } = options
    const onMessage = (message: FromWorker) => this.#onMessage(message)
    this.#child = startChild(entry, { env, execArgv: [...execArgv], onMessage })
    this.exited = this.#child.ended.then(({ how }) => this.#onGone(how))
    this.#child.send({ kind: 'open', orders })
    this.#pinging = every(() => this.#ping(), options.silenceMsMax / PINGS_MAX)
    this.#pinging.unref()
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** It has a job that must run alone. */
  get isTaken(): boolean {
    return [...this.jobs.values()].some(({ hooks }) => hooks.isAlone === true)
  }

  start(running: RunningJob): void {
    const { id, job, signal } = running
    this.jobs.set(id, running)
    let stuck: NodeJS.Timeout | undefined
    const onAbort = () => {
      this.#child.send({ kind: 'abort', id })
      stuck = setTimeout(() => this.kill(), this.#options.abortMsMax)
    }
    this.#aborts.set(id, () => {
      clearTimeout(stuck)
      signal.removeEventListener('abort', onAbort)
    })
    signal.addEventListener('abort', onAbort, { once: true })
    this.#child.send({ kind: 'job', id, job })
  }

  retire(): void {
    this.isRetired = true
    if (this.jobs.size > 0 || this.#isDismissed) return
    this.#isDismissed = true
    this.#child.disconnect() // which the process takes as the signal to end
    void this.#child.endsWithin(EXIT_MS_MAX)
  }

  kill(): void {
    this.#child.kill()
  }

  #ping(): void {
    if (this.jobs.size === 0) this.#pings = 0
    else if (this.#pings++ < PINGS_MAX) this.#child.send({ kind: 'ping' })
    else this.kill()
  }

  #onMessage(message: FromWorker): void {
    this.#pings = 0
    switch (message.kind) {
      case 'ready':
        this.#isReady = true
        break
      case 'pong':
        break
      case 'received':
        this.jobs.get(message.id)?.hooks.onReceived?.()
        break
      case 'broken':
        this.#broken = fromSentError(message.error)
        break
      case 'ask':
        void this.#answer(message.ask, message.id, message.question)
        break
      case 'done':
        this.#settle(message.id, true, (job) => job.resolve(message.stored), message.stored)
        break
      case 'failed':
        this.#settle(message.id, true, ({ signal, reject }) =>
          reject(signal.aborted ? signal.reason : fromSentError(message.error)),
        )
        break
      default:
        message satisfies never
    }
  }

  async #answer(ask: number, id: number, question: Question): Promise<void> {
    const job = this.jobs.get(id)
    if (job === undefined) return
    try {
      let value: string | undefined
      if (question.what === 'redirect') await job.hooks.onRedirect?.(question.url)
      else if (question.what === 'store') await job.hooks.beforeStore?.()
      else value = await this.#options.findStored(job, question.sha256, question.place)
      this.#child.send({ kind: 'answer', ask, value })
    } catch (error) {
      this.#child.send({ kind: 'answer', ask, error: toSentError(error) })
    }
  }

  #settle(id: number, isAnswered: boolean, settle: (job: RunningJob) => void, stored?: StoredFile): void {
    const job = this.jobs.get(id)
    if (job === undefined) return
    this.jobs.delete(id)
    this.#aborts.get(id)?.()
    this.#aborts.delete(id)
    this.#options.onSettled(job, isAnswered, stored)
    settle(job)
    if (this.isRetired) this.retire()
  }

  #onGone(how: string): void {
    clearInterval(this.#pinging)
    const isShared = this.jobs.size > 1
    const isBlamed = this.#isReady && this.isTaken
    for (const id of [...this.jobs.keys()])
      this.#settle(id, false, (job) => job.reject(this.#deathOf(job, how, isShared)))
    this.#options.onExit(how, isBlamed)
  }

  /** Any of several jobs may be to blame: they are retried at once, at no cost, and then alone. */
  #deathOf(job: RunningJob, how: string, isShared: boolean): unknown {
    if (job.signal.aborted) return job.signal.reason
    if (this.#broken !== undefined) return this.#broken
    const message = `the process that worked on ${job.job.task.url} died (${how})`
    return new ScrapeError('E_FILE_WORKER', message, isShared ? { retryAfterMs: 0 } : {})
  }
}
