/** A crew of `sluice worker` processes on this machine: started, drained the newest first, replaced when they die. */
import { type ChildProcess, spawn } from 'node:child_process'
import { systemClock } from '../core/clock.ts'
import { ScrapeError } from '../core/errors.ts'
import { type RunShare, runToStaff, workerToDrain } from '../orchestrator/autoscale.ts'
import type { Crew } from './autoscale.ts'

export interface ProcessCrewOptions {
  /** The program and its first arguments, up to `worker`. */
  command: readonly [string, ...string[]]
  /** Of every worker, after `--run-id`. */
  workerArgs: readonly string[]
  env: NodeJS.ProcessEnv
  /** How long a drained worker may take before it is killed. */
  drainMs: number
  /** What it gets beyond its drain time to hand its tasks back. Default 5 s. */
  graceMs?: number
  /** What a worker says on its standard error. */
  onLine: (line: string) => void
}

/** Workers that end this often without one page settled in between are not replaced any more. */
const DEATHS_IN_A_ROW_MAX = 10
const GRACE_MS = 5_000
const LAST_WORDS_MAX = 5
/** Usage, configuration, or a scraper that differs: the next worker would say the same. */
const HOPELESS_EXIT_CODE = 2

interface Worker {
  name: string
  runId: string
  startedAtMs: number
  child: ChildProcess
  isDrained: boolean
  ended: Promise<void>
}

export class ProcessCrew implements Crew {
  readonly #options: ProcessCrewOptions
  readonly #workers = new Set<Worker>()
  readonly #lastWords: string[] = []
  #started = 0
  /** Ends nobody asked for since the last look. */
  #endings: { runId: string; how: string; isHopeless: boolean }[] = []
  #endsInARow = 0
  #settled = 0

  constructor(options: ProcessCrewOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#workers.size
  }

  countOf(runId: string): number {
    return this.#staying().filter((worker) => worker.runId === runId).length
  }

  async scale(target: number, runs: readonly RunShare[]): Promise<string[]> {
    const done: string[] = []
    const shares = runs.map((run) => ({ ...run, workers: this.countOf(run.runId) }))
    for (let size = this.#staying().length; size < target; size++) {
      const runId = runToStaff(shares)
      if (runId === undefined) break
      shares.find((share) => share.runId === runId)!.workers++
      done.push(`started ${this.#start(runId)}`)
    }
    for (let spare = this.#staying().length - target; spare > 0; spare--) {
      const worker = workerToDrain(this.#staying())!
      this.#drain(worker)
      done.push(`drained ${worker.name}`)
    }
    return done
  }

  /** A worker that ends by itself while there is work is replaced; one after the other without a page done is an error. */
  check(runs: readonly RunShare[], settled: number): void {
    const early = this.#endings.filter(({ runId }) => runs.some((run) => run.runId === runId))
    this.#endings = []
    if (settled > this.#settled) this.#endsInARow = 0
    this.#settled = settled
    this.#endsInARow += early.length
    const hopeless = early.find(({ isHopeless }) => isHopeless)
    if (hopeless === undefined && this.#endsInARow < DEATHS_IN_A_ROW_MAX) return
    const what =
      hopeless === undefined
        ? `workers ended ${this.#endsInARow} times in a row with nothing done (${early.at(-1)?.how})`
        : `a worker of run ${hopeless.runId} cannot begin (${hopeless.how})`
    throw new ScrapeError('E_LEASE_LOST', what, {
      notes: this.#lastWords,
      fix: 'Start one worker by hand and see what it says.',
    })
  }

  async dismiss(): Promise<void> {
    for (const worker of this.#staying()) this.#drain(worker)
    await Promise.all([...this.#workers].map(({ ended }) => ended))
  }

  #staying(): Worker[] {
    return [...this.#workers].filter(({ isDrained }) => !isDrained)
  }

  #start(runId: string): string {
    const { command, workerArgs, env } = this.#options
    const [program, ...first] = command
    const child = spawn(program, [...first, '--run-id', runId, ...workerArgs], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    })
    const name = `worker ${++this.#started}`
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const worker: Worker = { name, runId, startedAtMs: performance.now(), child, isDrained: false, ended }
    this.#workers.add(worker)
    this.#listen(worker)
    let isOver = false
    const end = (how: string, code: number | null) => {
      if (isOver) return
      isOver = true
      this.#workers.delete(worker)
      if (!worker.isDrained) this.#noteEnd(worker, how, code)
      resolve()
    }
    child.once('error', (error) => end(error.message, null))
    child.once('close', (code, signal) => end(signal ?? `exit code ${code}`, code))
    return `${name} for ${runId} (process ${child.pid})`
  }

  #noteEnd({ name, runId }: Worker, how: string, code: number | null): void {
    if (code === 0) return
    this.#endings.push({ runId, how, isHopeless: code === HOPELESS_EXIT_CODE })
    this.#options.onLine(`${name} ended: ${how}`)
  }

  #listen({ name, child }: Worker): void {
    let rest = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!.slice(-10_000)
      for (const line of lines) {
        this.#lastWords.push(line)
        if (this.#lastWords.length > LAST_WORDS_MAX) this.#lastWords.shift()
        this.#options.onLine(`${name}: ${line}`)
      }
    })
  }

  /** SIGTERM lets it hand back what it holds; who takes too long is killed, and its leases run out. */
  #drain(worker: Worker): void {
    worker.isDrained = true
    worker.child.kill('SIGTERM')
    const { drainMs, graceMs = GRACE_MS } = this.#options
    const inTime = new AbortController()
    systemClock
      .sleep(drainMs + graceMs, inTime.signal)
      .then(() => worker.child.kill('SIGKILL'))
      .catch(() => {})
    void worker.ended.then(() => inTime.abort())
  }
}
