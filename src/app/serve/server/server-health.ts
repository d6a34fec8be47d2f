/** The health of the server and its scrapers: for `/v1/health`, `/readyz` and `/metrics`. */

import { LRUCache } from 'lru-cache'
import { VERSION } from '../../../config/user-agent.ts'
import { openResourceMonitor } from '../../../fleet/resources.ts'
import { oneAtATime, waitForAnswers } from '../../../observe/bounded-questions.ts'
import { createHistogram } from '../../../observe/histogram.ts'
import { type Metrics, openMetrics, type ScraperTimes } from '../../../observe/metrics.ts'
import type { ListedRun } from '../../../runs/run-list.ts'
import type { LeaderSeen } from '../../../server/access/leader.ts'
import type { Schedule } from '../../../server/schedule/contract.ts'
import { longestGapMs } from '../../../server/schedule/cron.ts'
import type { Store } from '../../../store/contract.ts'
import { logIn } from '../../doctor/log-in.ts'
import { machineNumbers } from '../../run/run-metrics.ts'

export interface HealthParts {
  store: Store
  /** The queue's servers, if they differ from the store's. */
  servers: readonly [name: string, url: string][]
  listRuns(): Promise<ListedRun[]>
  listSchedules(): Promise<readonly Schedule[]>
  /** The server that runs schedules and webhooks, this one or another. */
  scheduler(): Promise<LeaderSeen>
  /** Webhook deliveries by outcome. */
  deliveries(): Readonly<Record<string, number>>
  /** A path on the disk to watch. */
  disk: string
}

/** Other code waits for a database that is down; a health check must answer now. */
const CHECK_MS_MAX = 2_000
/** Latencies cover the last minutes, in two slices of this length. */
const SLICE_MS = 5 * 60_000
/** A pattern's longest gap changes only with daylight saving time, and takes up to 60 ms to find. */
const GAP_FRESH_MS = 24 * 3_600_000
const GAPS_MAX = 1000

export interface Check {
  name: string
  ok: boolean
  ms: number
  problem: string | null
}

async function check(name: string, asked: Promise<unknown>): Promise<Check> {
  const startedMs = performance.now()
  const answered = asked.then(
    () => null,
    (error: Error) => error.message,
  )
  const late = new Promise<string>((resolve) =>
    setTimeout(resolve, CHECK_MS_MAX, `no answer within ${CHECK_MS_MAX} ms`).unref(),
  )
  const problem = await Promise.race([answered, late])
  return { name, ok: problem === null, ms: performance.now() - startedMs, problem }
}

export class ServerHealth {
  readonly #parts: HealthParts
  #slices = [createHistogram(), createHistogram()]
  #slicedAtMs = performance.now()
  readonly #startedAtMs = Date.now()
  #requests = 0
  #faults = 0
  #metrics: Promise<Metrics> | undefined
  readonly #watched = new Set<string>()
  readonly #listWorkers = oneAtATime(() => this.#parts.store.listWorkers())
  readonly #gapsMs = new LRUCache<string, number>({ max: GAPS_MAX, ttl: GAP_FRESH_MS })

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  onAnswer(ms: number, status: number): void {
    this.#requests++
    if (status >= 500) this.#faults++
    if (performance.now() - this.#slicedAtMs > SLICE_MS) {
      this.#slices = [createHistogram(), this.#slices[0]!]
      this.#slicedAtMs = performance.now()
    }
    this.#slices[0]!.add(ms)
  }

