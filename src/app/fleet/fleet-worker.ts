/**
 * A fleet worker: joins a run that other workers share, does its part, and ends when nothing is left.
 *
 *   join ──▶ wait until the queue is filled ──▶ work ──▶ nothing remains ──▶ the first worker to notice finishes the run
 *                                                │
 *                                                └─ SIGTERM · drain requested · run cancelled ──▶ hand back tasks, end
 *
 * Every 2 s it sends a heartbeat to the store, and the reply says what to do.
 */

import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Config } from '../../config/config.ts'
import type { LoadedScraper } from '../../config/load-scraper.ts'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { userAgent } from '../../config/user-agent.ts'
import { systemClock } from '../../core/clock.ts'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { EventBus, RunEvent } from '../../core/events.ts'
import { residentBytes } from '../../core/resident-memory.ts'
import type { RunRecord } from '../../core/run.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import type { Tally } from '../../observe/tally.ts'
import { countPages, recordsBeside } from '../../runs/file-records.ts'
import { storeUrlOf } from '../../runs/fleet-places.ts'
import { RunFolder } from '../../runs/run-folder.ts'
import { cacheStoreOf, redisUrlOf } from '../../runs/run-identity.ts'
import type { QueueSeen, Store, StoredRun, WorkerReport, WorkPart } from '../../store/contract.ts'
import { egressOf } from '../run/egress-options.ts'
import { LOSSES_MAX, sweep } from '../run/processes.ts'
import { traceRatioOf } from '../run/run-tracing.ts'
import { isFilled } from '../run/seed.ts'
import { work } from '../run/worker.ts'
import { browserSpecOf, fileSpecOf, type WorkerSpec } from '../run/worker-spec.ts'
import { leaveRun, loseRun } from './fleet-end.ts'
import { fleetPlace } from './fleet-place.ts'
import { openOwnTor } from './own-tor.ts'
import type { Vitals } from './worker-vitals.ts'

export interface FleetWorkerRequest {
  loaded: LoadedScraper
  config: Config
  /** Default: the newest running run of this scraper. */
  runId?: string
  /** Tasks claimed at once. */
  batchSize: number
  /** Stay when the queue is empty. */
  isForever: boolean
  /** Wait for hosts as long as it takes, regardless of `limits.wait`. Default false. */
  keepsWaiting?: boolean
  /** Fetch through the worker's own Tor daemon. */
  useTor: boolean
  /** Undefined: pages and files. */
  only?: WorkPart | undefined
  /** Metrics and health of the process, which this run reports to. */
  vitals?: Vitals | undefined
  /** Started by a server: its flags are defaults for all its runs, so the run's own limits take precedence. */
  isServed?: boolean
  onEvent?: (event: RunEvent) => void
}

export interface FleetWorker {
  readonly id: string
  readonly runId: string
  readonly limits: CompiledScraper['limits']
  readonly tally: Tally
  readonly startedAtMs: number
  stats(): Promise<FrontierStats>
  /** Finishes the tasks in progress and hands back the rest. May be called twice. */
  stop(reason: string): void
  /** Rejects only if the worker could not work at all. */
  readonly result: Promise<FleetWorkerEnd>
}

export interface FleetWorkerEnd {
  end: CrawlEnd
  reason: string | undefined
  /** The run's record as this worker left it. */
  record: RunRecord
  /** The worker was asked to drain. */
  isDrained: boolean
}

const BEAT_MS = 2_000
const FILL_POLL_MS = 500

interface LifeParts {
  request: FleetWorkerRequest
  store: Store
  run: StoredRun
  compiled: CompiledScraper
  frontier: Frontier
  bus: EventBus
  tally: Tally
  id: string
  /** Sent with the next heartbeat. */
  logLines: string[]
  parts: AsyncDisposableStack
}

/** From the first heartbeat to the end. */
export class WorkingLife {
  readonly #parts: LifeParts
  readonly #stop = new AbortController()
  /** The run may fetch no more pages, but the files of the pages it has must still be stored. */
  readonly #pagesOver = new AbortController()
  readonly #startedAtMs = Date.now()
  readonly #lag = monitorEventLoopDelay({ resolution: 20 })
  #inFlight = 0
  /** The run limit that ended this worker. */
  #limit: string | undefined
  #isDrained = false
  /** The queue's state when it was last queried. */
  #queue: QueueSeen | undefined

  /** Where the records of the run's files are. */
  readonly #records: string

  constructor(parts: LifeParts) {
    this.#parts = parts
    this.#records = recordsBeside(storeUrlOf(parts.request.config.values)!)
  }

