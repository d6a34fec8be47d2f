/** Prometheus metrics, fed by events. Which ones there are is in `metrics-table.ts`. */
import type { EventBus } from '../core/events.ts'
import { optionalPackage } from '../core/optional-package.ts'
import { isFileLane } from '../core/task.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { oneAtATime, waitForAnswers } from './bounded-questions.ts'
import { createInstruments } from './metrics-instruments.ts'
import { MetricsListener, type MetricsShared, type PoolSizes } from './metrics-listener.ts'

export interface Metrics {
  readonly contentType: string
  /** The exposition text. What does not answer in time keeps its last values: an outage is when metrics are wanted most. */
  render(): Promise<string>
  /** Listens to one run of a scraper: events do not name it. Returns how to leave: what is of the run only goes, counters go on. */
  watchEvents(scraper: string, bus: Pick<EventBus, 'on'>): () => void
  /** Asks the frontier for its counts at each scrape. Returns how to stop. */
  watchQueue(scraper: string, stats: () => Promise<QueueCounts>): () => void
  /** Asks the store for the states of a fleet's workers at each scrape. Returns how to stop. */
  watchWorkers(scraper: string, states: () => Promise<readonly string[]>): () => void
  /** Looks at the machine at each scrape. Returns how to stop. */
  watchMachine(look: () => MachineNumbers): () => void
  /** Asks for the deliveries of webhooks by outcome, counted since the start, at each scrape. Returns how to stop. */
  watchDeliveries(counts: () => Readonly<Record<string, number>>): () => void
  /** Asks at each scrape when scrapers last succeeded and how often they should. Returns how to stop. */
  watchRuns(ask: () => Promise<readonly ScraperTimes[]>): () => void
  /** Asks at each scrape for the last heartbeat of the server that runs schedules and webhooks. Returns how to stop. */
  watchScheduler(seenAtMs: () => Promise<number | undefined>): () => void
}

type QueueCounts = Pick<
  FrontierStats,
  'pending' | 'claimed' | 'completed' | 'failed' | 'dead' | 'lanes' | 'oldestAgeMs'
>

export interface ScraperTimes {
  scraper: string
  lastSuccessAtMs: number | undefined
  /** Time between two runs, and since when that is so, where there is a schedule. */
  schedule: { intervalMs: number; sinceMs: number } | undefined
}

/** What the machine and the pools of this process look like now. */
export interface MachineNumbers {
  /** 1 is all that may be used. */
  cpuRatio: number
  memory: { usedBytes: number; freeBytes: number }
  diskFreeBytes: number
  diskTotalBytes: number
  loopLagMs: number
}

interface MetricsOptions {
  version: string
  now?: () => number
  /** Process and Node metrics too. Default true. */
  withProcess?: boolean
  /** How long a scrape waits for frontier and store. Default 1.5 s. */
  answerMsMax?: number
}

/** Label values that come from outside are bounded: after so many, `other`. */
const HOSTS_MAX = 200
const ROUTES_MAX = 100
const CLASSES_MAX = 50
const VENDORS_MAX = 100
const PROXIES_MAX = 200
const FIELDS_MAX = 200
const WORKERS_MAX = 200
const WORKER_FORGOTTEN_MS = 600_000
/** Prometheus gives a scrape 10 s, and a probe less. */
const ANSWER_MS_MAX = 1_500
const QUEUE_STATES = ['pending', 'claimed', 'completed', 'failed', 'dead'] as const
const FILE_STATES = ['pending', 'claimed'] as const
const WORKER_STATES = ['working', 'draining', 'stuck'] as const