  /** Never throws: a store that cannot be queried is not ok, with the reason. */
  checkStore(): Promise<Check> {
    return check('store', this.#parts.store.listRuns({ limit: 1 }))
  }

  /** The store, and the queue's servers. */
  checks(): Promise<Check[]> {
    const servers = this.#parts.servers.map(([name, url]) => check(name, logIn(url)))
    return Promise.all([this.checkStore(), ...servers])
  }

  async report() {
    const store = await this.checkStore()
    const [runs, workers, scheduler] = store.ok
      ? await Promise.all([this.#parts.listRuns(), this.#listWorkers(), this.#parts.scheduler()])
      : [[], [], { isThere: false, atMs: undefined }]
    const moving = runs.filter(({ isAlive }) => isAlive)
    const sum = (of: (run: ListedRun) => number) => moving.reduce((all, run) => all + of(run), 0)
    const inState = (state: string) => workers.filter((worker) => worker.state === state).length
    // Use the busier slice: a new one has seen too little.
    const times = this.#slices[0]!.count >= this.#slices[1]!.count ? this.#slices[0]! : this.#slices[1]!
    return {
      store,
      runs: { running: moving.length, paused: runs.filter(({ state }) => state === 'paused').length },
      queue: { remaining: sum(({ numbers }) => numbers.remaining), dead: sum(({ numbers }) => numbers.dead) },
      workers: { working: inState('working'), draining: inState('draining'), stuck: inState('stuck') },
      scheduler: {
        isThere: scheduler.isThere,
        seenAt: scheduler.atMs === undefined ? null : new Date(scheduler.atMs).toISOString(),
      },
      scrapers: [...Map.groupBy(runs, ({ scraper }) => scraper)].map(([name, own]) => scraperHealth(name, own)),
      api: {
        requests: this.#requests,
        faults: this.#faults,
        p50Ms: times.quantile(0.5),
        p95Ms: times.quantile(0.95),
        p99Ms: times.quantile(0.99),
      },
    }
  }

  /** Includes queues and workers of the running runs, in addition to the process's own metrics. */
  async metricsText(): Promise<{ contentType: string; text: string }> {
    this.#metrics ??= this.#openMetrics()
    const metrics = await this.#metrics
    await waitForAnswers([() => this.#watchScrapers(metrics)], CHECK_MS_MAX)
    return { contentType: metrics.contentType, text: await metrics.render() }
  }

  async #watchScrapers(metrics: Metrics): Promise<void> {
    for (const { scraper } of await this.#parts.listRuns()) {
      if (this.#watched.has(scraper)) continue
      this.#watched.add(scraper)
      metrics.watchQueue(scraper, () => this.#queueOf(scraper))
      metrics.watchWorkers(scraper, async () =>
        (await this.#listWorkers()).flatMap((one) => (one.scraper === scraper ? [one.state] : [])),
      )
    }
  }

  async #openMetrics(): Promise<Metrics> {
    const metrics = await openMetrics({ version: VERSION })
    const monitor = openResourceMonitor({ disk: this.#parts.disk })
    metrics.watchRuns(() => this.#scraperTimes())
    metrics.watchScheduler(async () => (await this.#parts.scheduler()).atMs)
    metrics.watchDeliveries(this.#parts.deliveries)
    metrics.watchMachine(() => machineNumbers(monitor.snapshot()))
    return metrics
  }

  /** Read from the store, so that it survives a restart. */
  async #scraperTimes(): Promise<ScraperTimes[]> {
    const { listRuns, listSchedules, store } = this.#parts
    const [runs, schedules, stored] = await Promise.all([listRuns(), listSchedules(), store.lastSuccesses()])
    const asked = schedules.filter(({ isPaused }) => !isPaused)
    const scrapers = new Set([...stored.keys(), ...[...runs, ...asked].map(({ scraper }) => scraper)])
    return [...scrapers].map((scraper) => {
      // Runs in folders appear only in this list.
      const success = runs.find((run) => run.scraper === scraper && run.state === 'finished' && run.finishedAt !== null)
      const own = asked.filter((schedule) => schedule.scraper === scraper)
      return {
        scraper,
        lastSuccessAtMs: latest(stored.get(scraper), success && Date.parse(success.finishedAt!)),
        schedule:
          own.length === 0
            ? undefined
            : {
                intervalMs: Math.min(...own.map((schedule) => this.#intervalMs(schedule))),
                sinceMs: Math.min(...own.map(({ createdAtMs }) => createdAtMs)),
              },
      }
    })
  }

  /** For a cron with gaps of unequal length (nights, weekends) the longest one: a quiet Sunday must not raise an alert. */
  #intervalMs({ cron, tz, nextAtMs }: Schedule): number {
    const key = `${cron} ${tz}`
    const gapMs = this.#gapsMs.get(key) ?? longestGapMs(cron, tz, nextAtMs)
    this.#gapsMs.set(key, gapMs)
    return gapMs
  }

  /** Includes runs that ended since the server started, so that their counts do not vanish when they end. */
  async #queueOf(scraper: string) {
    // A run whose workers all died or hang is not alive, but its queue is waiting anyway.
    const waits = ({ isAlive, state }: ListedRun) => isAlive || state === 'running'
    const isNew = ({ finishedAt }: ListedRun) => finishedAt !== null && Date.parse(finishedAt) >= this.#startedAtMs
    const runs = (await this.#parts.listRuns()).filter((run) => run.scraper === scraper && (waits(run) || isNew(run)))
    const waiting = runs.filter(waits)
    const sum = (some: readonly ListedRun[], of: (numbers: ListedRun['numbers']) => number) =>
      some.reduce((all, { numbers }) => all + of(numbers), 0)
    return {
      pending: sum(waiting, ({ pending }) => pending),
      claimed: sum(waiting, ({ claimed }) => claimed),
      completed: sum(runs, ({ completed }) => completed),
      failed: sum(runs, ({ failed }) => failed),
      dead: sum(runs, ({ dead }) => dead),
      lanes: sumLanes(waiting),
      oldestAgeMs: oldestAgeMs(waiting),
    }
  }
}

function latest(...timesMs: (number | undefined)[]): number | undefined {
  const known = timesMs.filter((timeMs) => timeMs !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

function sumLanes(runs: readonly ListedRun[]): ListedRun['numbers']['lanes'] {
  const sums: ListedRun['numbers']['lanes'] = {}
  for (const [lane, { pending, claimed }] of runs.flatMap(({ numbers }) => Object.entries(numbers.lanes))) {
    sums[lane] ??= { pending: 0, claimed: 0 }
    sums[lane].pending += pending
    sums[lane].claimed += claimed
  }
  return sums
}

function oldestAgeMs(runs: readonly ListedRun[]): number | undefined {
  const ages = runs.flatMap(({ numbers }) => numbers.oldestAgeMs ?? [])
  return ages.length === 0 ? undefined : Math.max(...ages)
}

/** `runs` are sorted newest first. */
function scraperHealth(name: string, runs: readonly ListedRun[]) {
  const ended = runs.filter(({ isAlive, state }) => !isAlive && state !== 'paused')
  const lastGood = ended.find(({ state }) => state === 'finished')
  const [last] = ended
  const recent = ended.slice(0, 10)
  return {
    name,
    status: last === undefined ? 'running' : last.state,
    lastRun: runs[0]?.id ?? null,
    lastSuccessAt: lastGood?.finishedAt ?? null,
    successRate: recent.length === 0 ? null : recent.filter(({ state }) => state === 'finished').length / recent.length,
  }
}
