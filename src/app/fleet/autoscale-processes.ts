/**
 * Manages `sluice worker` processes on this machine: starts them, drains the newest first, and replaces those that exit.
 *
 *   exit 0, 4            left: the run is over, or the worker was told to go. The next look decides: if the run is still open,
 *                        it is staffed again after a pause, because a full disk ends every worker this way
 *   exit 2               hopeless: the next worker would fail the same way. An error at once
 *   other code, signal   died: replaced. Ten in a row without progress in between are an error
 */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { Child, type ChildEnd } from '../../core/child.ts'
import { ScrapeError } from '../../core/errors.ts'
import { type Staffing, staffChanges } from '../../fleet/autoscale.ts'
import { type Crew, monotonicMs, type Seen } from '../../fleet/autoscale-loop.ts'
import type { RunPlaces } from '../../runs/run-view.ts'
import { DEATHS_IN_A_ROW_MAX } from '../run/processes.ts'

export interface ProcessCrewOptions {
  /** The program and its first arguments, up to `worker`. */
  command: readonly [string, ...string[]]
  /** Passed to every worker, after `--run-id`. */
  workerArgs: readonly string[]
  env: NodeJS.ProcessEnv
  /** Maximum number of processes at any time, including those being drained. */
  processesMax: number
  /** How long to leave an open run alone after a worker left it on its own. */
  restMs: number
  /** How long a drained worker may take before it is killed. */
  drainMs: number
  /** Extra time beyond the drain time to hand tasks back. Default 5 s. */
  graceMs?: number
  /** Receives each line that a worker writes to standard error. */
  onLine: (line: string) => void
  /** The clock that the looks' timestamps come from. */
  now?: () => number
}

const GRACE_MS = 5_000
const LAST_WORDS_MAX = 5
/** Finished, or stopped: by the end or a limit of the run, by a user, or by a full disk. */
const LEFT_EXIT_CODES: readonly unknown[] = [0, 4]
/** A usage or configuration error, or a scraper that differs from the run's. */
const HOPELESS_EXIT_CODE = 2

interface Death {
  runId: string
  how: string
  isHopeless: boolean
  atMs: number
}

interface Worker {
  name: string
  runId: string
  child: Child<never>
  isDrained: boolean
}

export class ProcessCrew implements Crew {
  readonly #options: ProcessCrewOptions
  readonly #now: () => number
  /** Oldest first. */
  readonly #workers = new Set<Worker>()
  readonly #lastWords: string[] = []
  #started = 0
  /** Deaths that no look has covered yet. */
  #deaths: Death[] = []
  #deathsInARow = 0
  #settled = 0
  /** Runs that a worker left on its own, and when. */
  readonly #left = new Map<string, number>()

  constructor(options: ProcessCrewOptions) {
    this.#options = options
    this.#now = options.now ?? monotonicMs
  }

  get size(): number {
    return this.#workers.size
  }

  countOf(runId: string): number {
    return this.#staying(runId).length
  }

