/**
 * Keeps as many workers at a scraper's runs as their queues deserve: looks every few seconds, decides
 * (`orchestrator/autoscale.ts`), and has it carried out by a crew: worker processes on this machine, or a command.
 */
import { systemClock } from '../core/clock.ts'
import { ScrapeError } from '../core/errors.ts'
import type { Frontier } from '../frontier/contract.ts'
import {
  decideScale,
  NO_MEMORY,
  type RunShare,
  type ScaleDecision,
  type ScaleMemory,
  type ScalePolicy,
} from '../orchestrator/autoscale.ts'
import type { Store } from '../orchestrator/contract.ts'
import type { RunPlaces } from './open-run.ts'

/** Those who carry a decision out. */
export interface Crew {
  /** Of this run, here and now. */
  countOf(runId: string): number
  readonly size: number
  /** Brings the crew to `target`, spread over the runs. Says what it did, for a person. */
  scale(target: number, runs: readonly RunShare[]): Promise<string[]>
  /** Throws when the crew cannot work at all, e.g. because its workers die one after the other. */
  check(runs: readonly RunShare[], settled: number): void
  /** Ends all of it, gently. */
  dismiss(): Promise<void>
}

export interface AutoscaleRequest {
  store: Store
  openQueue: (runId: string) => Promise<Frontier>
  scraper: string
  /** Default: every run of the scraper that is going on. */
  runId?: string
  policy: ScalePolicy
  intervalMs: number
  /** Stay when all runs are finished. */
  isForever: boolean
  crew: Crew
  /** Once for each decision. */
  onDecision: (decision: AutoscaleLine) => void
  onTrouble: (message: string) => void
}

export interface AutoscaleLine extends Omit<ScaleDecision, 'memory'> {
  /** Workers there are after it, as far as known. */
  workers: number
  runs: readonly RunShare[]
  /** What was done. */
  done: readonly string[]
}

/** Ends when the runs are finished and their workers too. A stop dismisses the crew. */
export async function autoscale(request: AutoscaleRequest, stop: AbortSignal): Promise<'finished' | 'stopped'> {
  const { crew, intervalMs } = request
  await using queues = new Queues(request.openQueue)
  let memory: ScaleMemory = NO_MEMORY
  let isFirst = true
  try {
    while (!stop.aborted) {
      try {
        const { runs, settled } = await look(request, queues)
        if (isFirst && runs.length === 0 && !request.isForever) throw nothingToDo(request)
        isFirst = false
        crew.check(runs, settled)
        memory = await step(request, runs, memory)
        if (runs.length === 0 && crew.size === 0 && !request.isForever) return 'finished'
      } catch (error) {
        // A database that is away for a while is no reason to send workers home: they wait for it too.
        if (isFirst || !(error instanceof ScrapeError) || error.class !== 'service') throw error
        request.onTrouble(`${error.message}; workers stay as they are`)
      }
      await systemClock.sleep(intervalMs, stop).catch(() => {})
    }
    return 'stopped'
  } finally {
    await crew.dismiss()
  }
}

interface Seen {
  runs: RunShare[]
  /** Pages settled in these runs: grows while somebody gets something done. */
  settled: number
}

async function look({ store, scraper, runId, crew }: AutoscaleRequest, queues: Queues): Promise<Seen> {
  const found =
    runId === undefined
      ? await store.listRuns({ scraper, states: ['running'] })
      : [await store.findRun(runId)].filter((run) => run !== undefined && run.record.state === 'running')
  const runs: RunShare[] = []
  let settled = 0
  for (const run of found) {
    const { id } = run!.record
    const { pending, isPaused, completed, failed } = await (await queues.of(id)).stats()
    runs.push({ runId: id, pending, isPaused, workers: crew.countOf(id) })
    settled += completed + failed
  }
  await queues.keep(runs.map((run) => run.runId))
  return { runs, settled }
}

async function step(
  { policy, crew, onDecision, isForever }: AutoscaleRequest,
  runs: RunShare[],
  before: ScaleMemory,
): Promise<ScaleMemory> {
  const isOver = runs.length === 0 && !isForever // then nobody is needed, at once
  const [by, from] = isOver
    ? [
        { ...policy, min: 0, cooldownMs: 0 },
        { ...before, low: undefined },
      ]
    : [policy, before]
  const { memory, ...decision } = decideScale(runs, by, from, Date.now())
  const done = await crew.scale(decision.target, runs)
  onDecision({ ...decision, workers: crew.size, runs, done })
  return memory
}

function nothingToDo({ scraper, runId, store }: AutoscaleRequest): ScrapeError {
  const what = runId === undefined ? `no run of "${scraper}" is going on` : `run ${runId} is not going on`
  return new ScrapeError('E_RUN_NOT_FOUND', `${what} in ${store.place}`, {
    fix: `Start one: sluice start ${scraper} --mode distributed; or wait for the next with --forever.`,
  })
}

/** The queues of the runs looked after, open as long as they are. */
class Queues implements AsyncDisposable {
  readonly #open: (runId: string) => Promise<Frontier>
  readonly #known = new Map<string, Frontier>()

  constructor(open: (runId: string) => Promise<Frontier>) {
    this.#open = open
  }

  async of(runId: string): Promise<Frontier> {
    let queue = this.#known.get(runId)
    if (queue === undefined) {
      queue = await this.#open(runId)
      this.#known.set(runId, queue)
    }
    return queue
  }

  async keep(runIds: readonly string[]): Promise<void> {
    for (const [runId, queue] of this.#known) {
      if (runIds.includes(runId)) continue
      this.#known.delete(runId)
      await queue[Symbol.asyncDispose]()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keep([])
  }
}

/** Where worker processes find what this one found. In the environment: a password is not for `ps` to show. */
export function workerEnv({
  out,
  frontier,
  store,
  drainTimeout,
}: RunPlaces & { drainTimeout: number }): NodeJS.ProcessEnv {
  return {
    SLUICE_OUT: out,
    SLUICE_DRAIN_TIMEOUT: `${drainTimeout}ms`,
    SLUICE_FRONTIER: frontier,
    ...(store === undefined ? {} : { SLUICE_STORE: store }),
  }
}
