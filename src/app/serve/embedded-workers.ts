/**
 * Workers a server brings along to a fleet's queue: up to so many processes, each on one run, spread over the runs that have work.
 * One that dies or falls silent is replaced with the next look.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Store, StoredRun } from '../../orchestrator/contract.ts'
import { HOPELESS, type WorkerOrders } from './worker-process.ts'

const PROGRAM = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
const LOOK_MS = 1_000
const STOP_MS_MAX = 35_000
/** A run that a worker left by itself, or could not join, is left alone for this long. */
const REST_MS = 5_000
const HOPELESS_MS = 60_000

export interface EmbeddedWorkersOptions {
  store: Store
  /** Processes at most. */
  max: number
  flags: Record<string, unknown>
  say: (level: 'info' | 'warn', message: string) => void
}

interface Worker {
  child: ChildProcess
  runId: string
  id: string | undefined
}

export class EmbeddedWorkers implements AsyncDisposable {
  readonly #options: EmbeddedWorkersOptions
  readonly #workers = new Set<Worker>()
  readonly #restUntilMs = new Map<string, number>()
  readonly #looking: NodeJS.Timeout
  #look: Promise<void> | undefined
  #isStopping = false

  constructor(options: EmbeddedWorkersOptions) {
    this.#options = options
    this.#looking = setInterval(() => void this.look(), LOOK_MS)
  }

  get size(): number {
    return this.#workers.size
  }

  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#options.say('warn', `workers: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  async #lookOnce(): Promise<void> {
    const { store, max } = this.#options
    await this.#killStuck()
    const runs = await store.listRuns({ states: ['running'] })
    for (const id of this.#restUntilMs.keys())
      if (!runs.some((run) => run.record.id === id)) this.#restUntilMs.delete(id)
    const open = runs.filter(({ record }) => performance.now() > (this.#restUntilMs.get(record.id) ?? 0))
    while (!this.#isStopping && this.#workers.size < max) {
      const next = this.#leastStaffed(open)
      if (next === undefined) return
      this.#start(next)
    }
  }

  /** Of the oldest runs, the one with fewest workers of ours; nobody needs two while another has none. */
  #leastStaffed(open: readonly StoredRun[]): StoredRun | undefined {
    const counts = new Map<string, number>()
    for (const { runId } of this.#workers) counts.set(runId, (counts.get(runId) ?? 0) + 1)
    const countOf = (run: StoredRun) => counts.get(run.record.id) ?? 0
    return [...open].reverse().sort((a, b) => countOf(a) - countOf(b))[0]
  }

  #start({ record: { id: runId, source } }: StoredRun): void {
    const child = fork(PROGRAM, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const worker: Worker = { child, runId, id: undefined }
    const orders: WorkerOrders = { scraper: source, runId, flags: this.#options.flags }
    child.send(orders)
    child.once('message', ({ workerId }: { workerId: string }) => {
      worker.id = workerId
    })
    child.once('exit', (code, signal) => this.#onExit(worker, code, signal))
    this.#workers.add(worker)
  }

  #onExit(worker: Worker, code: number | null, signal: NodeJS.Signals | null): void {
    this.#workers.delete(worker)
    const isDead = signal !== null || (code !== 0 && code !== HOPELESS)
    if (isDead && !this.#isStopping)
      this.#options.say(
        'warn',
        `a worker of run ${worker.runId} died (${signal ?? `exit code ${code}`}); it is replaced`,
      )
    if (!isDead) this.#restUntilMs.set(worker.runId, performance.now() + (code === HOPELESS ? HOPELESS_MS : REST_MS))
  }

  /** It lives, and yet gives no sign of life: its loop hangs. What it holds is given to others when it is gone. */
  async #killStuck(): Promise<void> {
    if (this.#workers.size === 0) return
    const stuck = new Set(
      (await this.#options.store.listWorkers()).flatMap(({ id, state }) => (state === 'stuck' ? [id] : [])),
    )
    for (const { id, child, runId } of this.#workers) {
      if (id === undefined || !stuck.has(id)) continue
      this.#options.say('warn', `worker ${id} of run ${runId} is stuck: it is killed, and replaced`)
      child.kill('SIGKILL')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#looking)
    await this.#look
    await Promise.all(
      [...this.#workers].map(async ({ child }) => {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
        await ended
        clearTimeout(timer)
      }),
    )
  }
}
