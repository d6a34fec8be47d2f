/**
 * Which run a multi-run worker takes next, and when it gives up its place: no run has two workers while another has none. A run
 * does not hold up others if its scraper does not load or differs from the run's, or if its queue does not answer.
 */

import type { LoadedScraper } from '../../config/load-scraper.ts'
import { ScrapeError } from '../../core/errors.ts'
import { FILES_LANE, isFileLane } from '../../core/task.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { FrontierStats } from '../../frontier/contract.ts'
import { openStoredRun } from '../../runs/stored-run.ts'
import type { Store, StoredRun, StoredWorker, WorkPart } from '../../store/contract.ts'
import type { FleetWorker } from './fleet-worker.ts'
import { type AskedRun, RunQueues } from './run-queues.ts'
import { RunRotation } from './run-rotation.ts'
import { ScrapersHere, type ScrapersOptions } from './scrapers-here.ts'
import { countByRun, TURN_MS } from './worker-shares.ts'

interface ChooserOptions extends ScrapersOptions {
  store: Store
  now?: () => number
  random?: () => number
  /** Opens a run to look at its queue. */
  openRun?: (run: StoredRun) => Promise<AskedRun>
}

export interface ChosenRun {
  run: StoredRun
  loaded: LoadedScraper
}

/** A look ends after this long, so that the worker notices signals and new runs. */
const LOOK_MS_MAX = 5_000
/** Maximum number of runs that a busy worker asks in one look. */
const ASKED_MAX = 20
const RUNS_MAX = 1000
/** Maximum number of messages remembered to avoid repeating them. */
const SAID_MAX = 1000

export class RunChooser implements AsyncDisposable {
  readonly #options: Required<ChooserOptions>
  readonly #scrapers: ScrapersHere
  readonly #queues: RunQueues
  readonly #turns: RunRotation
  readonly #said = new Set<string>()
  /** The run whose worker was told to leave. */
  #leaving: string | undefined