/** Only runs with metrics pay the 15 MB of prom-client. Throws `E_PACKAGE_MISSING`. */
export async function openMetrics(options: MetricsOptions): Promise<Metrics> {
  const prom = await optionalPackage('metrics need', 'prom-client', () => import('prom-client'))
  const { now = Date.now, answerMsMax = ANSWER_MS_MAX } = options
  const registry = new prom.Registry()
  const m = createInstruments(prom, registry)
  if (options.withProcess ?? true) prom.collectDefaultMetrics({ register: registry })
  m.schedulerSeen.remove() // it would be 0, which says that there never was one, from processes that do not know
  m.buildInfo.set({ version: options.version, node: process.version }, 1)

  const workers = new Map<string, number>()
  const pools = new Map<string, PoolSizes>()
  /** By what they ask for; each keeps what it is told by itself. */
  const questions = new Map<string, () => Promise<void>>()
  let lookAtMachine: (() => MachineNumbers) | undefined
  let countDeliveries: (() => Readonly<Record<string, number>>) | undefined
  const shared: MetricsShared = {
    now,
    hosts: boundedNames(HOSTS_MAX),
    routes: boundedNames(ROUTES_MAX),
    classes: boundedNames(CLASSES_MAX),
    vendors: boundedNames(VENDORS_MAX),
    proxies: boundedNames(PROXIES_MAX),
    fields: boundedNames(FIELDS_MAX),
    pools(worker, sizes) {
      if (sizes === undefined) pools.delete(worker)
      else if (pools.has(worker) || pools.size < WORKERS_MAX) pools.set(worker, sizes)
      const sum = { open: 0, free: 0, files: 0 }
      for (const { open, free, files } of pools.values()) {
        sum.open += open
        sum.free += free
        sum.files += files
      }
      return sum
    },
    heardOf(worker) {
      if (!workers.has(worker) && workers.size >= WORKERS_MAX) forgetSilentWorkers()
      if (!workers.has(worker) && workers.size >= WORKERS_MAX) return false
      workers.set(worker, now())
      return true
    },
    forgetWorker,
  }

  function forgetSilentWorkers(): void {
    for (const [worker, atMs] of workers) {
      if (now() - atMs <= WORKER_FORGOTTEN_MS) continue
      pools.delete(worker)
      forgetWorker(worker)
    }
  }

  function forgetWorker(worker: string): void {
    workers.delete(worker)
    m.workerInFlight.remove({ worker })
    m.workerHeartbeat.remove({ worker })
  }

  /** What is asked at each scrape under this name, from now on. `show` gets no answer that came after it was replaced. */
  function watch<T>(name: string, ask: () => Promise<T>, show: (answer: T) => void, hide = () => {}): () => void {
    const question = oneAtATime(async () => {
      const answer = await ask()
      if (questions.get(name) === question) show(answer)
    })
    questions.set(name, question)
    return () => {
      if (questions.get(name) !== question) return
      questions.delete(name)
      hide()
    }
  }

  function showQueue(scraper: string, counts: QueueCounts): void {
    for (const state of QUEUE_STATES) m.queueTasks.set({ scraper, state }, counts[state])
    if (counts.oldestAgeMs === undefined) m.queueOldestAge.remove({ scraper })
    else m.queueOldestAge.set({ scraper }, counts.oldestAgeMs / 1000)
    const files = Object.entries(counts.lanes).filter(([lane]) => isFileLane(lane))
    for (const state of FILE_STATES) {
      m.fileTasks.set(
        { scraper, state },
        files.reduce((sum, [, lane]) => sum + lane[state], 0),
      )
    }
  }

  function askMachine(): void {
    const numbers = lookAtMachine?.()
    if (numbers === undefined) return
    m.cpuUsage.set(numbers.cpuRatio)
    m.memory.set({ state: 'used' }, numbers.memory.usedBytes)
    m.memory.set({ state: 'free' }, numbers.memory.freeBytes)
    m.diskFree.set(numbers.diskFreeBytes)
    m.diskTotal.set(numbers.diskTotalBytes)
    m.loopLag.set(numbers.loopLagMs / 1000)
  }

  function askDeliveries(): void {
    if (countDeliveries === undefined) return
    m.webhookDeliveries.reset()
    for (const [outcome, count] of Object.entries(countDeliveries())) m.webhookDeliveries.inc({ outcome }, count)
  }

  function showTimes(scrapers: readonly ScraperTimes[]): void {
    m.scheduleInterval.reset() // a schedule that is gone or paused asks for nothing
    m.scheduleSince.reset()
    for (const { scraper, lastSuccessAtMs, schedule } of scrapers) {
      if (lastSuccessAtMs !== undefined) m.lastSuccess.set({ scraper }, lastSuccessAtMs / 1000)
      if (schedule === undefined) continue
      m.scheduleInterval.set({ scraper }, schedule.intervalMs / 1000)
      m.scheduleSince.set({ scraper }, schedule.sinceMs / 1000)
    }
  }

  return {
    contentType: registry.contentType,
    async render() {
      forgetSilentWorkers()
      await waitForAnswers(questions.values(), answerMsMax)
      askMachine()
      askDeliveries()
      return registry.metrics()
    },
    watchEvents(scraper, bus) {
      const listener = new MetricsListener(m, shared, scraper)
      const unlisten = bus.on(listener.listen)
      return () => {
        unlisten()
        listener.leave()
      }
    },
    watchQueue: (scraper, stats) =>
      watch(
        `queue of ${scraper}`,
        stats,
        (counts) => showQueue(scraper, counts),
        () => {
          m.queueOldestAge.remove({ scraper })
          for (const state of QUEUE_STATES) m.queueTasks.remove({ scraper, state })
          for (const state of FILE_STATES) m.fileTasks.remove({ scraper, state })
        },
      ),
    watchWorkers: (scraper, states) =>
      watch(
        `workers of ${scraper}`,
        states,
        (all) => {
          for (const state of WORKER_STATES)
            m.workers.set({ scraper, state }, all.filter((one) => one === state).length)
        },
        () => {
          for (const state of WORKER_STATES) m.workers.remove({ scraper, state })
        },
      ),
    watchRuns: (ask) => watch('runs', ask, showTimes),
    // Never seen is 0: whoever waits for one is to hear of it.
    watchScheduler: (seenAtMs) => watch('scheduler', seenAtMs, (atMs = 0) => m.schedulerSeen.set(atMs / 1000)),
    watchMachine(look) {
      lookAtMachine = look
      return () => {
        lookAtMachine = undefined
      }
    },
    watchDeliveries(counts) {
      countDeliveries = counts
      return () => {
        countDeliveries = undefined
      }
    },
  }
}

/** The first `max` names pass, all further ones become `other`. */
function boundedNames(max: number): (name: string) => string {
  const names = new Set<string>()
  return (name) => {
    if (names.has(name)) return name
    if (names.size >= max) return 'other'
    names.add(name)
    return name
  }
}