  async scale({ shares }: Pick<Staffing, 'shares'>): Promise<string[]> {
    const workers = new Map<string, number>()
    for (const { runId } of this.#staying()) workers.set(runId, (workers.get(runId) ?? 0) + 1)
    const now = new Map<string, number>()
    for (const [runId, share] of shares)
      now.set(runId, this.#isResting(runId) ? Math.min(share, workers.get(runId) ?? 0) : share)
    const { drain, start } = staffChanges(workers, now, this.#options.processesMax - this.size)
    const done: string[] = []
    for (const [runId, count] of drain)
      for (const worker of this.#staying(runId).slice(-count)) {
        this.#drain(worker)
        done.push(`drained ${worker.name} of ${runId}`)
      }
    for (const runId of start) done.push(`started ${this.#start(runId)}`)
    return done
  }

  /** Judges only deaths that precede the look: a later exit may be due to the end of the run, which does not count as a death. */
  check({ runs, settled, atMs }: Seen): void {
    const isOpen = (runId: string) => runs.some((run) => run.runId === runId)
    const deaths = this.#deaths.filter((death) => death.atMs < atMs && isOpen(death.runId))
    this.#deaths = this.#deaths.filter((death) => death.atMs >= atMs)
    for (const runId of this.#left.keys()) if (!isOpen(runId)) this.#left.delete(runId)
    if (settled > this.#settled) this.#deathsInARow = 0
    this.#settled = settled
    this.#deathsInARow += deaths.length
    const hopeless = deaths.find(({ isHopeless }) => isHopeless)
    if (hopeless === undefined && this.#deathsInARow < DEATHS_IN_A_ROW_MAX) return
    const what =
      hopeless === undefined
        ? `workers died ${this.#deathsInARow} times in a row with nothing done (${deaths.at(-1)?.how})`
        : `a worker of run ${hopeless.runId} cannot begin (${hopeless.how})`
    throw new ScrapeError('E_WORKERS_DIE', what, { notes: this.#lastWords })
  }

  async dismiss(): Promise<void> {
    for (const worker of this.#staying()) this.#drain(worker)
    await Promise.all([...this.#workers].map(({ child }) => child.ended))
  }

  #staying(runId?: string): Worker[] {
    return [...this.#workers].filter((worker) => !worker.isDrained && (runId ?? worker.runId) === worker.runId)
  }

  #isResting(runId: string): boolean {
    const leftAtMs = this.#left.get(runId)
    return leftAtMs !== undefined && this.#now() - leftAtMs < this.#options.restMs
  }

  #start(runId: string): string {
    const { command, workerArgs, env } = this.#options
    const [program, ...first] = command
    const process = spawn(program, [...first, '--run-id', runId, ...workerArgs], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...globalThis.process.env, ...env },
    })
    const name = `worker ${++this.#started}`
    const worker: Worker = { name, runId, child: new Child(process), isDrained: false }
    this.#workers.add(worker)
    this.#listen(name, process.stderr)
    void worker.child.ended.then((end) => {
      this.#workers.delete(worker)
      if (!worker.isDrained) this.#noteEnd(worker, end)
    })
    return `${name} for ${runId} (process ${process.pid})`
  }

  #noteEnd({ name, runId }: Worker, { how, code }: ChildEnd): void {
    const atMs = this.#now()
    if (LEFT_EXIT_CODES.includes(code)) this.#left.set(runId, atMs)
    else this.#deaths.push({ runId, how, isHopeless: code === HOPELESS_EXIT_CODE, atMs })
    if (code !== 0) this.#options.onLine(`${name} ended: ${how}`)
  }

  #listen(name: string, stderr: Readable): void {
    let rest = ''
    stderr.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!.slice(-10_000)
      for (const line of lines) {
        this.#lastWords.push(line)
        if (this.#lastWords.length > LAST_WORDS_MAX) this.#lastWords.shift()
        this.#options.onLine(`${name}: ${line}`)
      }
    })
  }

  #drain(worker: Worker): void {
    worker.isDrained = true
    const { drainMs, graceMs = GRACE_MS } = this.#options
    void worker.child.stop(drainMs + graceMs)
  }
}

/**
 * Passes our connection URLs and paths to worker processes. In the environment, because `ps` would show passwords in arguments.
 */
export function workerEnv({
  out,
  frontier,
  store,
  redis,
  drainTimeout,
}: RunPlaces & { drainTimeout: number }): NodeJS.ProcessEnv {
  return {
    SLUICE_OUT: out,
    SLUICE_DRAIN_TIMEOUT: `${drainTimeout}ms`,
    SLUICE_FRONTIER: frontier,
    ...(store === undefined ? {} : { SLUICE_STORE: store }),
    ...(redis === undefined ? {} : { SLUICE_REDIS: redis }),
  }
}
