/**
 * What of a worker outlives its runs: its metrics, whose counters go on from run to run, and `/healthz`, which probes ask from the
 * process's start to its end.
 */
import type { EventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { openProcessMetrics } from '../run/run-metrics.ts'

interface VitalsOptions {
  /** `HOST:PORT`; undefined: nothing is served. */
  address: string | undefined
  region: string | undefined
  /** It takes tasks of this type of the task protocol, not runs: it needs no store, and its queue all the time. */
  type?: string | undefined
  /** A path on the disk that is watched. */
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
  /** States of all workers of the run. */
  workerStates: () => Promise<readonly string[]>
}

export interface Vitals extends AsyncDisposable {
  /** `http://127.0.0.1:9090`; undefined when nothing is served. */
  readonly url: string | undefined
  /** From now on it works on this run, until what is returned is disposed of. */
  join(run: JoinedRun): Disposable
  /** It has just answered. */
  heardOf(service: Service): void
  /** It takes nothing more. */
  drain(reason: string): void
  health(): { problem?: string; [name: string]: unknown }
}

type Service = 'store' | 'queue'

/** A service that has been silent this long is away: whoever watches the worker should know. */
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
    return run === undefined ? ['store'] : ['store', 'queue'] // between runs there is no queue to hear of
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
      ...(problem === undefined ? {} : { problem }),
      worker: run?.workerId ?? lastWorker ?? null,
      runId: run?.runId ?? null,
      scraper: run?.scraper ?? null,
      region: region ?? null,
      ...(type === undefined ? {} : { type }),
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

/** Returns how to stop. Counters stay as they are. */
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
