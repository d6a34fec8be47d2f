/**
 * The pool of file processes. They start when there is work for them, stay, and are reused.
 *
 *   run ──▶ waiting ──a process has room──▶ in a process ──▶ done · failed
 *                                              └─ it died: E_FILE_WORKER; it is replaced, after ever longer pauses if they
 *                                                 die without a job finished in between
 *
 * A job that must run alone gets its own process, if necessary one more than configured: neither it nor the others wait.
 *
 * The process that owns the pool never touches the bytes of a file: it sends orders and receives results.
 */
import { doubledMs } from '../core/backoff.ts'
import { ScrapeError } from '../core/errors.ts'
import type { FileJob, FilePool, FileRecords, JobHooks, StoredFile } from './contract.ts'
import { PoolProcess, type RunningJob } from './pool-process.ts'
import { SameBytes } from './same-bytes.ts'

export interface FilePoolOptions {
  /** The module that runs in each process (`app/run/file-process.ts`), and its orders. Plain data. */
  entry: string
  orders: unknown
  /** Number of processes. Default 2. */
  workers?: number
  /** Concurrent jobs per process. Default 4: four large files keep one core busy, small ones mostly wait for servers. */
  jobsPerWorker?: number
  findStored: FileRecords['findStored']
  /**
   * Pause before another process is started after two have died without a finished job; doubles. Default 100 ms, at most 30 s.
   */
  restartMsMin?: number
  /** A process that does not end an aborted job within this time is killed. Default 10 s. */
  abortMsMax?: number
  /** A process with jobs that is unresponsive for this long is killed. Default 60 s: a step may take 30 s. */
  silenceMsMax?: number
  /** Called when a process died unexpectedly. */
  onDeath?: (pid: number | undefined, how: string) => void
  /** Added to the environment of the processes, such as credentials of a bucket. Default: none. */
  env?: NodeJS.ProcessEnv
}

/** The owner's flags (bin/sluice) are for a crawl. These suit a small heap: chunks of files are not on it. */
const LEAN = [
  '--disable-warning=ExperimentalWarning',
  '--max-semi-space-size=2',
  '--min-semi-space-size=1',
  '--initial-old-space-size=24',
  '--heap-growing-percent=40',
]
const ABORT_MS_MAX = 10_000
const SILENCE_MS_MAX = 60_000
const RESTART_MS = { min: 100, max: 30_000 }
/** After this many deaths without a finished job in between, processes are no longer replaced. */
const DEATHS_IN_A_ROW_MAX = 10

export interface OpenFilePool extends FilePool {
  /** Ids of the running processes. */
  readonly pids: readonly number[]
}

export function openFilePool(options: FilePoolOptions): OpenFilePool {
  return new Pool(options)
}

class Pool implements OpenFilePool {
  readonly #options: FilePoolOptions
  readonly #same: SameBytes
  readonly #processes = new Set<PoolProcess>()
  #waiting: RunningJob[] = []
  #workers: number
  #jobs = 0
  #deaths = 0
  #startAgain: NodeJS.Timeout | undefined
  #failure: ScrapeError | undefined
  #isClosed = false

  constructor(options: FilePoolOptions) {
    this.#options = options
    this.#workers = options.workers ?? 2
    this.#same = new SameBytes(options.findStored)
  }

  get workers(): number {
    return this.#workers
  }

  get capacity(): number {
    return this.#workers * this.#perWorker
  }

  get busy(): number {
    return this.#waiting.length + [...this.#processes].reduce((sum, { jobs }) => sum + jobs.size, 0)
  }

  get pids(): readonly number[] {
    return [...this.#processes].map(({ pid }) => pid).filter((pid) => pid !== undefined)
  }

  get #perWorker(): number {
    return this.#options.jobsPerWorker ?? 4
  }

