/**
 * What outlives a worker's runs: its metrics, whose counters continue from run to run, and `/healthz`, which is available from
 * the start of the process to its end.
 */
import type { EventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { openProcessMetrics } from '../run/run-metrics.ts'

interface VitalsOptions {
  /** `HOST:PORT`; undefined: nothing is served. */
  address: string | undefined
  region: string | undefined
  /** The worker takes tasks of this type of the task protocol instead of runs: it needs no store, but always its queue. */
  type?: string | undefined
  /** A path on the disk to watch. */
  disk: string
  say: (level: 'info' | 'warn', message: string) => void
  now?: () => number
}

export interface JoinedRun {
  workerId: string
  runId: string
  scraper: string
  frontier: Frontier
  bus: EventBus
  /** The states of all workers of the run. */
  workerStates: () => Promise<readonly string[]>
}

export interface Vitals extends AsyncDisposable {
  /** `http://127.0.0.1:9090`; undefined when nothing is served. */
  readonly url: string | undefined
  /** Works on this run from now on, until the returned object is disposed of. */
  join(run: JoinedRun): Disposable
  /** The service has just answered. */
  heardOf(service: Service): void
  /** The worker takes nothing more. */
  drain(reason: string): void
  health(): { problem?: string; [name: string]: unknown }
}

type Service = 'store' | 'queue'

/** A service that has been silent this long counts as down, and health checks report it. */
export const AWAY_MS = 60_000

export async function openVitals(options: VitalsOptions): Promise<Vitals> {
  const { address, region, type, disk, say, now = Date.now } = options
  const parts = new AsyncDisposableStack()
  let run: JoinedRun | undefined
  let lastWorker: string | undefined
  let draining: string | undefined
  const heardAtMs: Record<Service, number> = { store: now(), queue: now() }

  const needed = (): readonly Service[] => {
    if (type !== undefined) return ['queue']
    return run === undefined ? ['store'] : ['store', 'queue'] // between runs there is no queue to watch
  }
  const awayText = (): string | undefined => {
    const away = needed().filter((one) => now() - heardAtMs[one] > AWAY_MS)
    if (away.length === 0) return undefined
    const silentMs = now() - Math.min(...away.map((one) => heardAtMs[one]))
    return `the ${away.join(' and the ')} did not answer for ${Math.round(silentMs / 1000)} s`
  }
  const health = () => {
    const problem = draining === undefined ? awayText() : `draining: ${draining}`
    return {
      problem,
      worker: run?.workerId ?? lastWorker ?? null,
      runId: run?.runId ?? null,
      scraper: run?.scraper ?? null,
      region: region ?? null,
      type,
    }
  }
  const served =
    address === undefined
      ? undefined
      : parts.use(await openProcessMetrics({ address, disk, say, health, queue: () => run?.frontier }))

  return {
    url: served?.url,
    health,
    join(joined) {
      run = joined
      lastWorker = joined.workerId
      heardAtMs.queue = now()
      const leave = served === undefined ? () => {} : watch(served.metrics, joined)
      return {
        [Symbol.dispose]() {
          leave()
          if (run === joined) run = undefined
        },
      }
    },
    heardOf(service) {
      heardAtMs[service] = now()
    },
    drain(reason) {
      draining ??= reason
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

/** Returns a function that stops watching. Counters keep their values. */
function watch(metrics: Metrics, { scraper, bus, frontier, workerStates }: JoinedRun): () => void {
  const leave = metrics.watchEvents(scraper, bus)
  const unwatchQueue = metrics.watchQueue(scraper, () => frontier.stats())
  const unwatchWorkers = metrics.watchWorkers(scraper, workerStates)
  return () => {
    leave()
    unwatchQueue()
    unwatchWorkers()
  }
}