  constructor(options: ChooserOptions) {
    const { store, config } = options
    this.#options = {
      now: () => performance.now(),
      random: Math.random,
      openRun: (run) => openStoredRun(run, { store, places: config.values }),
      ...options,
    }
    this.#scrapers = new ScrapersHere(options)
    this.#queues = new RunQueues(this.#options.openRun)
    this.#turns = new RunRotation(this.#options.now)
  }

  /** Throws if none of the named scrapers can be used. */
  async open(): Promise<void> {
    await this.#scrapers.open()
  }

  /** none: no run has work for this worker now · more: one look was not enough to ask them all. Throws if the store is down. */
  async next(): Promise<ChosenRun | 'none' | 'more'> {
    const { now } = this.#options
    const { runs, counts } = await this.#look()
    const endMs = now() + LOOK_MS_MAX
    for (const id of this.#turns.inOrder(runs.keys(), counts)) {
      if (now() > endMs) return 'more'
      const chosen = await this.#withWork(runs.get(id)!)
      if (chosen === undefined) continue
      this.#turns.served(id)
      this.#leaving = undefined
      return chosen
    }
    return 'none'
  }

  /**
   * Whether a worker that has been on its run since `sinceMs` should leave: there is no work of its kind left, or other runs have
   * no worker. Workers do not talk to each other: each leaves with a probability chosen so that about as many leave as there are
   * runs waiting. The dice are rolled before any queue is queried, so of fifty workers one asks, not all.
   */
  async mustGiveWay(worker: Pick<FleetWorker, 'runId' | 'stats'>, sinceMs: number): Promise<boolean> {
    const isTime = await this.#isTimeToGo(worker, sinceMs)
    if (isTime) this.#leaving = worker.runId
    return isTime
  }

  async #isTimeToGo({ runId, stats }: Pick<FleetWorker, 'runId' | 'stats'>, sinceMs: number): Promise<boolean> {
    const { only, now, random } = this.#options
    if (only !== undefined && !hasWorkFor(only, await stats())) return true
    const { runs, counts } = await this.#look()
    if ((counts.get(runId) ?? 0) < 2 && now() - sinceMs < TURN_MS) return false
    const alone = [...runs.keys()].filter((id) => id !== runId && !counts.has(id))
    const workers = [...counts].reduce((sum, [id, count]) => sum + (runs.has(id) ? count : 0), 0)
    const wanted = Math.floor(random() * workers) + 1
    if (alone.length < wanted) return false
    let waiting = 0
    for (const id of this.#turns.inOrder(alone, counts).slice(0, ASKED_MAX))
      if ((await this.#withWork(runs.get(id)!)) !== undefined && ++waiting >= wanted) return true
    return false
  }

  /**
   * Records how the worker's time on the run ended. A worker that gave way may return at once: by then others may have taken the
   * waiting runs.
   */
  left(runId: string, end: CrawlEnd): void {
    if (end.how === 'halted') this.rest(runId, end.error)
    else if (end.how !== 'finished' && this.#leaving !== runId) this.rest(runId)
  }

  /** Leaves the run alone for a while: it has nothing to do, or cannot be worked on. */
  rest(runId: string, error?: Error): void {
    const isMinute = error !== undefined && !(error instanceof ScrapeError && error.class === 'service')
    if (isMinute) this.#turns.hopeless(runId)
    else this.#turns.idle(runId)
    if (error !== undefined)
      this.#sayOnce(`run ${runId} is left alone for ${isMinute ? 'a minute' : 'a while'}: ${error.message}`)
  }

  /** Runs this worker may take, oldest first, and how many workers of its kind each has. */
  async #look(): Promise<{ runs: Map<string, StoredRun>; counts: Map<string, number> }> {
    const { store, config, only } = this.#options
    const { region } = config.values
    const found = await store.listRuns({ states: ['running'], limit: RUNS_MAX, openTo: { region } })
    const isSameWork = (worker: StoredWorker) =>
      worker.state === 'working' && (only === undefined || worker.only === undefined || worker.only === only)
    const workers = (await store.listWorkers({ isAlive: true })).filter(isSameWork)
    return {
      runs: this.#turns.open(found.filter((run) => this.#scrapers.isMeant(run))),
      counts: countByRun(workers.map(({ runId }) => ({ runId, isLeaving: false }))),
    }
  }

  /** Undefined if this worker has nothing to do there; the run is then left alone for a while. */
  async #withWork(run: StoredRun): Promise<ChosenRun | undefined> {
    const { id } = run.record
    try {
      const loaded = await this.#scrapers.of(run)
      const stats = await this.#queues.stats(run)
      if (stats !== undefined && hasWorkFor(this.#options.only, stats)) return { run, loaded }
      this.#turns.idle(id)
    } catch (error) {
      await this.#options.store.findRun(id) // if the store is down, the run is not to blame
      this.rest(id, error as Error)
    }
    return undefined
  }

  #sayOnce(message: string): void {
    if (this.#said.has(message)) return
    if (this.#said.size >= SAID_MAX) this.#said.clear()
    this.#said.add(message)
    this.#options.say(message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queues[Symbol.asyncDispose]()
  }
}

/** A run with nothing left needs a worker to end it. */
function hasWorkFor(only: WorkPart | undefined, { isPaused, remaining, lanes }: FrontierStats): boolean {
  if (isPaused) return false
  if (remaining === 0 || only === undefined) return true
  if (only === 'files') return Object.keys(lanes).some((lane) => isFileLane(lane) && countOf(lanes, lane) > 0)
  return remaining > countOf(lanes, FILES_LANE) // pinned tasks belong to workers with browsers
}

const countOf = (lanes: FrontierStats['lanes'], lane: string) =>
  (lanes[lane]?.pending ?? 0) + (lanes[lane]?.claimed ?? 0)
