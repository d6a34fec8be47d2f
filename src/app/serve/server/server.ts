import * as z from 'zod'
import { type Config, toLimits } from '../../../config/config.ts'
import { listScrapers, loadScraper } from '../../../config/load-scraper.ts'
import { isTurnedOn } from '../../../config/opt-in.ts'
import { parseEngineUrl } from '../../../core/engine-url.ts'
import { ScrapeError } from '../../../core/errors.ts'
import { createEventBus } from '../../../core/events.ts'
import { verbatim } from '../../../core/redact.ts'
import type { SqlDatabase } from '../../../drivers/sql.ts'
import type { DeadFilter } from '../../../frontier/contract.ts'
import { oneAtATime } from '../../../observe/bounded-questions.ts'
import { retryLetters } from '../../../runs/dead-letters.ts'
import type { StoreDatabase } from '../../../runs/fleet-places.ts'
import type { ListedRun } from '../../../runs/run-list.ts'
import { runStats } from '../../../runs/run-numbers.ts'
import type { OpenRun, RunPlaces } from '../../../runs/run-view.ts'
import { cancelRun } from '../../../runs/steer-run.ts'
import { leaderSeen, SCHEDULER } from '../../../server/access/leader.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { RunLimits } from '../../../server/schedule/contract.ts'
import { Scheduler } from '../../../server/schedule/scheduler.ts'
import { Schedules } from '../../../server/schedule/schedules.ts'
import type { Store } from '../../../store/contract.ts'
import type { KeepMs } from '../../../store/retention.ts'
import { startDistributed } from '../../fleet/start-distributed.ts'
import type { TrustedProxies } from '../access/trusted-proxies.ts'
import { openServeDatabase, storeOfServer } from './database.ts'
import { EmbeddedRuns } from './embedded-runs.ts'
import { EmbeddedWorkers } from './embedded-workers.ts'
import { Feeds } from './feed.ts'
import { HistoryKeeper, NOT_KEEPING } from './history-keeper.ts'
import { InterruptedRuns } from './interrupted.ts'
import { JobStore } from './job-store.ts'
import { Notifications } from './notifications.ts'
import { OpenRunCache } from './open-run-cache.ts'
import { RunLists } from './run-lists.ts'
import { type Check, ServerHealth } from './server-health.ts'
import type { ServerRole } from './server-role.ts'

export interface ServeOptions {
  /** Workers that it adds to a fleet's queue; 0: none. */
  workers: number
  role: ServerRole
  /** Rate limit per caller; more is a mistake or an attack. */
  requestsPerSecond: number
  /** Requests from this machine need no key, even if keys exist. */
  isLoopbackFree: boolean
  proxies: TrustedProxies
  /** How long the store keeps data that is no longer needed. */
  keep: KeepMs
  config: Config
  /** Options the user set for the runs of this server, as on the command line. */
  flags: Record<string, unknown>
  host: string
  port: number
  version: string
  say: (level: 'info' | 'warn', message: string) => void
}

/** False if its queue is not ours or is gone; a paused run would keep its worker waiting. */
async function hasWork(run: OpenRun): Promise<boolean> {
  return run.trouble === undefined && !(await runStats(run)).isPaused
}

/** Maximum number of runs that count for the health of the server and its scrapers. */
const RUNS_LISTED_MAX = 1000

export class Server implements AsyncDisposable {
  readonly config: Config
  readonly store: Store
  readonly db: SqlDatabase
  readonly openRuns: OpenRunCache
  readonly feeds: Feeds
  readonly health: ServerHealth
  readonly schedules: Schedules
  readonly scheduler: Scheduler
  readonly notifications: Notifications
  readonly keeping: Pick<HistoryKeeper, 'status'>
  readonly #keeper: HistoryKeeper | undefined
  readonly jobs: JobStore
  readonly #runs: EmbeddedRuns
  readonly #workers: EmbeddedWorkers | undefined
  readonly lists: RunLists
  readonly #interrupted: InterruptedRuns | undefined
  readonly #places: RunPlaces
  readonly #say: ServeOptions['say']
  readonly #checksNow = oneAtATime(() => this.health.checks())
  #saidMissing: string | null | undefined

