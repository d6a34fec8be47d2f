/**
 * Workers that a server adds to a fleet's queue: a limited number of processes, each on one run, spread over the runs with work.
 * A worker that dies or hangs is replaced at the next look; if runs wait without a worker, others give up theirs in turn.
 */

import { type Child, type ChildEnd, startChild } from '../../../core/child.ts'
import { every } from '../../../core/every.ts'
import type { Store, StoredRun } from '../../../store/contract.ts'
import { RunRotation } from '../../fleet/run-rotation.ts'
import { countByRun, toRelieve } from '../../fleet/worker-shares.ts'
import { HOPELESS, type WorkerOrders } from './embedded-worker.ts'

const PROGRAM = new URL('./embedded-worker.ts', import.meta.url)
const LOOK_MS = 1_000
const STOP_MS_MAX = 35_000
/** Maximum number of runs asked for work in one look. */
const ASKED_MAX = 20
const RUNS_MAX = 1000

interface EmbeddedWorkersOptions {
  store: Store
  /** Maximum number of processes. */
  max: number
  flags: Record<string, unknown>
  /** Where the workers are: runs for other regions are ignored. */
  region: string | undefined
  /** False for a paused run: a worker would only wait there. */
  hasWork: (runId: string) => Promise<boolean>
  say: (level: 'info' | 'warn', message: string) => void
}

interface Worker {
  child: Child<WorkerOrders>
  runId: string
  id: string | undefined
  startedAtMs: number
  isLeaving: boolean
}

export class EmbeddedWorkers implements AsyncDisposable {
  readonly #options: EmbeddedWorkersOptions
  readonly #workers = new Set<Worker>()
  readonly #turns = new RunRotation(() => performance.now())
  readonly #looking: NodeJS.Timeout
  #look: Promise<void> | undefined
  #isStopping = false

  constructor(options: EmbeddedWorkersOptions) {
    this.#options = options
    this.#looking = every(() => this.look(), LOOK_MS)
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
    const { store, max, region } = this.#options
    await this.#killStuck()
    const found = await store.listRuns({ states: ['running'], limit: RUNS_MAX, openTo: { region } })
    const working = await this.#workersByRun()
    const open = this.#turns.open(found)
    const needy = this.#turns.inOrder(open.keys(), working).slice(0, ASKED_MAX)
    if (this.#workers.size >= max) return await this.#relieve(needy.filter((id) => !working.has(id)))
    const withWork = await this.#withWork(needy)
    while (!this.#isStopping && this.#workers.size < max) {
      const [next] = this.#turns.inOrder(withWork, working)
      if (next === undefined) return
      this.#start(open.get(next)!)
      working.set(next, (working.get(next) ?? 0) + 1)
    }
  }

  /** Includes workers of other servers: a run that another server works on is not waiting. */
  async #workersByRun(): Promise<Map<string, number>> {
    const own = new Set([...this.#workers].map(({ id }) => id))
    const others = (await this.#options.store.listWorkers({ isAlive: true }))
      .filter(({ id, state }) => state === 'working' && !own.has(id))
      .map(({ runId }) => ({ runId, isLeaving: false }))
    return countByRun([...this.#workers, ...others])
  }

  async #withWork(runIds: readonly string[]): Promise<string[]> {
    const answers = await Promise.all(runIds.map((id) => this.#options.hasWork(id).catch(() => false)))
    for (const id of runIds.filter((_, i) => !answers[i])) this.#turns.idle(id) // so that others are asked next
    return runIds.filter((_, i) => answers[i])
  }

  /** The workers finish their tasks, and a later look reassigns their places. */
  async #relieve(waiting: readonly string[]): Promise<void> {
    if (waiting.length === 0) return
    const { length } = await this.#withWork(waiting)
    for (const worker of toRelieve([...this.#workers], length, performance.now()))
      if (worker.id !== undefined) worker.isLeaving = await this.#options.store.askDrain(worker.id)
  }

  #start({ record: { id: runId, source } }: StoredRun): void {
    const child = startChild<WorkerOrders, { workerId: string }>(PROGRAM, {
      isHeard: false,
      onMessage({ workerId }) {
        worker.id = workerId
      },
    })
    const startedAtMs = performance.now()
    const worker: Worker = { child, runId, id: undefined, startedAtMs, isLeaving: false }
    this.#turns.served(runId)
    child.send({ scraper: source, runId, flags: this.#options.flags })
    void child.ended.then((end) => this.#onEnd(worker, end))
    this.#workers.add(worker)
  }

  #onEnd(worker: Worker, { how, code }: ChildEnd): void {
    this.#workers.delete(worker)
    const isDead = code !== 0 && code !== HOPELESS
    if (isDead && !this.#isStopping)
      this.#options.say('warn', `a worker of run ${worker.runId} died (${how}); it is replaced`)
    if (isDead || worker.isLeaving) return
    if (code === HOPELESS) this.#turns.hopeless(worker.runId)
    else this.#turns.idle(worker.runId)
  }

  /** The process is running but sends no heartbeat: its event loop hangs. Its tasks go to others once it is gone. */
  async #killStuck(): Promise<void> {
    if (this.#workers.size === 0) return
    const stuck = new Set(
      (await this.#options.store.listWorkers()).flatMap(({ id, state }) => (state === 'stuck' ? [id] : [])),
    )
    for (const { id, child, runId } of this.#workers) {
      if (id === undefined || !stuck.has(id)) continue
      this.#options.say('warn', `worker ${id} of run ${runId} is stuck: it is killed, and replaced`)
      child.kill()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#looking)
    await this.#look
    await Promise.all([...this.#workers].map(({ child }) => child.stop(STOP_MS_MAX)))
  }
}
