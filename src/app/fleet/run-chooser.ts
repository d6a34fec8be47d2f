/**
 * Which run a worker that serves many takes next, and when it gives its place up: nobody has two workers while another run has none.
 * A scraper that does not load, or differs from the run's, costs its own run a minute and nobody else anything.
 */
import { ScrapeError } from '../../core/errors.ts'
import { isFileLane } from '../../core/task.ts'
import type { FrontierStats } from '../../frontier/contract.ts'
import type { Store, StoredRun, StoredWorker, WorkPart } from '../../orchestrator/contract.ts'
import { type LoadedScraper, listScrapers, loadScraper } from '../author/load-scraper.ts'
import { assertTurnedOn } from '../author/opt-in.ts'
import type { Config } from '../config.ts'
import { runStats } from '../look/open-run.ts'
import { openStoredRun } from '../look/stored-run.ts'
import { assertCanBrowse } from '../run/open-browsers.ts'
import { countByRun, inOrderOfNeed, TURN_MS } from '../serve/fair-share.ts'
import { definitionHash } from './definition-hash.ts'
import { refuseOtherScraper } from './start-distributed.ts'

export interface ChooserOptions {
  store: Store
  config: Config
  /** As the user names them; empty: every scraper that is known here. */
  scrapers: readonly string[]
  only: WorkPart | undefined
  say: (message: string) => void
  now?: () => number
  random?: () => number
}

export interface ChosenRun {
  run: StoredRun
  loaded: LoadedScraper
}

/** A run whose scraper cannot be used here, or that a worker could not work on. */
const HOPELESS_MS = 60_000
/** One that is paused, or has nothing for this worker now. */
const REST_MS = 5_000
/** Runs asked for work in one look. */
const ASKED_MAX = 20
const RUNS_MAX = 1000
/** Lines remembered so that they are not said again. */
const SAID_MAX = 1000

export class RunChooser {
  readonly #options: Required<ChooserOptions>
  readonly #restUntilMs = new Map<string, number>()
  readonly #servedAtMs = new Map<string, number>()
  readonly #loaded = new Map<string, { loaded: LoadedScraper; hash: string }>()
  readonly #said = new Set<string>()
  /** Scrapers that were named, by the names they give themselves. */
  #named: ReadonlyMap<string, string> | undefined

  constructor(options: ChooserOptions) {
    this.#options = { now: () => performance.now(), random: Math.random, ...options }
  }

