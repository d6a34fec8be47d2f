/**
 * Keeps as many workers on a scraper's runs as their queues need: looks every few seconds, decides (`autoscale.ts`), and has a
 * crew carry it out: worker processes on this machine, or a command.
 */
import { systemClock } from '../core/clock.ts'
import { ScrapeError } from '../core/errors.ts'
import type { RunRecord } from '../core/run.ts'
import type { Frontier, FrontierStats } from '../frontier/contract.ts'
import type { Store } from '../store/contract.ts'
import {
  decideScale,
  NO_MEMORY,
  type RunDepth,
  type ScaleDecision,
  type ScaleMemory,
  type ScalePolicy,
  type Staffing,
} from './autoscale.ts'

/** Runs whose queue is not here: our workers could not work on them. */
const LEFT_ALONE: ReadonlySet<string> = new Set(['E_OTHER_QUEUE', 'E_QUEUE_LOST'])

/** Carries out decisions. */
export interface Crew {
  /** Local workers of this run, not counting those being drained. */
  countOf(runId: string): number
  readonly size: number
  /** Brings the crew closer to it; the rest is done at the next look. Returns what it did, for display. */
  scale(staffing: Staffing): Promise<string[]>
  /** Throws if the crew cannot work at all, for example because its workers die one after the other. */
  check(seen: Seen): void
  /** Ends all workers gracefully. */
  dismiss(): Promise<void>
}

/** The result of a look at the runs. */
export interface Seen {
  /** The open runs. */
  runs: readonly RunDepth[]
  /** Pages settled in these runs: grows while there is progress. */
  settled: number
  /** When the look began, by the clock of the request: a worker that exited later may have ended with the run. */
  atMs: number
}

export interface AutoscaleRequest {
  store: Pick<Store, 'listRuns' | 'findRun' | 'place'>
  /** Throws `E_OTHER_QUEUE` or `E_QUEUE_LOST` for a run that gets no workers. */
  openQueue: (run: RunRecord) => Promise<Frontier>
  scraper: string
  /** The region of its workers. */
  region?: string | undefined
  /** Default: every running run of the scraper. */
  runId?: string
  policy: ScalePolicy
  intervalMs: number
  /** Stay when all runs are finished. */
  isForever: boolean
  crew: Crew
  /** Called once per decision. */
  onDecision: (decision: AutoscaleLine) => void
  onTrouble: (message: string) => void
  /** Monotonic milliseconds, independent of the time of day. Default: since the start of this process. */
  now?: () => number
}

export interface AutoscaleLine extends Omit<ScaleDecision, 'memory' | 'shares'> {
  /** Number of workers afterwards, as far as known. */
  workers: number
  runs: readonly (RunDepth & { target: number; workers: number })[]
  /** What was done. */
  done: readonly string[]
}

/** Ends when the runs are finished and their workers have ended. A stop dismisses the crew. */
export async function autoscale(request: AutoscaleRequest, stop: AbortSignal): Promise<'finished' | 'stopped'> {
  const { crew, intervalMs } = request
  await using queues = new Queues(request.openQueue)
  let memory: ScaleMemory = NO_MEMORY
  let isFirst = true
  try {
    while (!stop.aborted) {
      try {
        const seen = await look(request, queues)
        if (isFirst && seen.runs.length === 0 && !request.isForever) throw nothingToDo(request)
        isFirst = false
        crew.check(seen)
        memory = await step(request, seen, memory)
        if (seen.runs.length === 0 && crew.size === 0 && !request.isForever) return 'finished'
      } catch (error) {
        // A database that is down for a while does not mean that workers should be dismissed: they wait for it, too.
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

async function look(
  { store, scraper, region, runId, onTrouble, now = monotonicMs }: AutoscaleRequest,
  queues: Queues,
): Promise<Seen> {
  const atMs = now()
  const found =
    runId === undefined
      ? await store.listRuns({ scraper, states: ['running'], openTo: { region } })
      : [await store.findRun(runId)].filter((run) => run !== undefined && run.record.state === 'running')
  const runs: RunDepth[] = []
  let settled = 0
  for (const run of found) {
    const { id } = run!.record
    const stats = await queues.statsOf(run!.record).catch((error) => {
      if (!(error instanceof ScrapeError) || !LEFT_ALONE.has(error.code)) throw error
      queues.sayOnce(error, onTrouble)
      return undefined
    })
    if (stats === undefined) continue
    const { pending, remaining, isPaused, completed, failed } = stats
    runs.push({ runId: id, pending, remaining, isPaused })
    settled += completed + failed
  }
  await queues.keep(runs.map((run) => run.runId))
  return { runs, settled, atMs }
}

async function step(
  { policy, crew, onDecision, isForever }: AutoscaleRequest,
  { runs, atMs }: Seen,
  before: ScaleMemory,
): Promise<ScaleMemory> {
  const isOver = runs.length === 0 && !isForever
  const { memory, shares, ...decision } = decideScale(runs, isOver ? { ...policy, min: 0 } : policy, before, atMs)
  const done = await crew.scale({ target: decision.target, shares })
  const staffed = runs.map((run) => ({ ...run, target: shares.get(run.runId) ?? 0, workers: crew.countOf(run.runId) }))
  onDecision({ ...decision, workers: crew.size, runs: staffed, done })
  return memory
}

/** Cooldowns are durations: a clock that is set back by an hour must not extend one by an hour. */
export const monotonicMs = () => performance.now()

function nothingToDo({ scraper, runId, store }: AutoscaleRequest): ScrapeError {
  const what = runId === undefined ? `no run of "${scraper}" is going on` : `run ${runId} is not going on`
  return new ScrapeError('E_RUN_NOT_FOUND', `${what} in ${store.place}`, {
    fix: `Start one: sluice start ${scraper} --mode distributed; or wait for the next with --forever.`,
  })
}

/** The queues of the observed runs, open as long as those are. */
class Queues implements AsyncDisposable {
  readonly #open: (run: RunRecord) => Promise<Frontier>
  readonly #known = new Map<string, Frontier>()
  readonly #said = new Set<string>()

  constructor(open: (run: RunRecord) => Promise<Frontier>) {
    this.#open = open
  }

  async statsOf(run: RunRecord): Promise<FrontierStats> {
    let queue = this.#known.get(run.id)
    if (queue === undefined) {
      queue = await this.#open(run)
      this.#known.set(run.id, queue)
    }
    return await queue.stats()
  }

  sayOnce({ message }: Error, say: (message: string) => void): void {
    if (this.#said.has(message)) return
    this.#said.add(message)
    say(`${message}; no workers are started for it`)
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