  static async open(options: ServeOptions): Promise<Server> {
    const { config } = options
    const values = { ...config.values, store: storeOfServer(config.values) }
    const database = await openServeDatabase(values)
    return new Server({ ...options, config: { ...config, values } }, database)
  }

  private constructor({ config, flags, workers, role, keep, say }: ServeOptions, { store, db }: StoreDatabase) {
    const isPassive = role === 'api'
    this.db = db
    this.config = config
    this.store = store
    this.#say = say
    const { out, frontier, redis } = config.values
    this.#places = { out, frontier, redis, store: config.values.store }
    this.openRuns = new OpenRunCache(this.#places)
    this.feeds = new Feeds(this.openRuns)
    this.lists = new RunLists({ places: this.#places, store })
    this.health = new ServerHealth({
      store,
      servers: serversOf(config),
      listRuns: () => this.listRuns(),
      listSchedules: () => this.schedules.list(),
      scheduler: () => leaderSeen(db, SCHEDULER),
      deliveries: () => ({ ...this.notifications.worker.counts }),
      disk: out,
    })
    this.#workers =
      parseEngineUrl(frontier).isShared && workers > 0 && role === 'all'
        ? new EmbeddedWorkers({
            store,
            max: workers,
            region: config.values.region,
            flags,
            hasWork: async (id) => await hasWork(await this.openRuns.run(id)),
            say,
          })
        : undefined
    this.notifications = new Notifications({ db, config, isPassive, say })
    this.jobs = new JobStore({ db, isPassive, say })
    this.#keeper = isPassive
      ? undefined
      : new HistoryKeeper({
          db,
          store,
          places: this.#places,
          record: this.notifications.recordEvents,
          projections: [this.jobs.projection],
          also: [this.jobs.health],
          keep,
          say,
        })
    this.keeping = this.#keeper ?? NOT_KEEPING
    this.schedules = new Schedules(db)
    this.scheduler = new Scheduler({
      schedules: this.schedules,
      start: ({ scraper, args, limits, region }) => this.startRun(scraper, args, limits, region),
      isRunning: async (id) => !(await this.openRuns.run(id)).isOver,
      cancel: (id, reason) => this.openRuns.change(id, async (run) => void (await cancelRun(run, reason))),
      isPassive,
      onTrouble: ({ name }, outcome, reason) => say('warn', `schedule ${name} ${outcome}: ${reason}`),
      say,
    })
    this.#runs = new EmbeddedRuns({
      flags,
      onDeath: (id, how, isGivenUp) => {
        say('warn', `run ${id} died (${how})${isGivenUp ? '; it stays as it is' : '; it resumes in a new process'}`)
        if (isGivenUp) this.notifications.runGivenUp(id, how)
      },
    })
    this.#interrupted = parseEngineUrl(frontier).isShared
      ? undefined
      : new InterruptedRuns({ out, openRuns: this.openRuns, goOn: (run) => this.goOn(run), say })
  }

  /** The newest runs. */
  async listRuns(): Promise<ListedRun[]> {
    return (await this.lists.page({ limit: RUNS_LISTED_MAX })).runs
  }

  /** On a fleet's queue the run waits for workers; otherwise one of our processes executes it. */
  async startRun(
    scraper: string,
    args: Record<string, unknown>,
    limits: RunLimits,
    region: string | undefined,
  ): Promise<string> {
    this.lists.forget()
    if (!parseEngineUrl(this.config.values.frontier).isShared) {
      if (region !== undefined) throw noRegions()
      return await this.#runs.start({ scraper, args, flags: flagsOf(limits) })
    }
    // The server's region is where its own workers are: its runs are for all regions unless they say otherwise.
    const values = { ...this.config.values, region }
    const config = { ...this.config, values, limits: toLimits({ ...values, ...flagsOf(limits) }) }
    const { runId } = await startDistributed({
      loaded: await loadScraper(scraper),
      source: scraper,
      args,
      config,
      bus: createEventBus(),
      isTrusted: false,
      stop: new AbortController().signal,
    })
    return runId
  }

  /** Continues an unfinished run that has no worker. False if workers will find it by themselves. */
  async goOn(run: OpenRun): Promise<boolean> {
    this.lists.forget()
    if (run.folder === undefined) return false
    const { id, source } = run.record
    await this.#runs.start({ scraper: source, args: {}, resume: id })
    return true
  }

  async retry(run: OpenRun, filter: DeadFilter): Promise<number> {
    const count = await retryLetters(run, filter)
    if (count > 0 && run.isOver && run.folder !== undefined) await this.goOn(run)
    return count
  }

  async drainWorker(id: string): Promise<void> {
    if (!(await this.store.askDrain(id))) throw new Problem(404, 'E_WORKER_NOT_FOUND', `no worker ${id}`)
  }

  async listScrapers() {
    return await Promise.all(
      listScrapers().map(async ({ name, file, isBundled }) => {
        try {
          const { scraper } = await loadScraper(file)
          return {
            name,
            description: scraper.description ?? null,
            routes: Object.keys(scraper.routes),
            args: argsSchemaOf(scraper.args),
            isBundled,
            isOn: isTurnedOn(scraper, this.config),
            problem: null,
          }
        } catch (error) {
          const problem = (error as Error).message
          return { name, description: null, routes: [], args: null, isBundled, isOn: false, problem }
        }
      }),
    )
  }

  /** Throws a 503 that names what is missing. Probes are not rate limited, so concurrent ones share one check. */
  async checks(): Promise<Check[]> {
    const checks = await this.#checksNow()
    const missing = checks.find(({ ok }) => !ok)
    if (missing?.problem !== this.#saidMissing && missing !== undefined)
      this.#say('warn', `not ready: ${missing.problem}`)
    this.#saidMissing = missing?.problem
    if (missing === undefined) return checks
    const detail = `not ready: the ${missing.name}: ${missing.problem}`
    throw new Problem(503, 'E_NOT_READY', detail, { headers: { 'retry-after': '5' } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#interrupted?.[Symbol.asyncDispose]()
    this.feeds[Symbol.dispose]()
    await this.scheduler[Symbol.asyncDispose]()
    await this.#keeper?.[Symbol.asyncDispose]()
    await this.jobs[Symbol.asyncDispose]()
    await this.notifications[Symbol.asyncDispose]()
    await Promise.all([this.#runs[Symbol.asyncDispose](), this.#workers?.[Symbol.asyncDispose]()])
    await this.openRuns[Symbol.asyncDispose]()
    await this.store[Symbol.asyncDispose]()
  }
}

const noRegions = () =>
  new ScrapeError('E_OPTION', 'this server runs scrapers itself: there are no regions', {
    fix: 'Leave region out, or give the server a fleet’s queue with --frontier.',
  })

function serversOf({ values: { frontier, store, redis } }: Config): [name: string, url: string][] {
  const named: [string, string | undefined][] = [
    ['queue', frontier],
    ['redis', redis],
  ]
  return named.filter(
    (one): one is [string, string] => one[1] !== undefined && one[1] !== store && parseEngineUrl(one[1]).isShared,
  )
}

function flagsOf({ pages, concurrency, retries, perHost }: RunLimits): Record<string, unknown> {
  const flags = { pages, concurrency, retries, perHost: perHost?.concurrency, rps: perHost?.rps }
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
}

function argsSchemaOf(args: object | undefined) {
  if (!(args instanceof z.ZodType)) return null
  // Contains names such as `password`, but no values.
  return verbatim(JSON.parse(JSON.stringify(z.toJSONSchema(args, { io: 'input', unrepresentable: 'any' }))))
}