  /** Loads what was named. One that does not load is said, and the others are served; throws when there are no others. */
  async open(): Promise<void> {
    const { scrapers, say } = this.#options
    if (scrapers.length === 0) return
    const named = new Map<string, string>()
    let failure: unknown
    for (const word of scrapers) {
      try {
        named.set((await this.#load(word)).scraper.name, word)
      } catch (error) {
        failure = error
        if (scrapers.length > 1) say(`"${word}" is left out: ${(error as Error).message}`)
      }
    }
    if (named.size === 0) throw failure
    this.#named = named
  }

  /** Undefined: no run has anything for this worker now. */
  async next(): Promise<ChosenRun | undefined> {
    const { runs, counts } = await this.#look()
    for (const id of inOrderOfNeed([...runs.keys()], counts, this.#servedAtMs).slice(0, ASKED_MAX)) {
      const run = runs.get(id)!
      const loaded = await this.#usable(run)
      if (loaded === undefined) continue
      if (!(await this.#hasWork(run))) {
        this.rest(id)
        continue
      }
      this.#servedAtMs.set(id, this.#options.now())
      return { run, loaded }
    }
    return undefined
  }

  /**
   * Whether a worker that has been on this run since then should go: there is nothing left of its kind of work, or others wait with
   * nobody. Workers do not talk to each other: each goes by chance, so that about as many go as there are runs that wait.
   */
  async mustGiveWay(runId: string, sinceMs: number): Promise<boolean> {
    const { only, now, random } = this.#options
    const { runs, counts } = await this.#look()
    const own = runs.get(runId)
    if (only !== undefined && own !== undefined && !(await this.#hasWork(own))) return true
    if ((counts.get(runId) ?? 0) < 2 && now() - sinceMs < TURN_MS) return false
    let waiting = 0
    for (const id of [...runs.keys()].filter((one) => one !== runId && !counts.has(one)).slice(0, ASKED_MAX)) {
      if ((await this.#usable(runs.get(id)!)) === undefined) continue
      if (await this.#hasWork(runs.get(id)!)) waiting++
      else this.rest(id)
    }
    const workers = [...counts].reduce((sum, [id, count]) => sum + (runs.has(id) ? count : 0), 0)
    return waiting > 0 && random() < waiting / Math.max(1, workers)
  }

  /** It is left alone for a while. */
  rest(runId: string, error?: Error): void {
    this.#restUntilMs.set(runId, this.#options.now() + (error === undefined ? REST_MS : HOPELESS_MS))
    if (error !== undefined) this.#sayOnce(`run ${runId} is left alone for a minute: ${error.message}`)
  }

  /** Runs this worker may take, the oldest first, and how many do its kind of work on each. */
  async #look(): Promise<{ runs: Map<string, StoredRun>; counts: Map<string, number> }> {
    const { store, config, only, now } = this.#options
    const found = await store.listRuns({
      states: ['running'],
      limit: RUNS_MAX,
      openTo: { region: config.values.region },
    })
    const all = new Set(found.map(({ record }) => record.id))
    for (const known of [this.#restUntilMs, this.#servedAtMs])
      for (const id of known.keys()) if (!all.has(id)) known.delete(id)
    const open = found
      .reverse()
      .filter(({ record: { id, scraper } }) => this.#isMeant(scraper) && now() > (this.#restUntilMs.get(id) ?? 0))
    const isSameWork = (worker: StoredWorker) =>
      worker.state === 'working' && (only === undefined || worker.only === undefined || worker.only === only)
    const workers = (await store.listWorkers({ isAlive: true })).filter(isSameWork)
    return {
      runs: new Map(open.map((run) => [run.record.id, run])),
      counts: countByRun(workers.map(({ runId }) => ({ runId, isLeaving: false }))),
    }
  }

  #isMeant(scraper: string): boolean {
    return this.#named === undefined || this.#named.has(scraper)
  }

  /** Undefined, and said once, when its scraper cannot be used here. */
  async #usable(run: StoredRun): Promise<LoadedScraper | undefined> {
    try {
      const loaded = await this.#load(this.#wordOf(run))
      assertTurnedOn(loaded.scraper, this.#options.config)
      if (this.#options.only !== 'files') await assertCanBrowse(loaded.scraper, this.#options.config.values.chrome)
      refuseOtherScraper(run, loaded)
      return loaded
    } catch (error) {
      this.rest(run.record.id, error as Error)
      return undefined
    }
  }

  /** A path of the machine the run was started on means nothing here: only names that are known do. */
  #wordOf({ record: { scraper, source } }: StoredRun): string {
    const named = this.#named?.get(scraper)
    if (named !== undefined) return named
    const known = new Set(listScrapers().map(({ name }) => name))
    return known.has(source) ? source : scraper
  }

  /** A module stays as it was loaded: a file that was changed since would be taken for what runs here. */
  async #load(word: string): Promise<LoadedScraper> {
    const known = this.#loaded.get(word)
    if (known === undefined) {
      const loaded = await loadScraper(word)
      this.#loaded.set(word, { loaded, hash: definitionHash(loaded.file) })
      return loaded
    }
    const { loaded, hash } = known
    if (definitionHash(loaded.file) === hash) return loaded
    throw new ScrapeError('E_DEFINITION_DIFFERS', `"${word}" was changed since this worker loaded it`, {
      at: loaded.file,
      fix: 'Restart the worker.',
    })
  }

  async #hasWork(run: StoredRun): Promise<boolean> {
    const { store, config, only } = this.#options
    await using opened = await openStoredRun(run, { store, places: config.values })
    if (opened.filling !== undefined) return false
    return hasWorkFor(only, await runStats(opened))
  }

  #sayOnce(message: string): void {
    if (this.#said.has(message)) return
    if (this.#said.size >= SAID_MAX) this.#said.clear()
    this.#said.add(message)
    this.#options.say(message)
  }
}

/** A run with nothing left needs somebody who ends it. */
export function hasWorkFor(only: WorkPart | undefined, { isPaused, remaining, lanes }: FrontierStats): boolean {
  if (isPaused) return false
  if (remaining === 0 || only === undefined) return true
  const files = Object.entries(lanes)
    .filter(([lane]) => isFileLane(lane))
    .reduce((sum, [, { pending, claimed }]) => sum + pending + claimed, 0)
  return only === 'files' ? files > 0 : remaining > files
}