  run(job: FileJob, signal: AbortSignal, hooks: JobHooks = {}): Promise<StoredFile> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const onAbort = () => {
        if (!this.#waiting.includes(running)) return // its process answers
        this.#waiting = this.#waiting.filter((other) => other !== running)
        reject(signal.reason)
      }
      const end = (settle: () => void) => {
        signal.removeEventListener('abort', onAbort)
        settle()
      }
      const running: RunningJob = {
        id: ++this.#jobs,
        job,
        hooks,
        signal,
        resolve: (stored) => end(() => resolve(stored)),
        reject: (error) => end(() => reject(error)),
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(running)
      this.#pump()
    })
  }

  resize(workers: number): void {
    this.#workers = Math.max(1, Math.floor(workers))
    const running = this.#active().sort((a, b) => a.jobs.size - b.jobs.size)
    for (const process of running.slice(0, Math.max(0, running.length - this.#workers))) process.retire()
    this.#pump()
  }

  #active(): PoolProcess[] {
    return [...this.#processes].filter(({ isRetired }) => !isRetired)
  }

  /** Assigns waiting jobs to the least busy process. */
  #pump(): void {
    const dead = this.#failure ?? (this.#isClosed ? closed() : undefined)
    if (dead !== undefined) {
      for (const job of this.#waiting.splice(0)) job.reject(dead)
      return
    }
    // Jobs that must run alone and the others do not wait for each other.
    const full = { alone: false, shared: false }
    this.#waiting = this.#waiting.filter((job) => {
      const kind = job.hooks.isAlone === true ? 'alone' : 'shared'
      const process = full[kind] ? undefined : this.#roomFor(job)
      if (process === undefined) full[kind] = true
      else process.start(job)
      return process === undefined
    })
    for (const process of this.#active().slice(this.#workers)) if (process.jobs.size === 0) process.retire()
  }

  #roomFor({ hooks }: RunningJob): PoolProcess | undefined {
    const active = this.#active().sort((a, b) => a.jobs.size - b.jobs.size)
    const least = active.find((process) => !process.isTaken)
    // Start another process before a busy one gets a second job.
    if (least?.jobs.size === 0) return least
    const workersMax = this.#workers + (hooks.isAlone === true ? 1 : 0)
    if (active.length < workersMax && this.#startAgain === undefined) return this.#start()
    if (hooks.isAlone === true || least === undefined) return undefined
    return least.jobs.size < this.#perWorker ? least : undefined
  }

  #start(): PoolProcess {
    const { entry, orders, env, abortMsMax = ABORT_MS_MAX, silenceMsMax = SILENCE_MS_MAX } = this.#options
    const worker: PoolProcess = new PoolProcess({
      entry,
      orders,
      abortMsMax,
      silenceMsMax,
      execArgv: LEAN,
      env: { ...process.env, MALLOC_ARENA_MAX: '1', ...env },
      findStored: (running, sha256, place) => this.#same.find(running, running.job.task.id, sha256, place),
      onSettled: (running, isAnswered, stored) => {
        if (isAnswered) this.#deaths = 0
        this.#same.settle(running, running.job.task.id, stored)
        queueMicrotask(() => this.#pump())
      },
      onExit: (how, isBlamed) => this.#onExit(worker, how, isBlamed),
    })
    this.#processes.add(worker)
    return worker
  }

  #onExit(worker: PoolProcess, how: string, isBlamed: boolean): void {
    this.#processes.delete(worker)
    if (!worker.isRetired && !this.#isClosed) this.#onDeath(worker, how, isBlamed)
    this.#pump()
  }

  #onDeath(worker: PoolProcess, how: string, isBlamed: boolean): void {
    this.#options.onDeath?.(worker.pid, how)
    if (isBlamed) return // a job known to kill its process: it uses up its tries
    this.#deaths++
    if (this.#deaths >= DEATHS_IN_A_ROW_MAX)
      this.#failure = new ScrapeError('E_WORKERS_DIE', `file processes died ${this.#deaths} times in a row (${how})`)
    else if (this.#deaths > 1) {
      const { restartMsMin = RESTART_MS.min } = this.#options
      this.#startLater(doubledMs(this.#deaths - 1, { delayMsMin: restartMsMin, delayMsMax: RESTART_MS.max }))
    }
  }

  #startLater(ms: number): void {
    clearTimeout(this.#startAgain)
    this.#startAgain = setTimeout(() => {
      this.#startAgain = undefined
      this.#pump()
    }, ms)
  }

  /** Draining jobs is up to the loop; jobs still running when the pool is disposed of are cancelled, and their parts kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#startAgain)
    this.#pump()
    const all = [...this.#processes]
    for (const process of all) process.retire()
    for (const process of all) if (process.jobs.size > 0) process.kill()
    await Promise.all(all.map(({ exited }) => exited))
  }
}

function closed(): ScrapeError {
  return new ScrapeError('E_FILE_WORKER', 'the pool of file processes is closed', { retryAfterMs: 0 })
}