  begin(): FleetWorker {
    const { id, run, compiled, tally, frontier } = this.#parts
    const result = this.#live()
    result.catch(() => {}) // callers that care await it
    return {
      id,
      runId: run.record.id,
      limits: compiled.limits,
      tally,
      startedAtMs: this.#startedAtMs,
      stats: () => frontier.stats(),
      stop: (reason) => this.#halt(reason),
      result,
    }
  }

  async #live(): Promise<FleetWorkerEnd> {
    const { bus, run, id, parts } = this.#parts
    await using _ = parts
    bus.on((event) => {
      if (event.type === 'worker.in-flight') this.#inFlight = event.inFlight
    })
    this.#lag.enable()
    const ended = new AbortController()
    const beating = this.#beatUntil(ended.signal)
    const sweeping = this.#sweepUntil(ended.signal)
    let end: CrawlEnd
    try {
      await this.#untilFilled()
      end = this.#stop.signal.aborted ? { how: 'stopped' } : await this.#work(run)
    } catch (error) {
      end = this.#stop.signal.aborted ? { how: 'stopped' } : { how: 'halted', error: toScrapeError(error, 'E_HANDLER') }
    }
    if (end.how === 'limit') this.#limit ??= pagesReached(this.#parts.compiled)
    ended.abort()
    await Promise.all([beating, sweeping])
    this.#lag.disable()
    bus.emit({ type: 'log', level: 'info', message: `worker ${id} ${end.how}` })
    const record = await this.#leave(end)
    const { reason } = this.#stop.signal
    return { end, reason: reason instanceof Error ? reason.message : undefined, record, isDrained: this.#isDrained }
  }

  async #work(run: StoredRun): Promise<CrawlEnd> {
    const { request, compiled, frontier, bus, store } = this.#parts
    const spec = await this.#spec(run)
    if (spec.pagesMax <= 0) this.#pagesOver.abort()
    await using tor = request.useTor ? await openOwnTor(spec.workerId, bus, this.#stop.signal) : undefined
    if (tor !== undefined) spec.proxy = tor.proxy
    const place = fleetPlace({ store, run, config: request.config, bus, limits: compiled.limits })
    await using _ = await countFailures(redisUrlOf(request.config.values), bus)
    const isOpenEnded = async () => request.isForever || !(await isFilled(frontier))
    const { signal: pagesOver } = this.#pagesOver
    return await work(
      spec,
      { compiled, frontier, bus, place, isOpenEnded, rotation: tor, pagesOver },
      this.#stop.signal,
    )
  }

  async #spec(run: StoredRun): Promise<WorkerSpec> {
    const { request, compiled, id } = this.#parts
    const { values } = request.config
    const { limits, scraper } = compiled
    return {
      workerId: id,
      only: request.only,
      args: checkArgs(scraper, run.record.args as Record<string, unknown>),
      concurrency: limits.concurrency,
      perHostConcurrency: limits.perHost.concurrency,
      pagesMax: limits.pages === undefined ? Number.MAX_SAFE_INTEGER : limits.pages - (await this.#pagesDone()),
      leaseMs: values.lease,
      drainMs: values.drainTimeout,
      userAgent:
        values.userAgent === undefined && values.contact === undefined ? run.options.userAgent : userAgent(values),
      allowPrivate: run.options.allowPrivate || values.allowPrivate,
      allowAddresses: [...run.options.allowAddress, ...values.allowAddress],
      cacheStore: cacheStoreOf(values),
      ways: egressOf(values),
      browsers: browserSpecOf(values),
      files: fileSpecOf(values, new RunFolder(join(values.out, scraper.name, run.record.id)), this.#records),
      memoryReserve: values.memoryReserve,
      claimMax: request.batchSize,
      isOneOfMany: true,
      traceRatio: traceRatioOf(values),
      recordTo: undefined,
    }
  }

  /**
   * Until the queue is filled, the hosts of the start tasks are not known, and an empty queue does not mean that the run is done.
   */
  async #untilFilled(): Promise<void> {
    const { frontier, bus, run } = this.#parts
    const { id, source } = run.record
    for (let polls = 0; !this.#stop.signal.aborted && !(await isFilled(frontier)); polls++) {
      if (polls === 0) {
        const again =
          (await frontier.getMeta('source')) === 'urls'
            ? `sluice produce --scraper ${source} --run-id ${id} with the same --sitemap, --site, --url or --urls-file`
            : `sluice start ${source} --mode distributed --resume ${id}`
        const message = `run ${id} is being filled: waiting (was that broken off? ${again})`
        bus.emit({ type: 'log', level: 'info', message })
      }
      await systemClock.sleep(FILL_POLL_MS, this.#stop.signal).catch(() => {})
    }
  }

  async #beatUntil(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await systemClock.sleep(BEAT_MS, ended).catch(() => {})
      // The store may be unreachable: the frontier reports that, and work continues once it is back.
      if (!ended.aborted) await this.#beat().catch(() => {})
    }
  }

  async #beat(): Promise<void> {
    const { store, id, run, frontier, compiled, request } = this.#parts
    const { isDrainAsked, nowMs } = await store.beat(id, this.#report())
    await this.#saveLogs()
    const { completed, failed, dead, remaining, seen, counts } = await frontier.stats()
    this.#queue = { completed, failed, dead, remaining, seen, counts }
    request.vitals?.heardOf('store')
    if (isDrainAsked) this.#drain()
    const asked = await frontier.getMeta('stop')
    request.vitals?.heardOf('queue')
    if (asked !== undefined && asked !== '') this.#halt(asked)
    const { pages, time } = compiled.limits
    if (time !== undefined && nowMs - run.wokenAtMs >= time) this.#reach('the time limit is reached')
    if (pages === undefined || request.only === 'files') return // file workers learn of it from the page workers
    if ((await this.#pagesDone()) >= pages) this.#pagesOver.abort()
  }

  #pagesDone(): Promise<number> {
    const { run, frontier } = this.#parts
    return countPages(this.#records, run.record.id, frontier)
  }

  /** Log lines are kept until they are saved. */
  async #saveLogs(): Promise<void> {
    const { store, run, logLines } = this.#parts
    const lines = logLines.slice()
    await store.addLogs(run.record.id, lines)
    logLines.splice(0, lines.length)
  }

  async #sweepUntil(ended: AbortSignal): Promise<void> {
    const { frontier, bus, request } = this.#parts
    const everyMs = request.config.values.lease / 2
    while (!ended.aborted) {
      await systemClock.sleep(everyMs, ended).catch(() => {})
      if (!ended.aborted) await sweep({ frontier, bus, lossesMax: LOSSES_MAX })
    }
  }

  #report(): WorkerReport {
    const { pages, items, files, fieldFill, bytes, latencyMs, rssBytesMax, cpuMs, errors } =
      this.#parts.tally.snapshot()
    const loopLagMs = Math.round(this.#lag.max / 1e6) || 0
    this.#lag.reset()
    return {
      tally: {
        pages: { ok: pages.ok, failed: pages.failed, retried: pages.retried, postponed: pages.postponed },
        items,
        files,
        fieldFill,
        bytes,
        latencyMs,
        rssBytesMax,
        cpuMs,
        errors: errors
          .filter(({ count }) => count > 0)
          .map(({ code, class: cls, count, example }) => ({ code, class: cls, count, example })),
      },
      inFlight: this.#inFlight,
      rssBytes: residentBytes(),
      loopLagMs,
      queue: this.#queue,
    }
  }

  #halt(reason: string): void {
    this.#stop.abort(new ScrapeError('E_STOPPED', reason))
  }

  #drain(): void {
    this.#isDrained = true
    this.#halt('drain was asked for')
  }

  #reach(limit: string): void {
    this.#limit = limit
    this.#halt(limit)
  }

  async #leave(end: CrawlEnd): Promise<RunRecord> {
    const { store, id, run, bus } = this.#parts
    try {
      await store.endWorker(id, this.#report())
      await this.#saveLogs()
      if (end.how === 'halted' && end.error.code === 'E_QUEUE_LOST') return await loseRun(this.#parts, end.error)
      return await leaveRun({ ...this.#parts, records: this.#records }, { end, limit: this.#limit })
    } catch (error) {
      if (end.how !== 'halted') bus.emit({ type: 'log', level: 'error', message: (error as Error).message })
      return run.record
    }
  }
}

/** Counts `failures:{url}` in Redis, if there is one, for people who look with redis-cli. */
async function countFailures(redisUrl: string | undefined, bus: EventBus): Promise<AsyncDisposable | undefined> {
  if (redisUrl === undefined) return undefined
  const { openRedisFailures } = await import('../../fetch/cache/redis-failures.ts')
  const failures = await openRedisFailures({ url: redisUrl })
  const unlisten = bus.on((event) => {
    if (event.type === 'page' && event.error !== undefined) failures.count(event.url)
  })
  return {
    async [Symbol.asyncDispose]() {
      unlisten()
      await failures[Symbol.asyncDispose]()
    },
  }
}

function pagesReached({ limits }: CompiledScraper): string {
  return `the limit of ${limits.pages} pages is reached`
}
