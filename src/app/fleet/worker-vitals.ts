/**
 * What of a worker outlives its runs: its metrics, whose counters go on from run to run, and `/healthz`, which probes ask from the
 * process's start to its end.
 */
import type { EventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { Metrics, QueueCounts } from '../../observe/metrics.ts'
import { FILE_WORKER_BYTES } from '../run/machine-side.ts'
import { machineNumbers } from '../run/run-metrics.ts'
import { VERSION } from '../user-agent.ts'

export interface VitalsOptions {
  /** `HOST:PORT`; undefined: nothing is served. */
  address: string | undefined
  region: string | undefined
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

export type Service = 'store' | 'queue'

/** A service that has been silent this long is away: whoever watches the worker should know. */
export const AWAY_MS = 60_000

const NO_TASKS: QueueCounts = { pending: 0, claimed: 0, completed: 0, failed: 0, dead: 0, lanes: {} }

export async function openVitals({ address, region, disk, say, now = Date.now }: VitalsOptions): Promise<Vitals> {
  const parts = new AsyncDisposableStack()
  let run: JoinedRun | undefined
  let lastWorker: string | undefined
  let draining: string | undefined
  const heardAtMs: Record<Service, number> = { store: now(), queue: now() }

  const awayText = (): string | undefined => {
    // Between runs there is no queue to hear of.
    const services: readonly Service[] = run === undefined ? ['store'] : ['store', 'queue']
    const away = services.filter((one) => now() - heardAtMs[one] > AWAY_MS)
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
    }
  }
  const served =
    address === undefined
      ? undefined
      : await serveThem(address, { disk, say, health, queue: () => run?.frontier, parts })

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

/** Returns how to stop. Counters stay as they are; what was asked of the run's queue is nobody's number any more. */
function watch(metrics: Metrics, { scraper, bus, frontier, workerStates }: JoinedRun): () => void {
  const unlisten = bus.on(metrics.listener(scraper))
  metrics.watchQueue(scraper, () => frontier.stats())
  metrics.watchWorkers(scraper, workerStates)
  return () => {
    unlisten()
    metrics.watchQueue(scraper, async () => NO_TASKS)
    metrics.watchWorkers(scraper, async () => [])
  }
}

interface ServingParts extends Pick<VitalsOptions, 'disk' | 'say'> {
  health: Vitals['health']
  queue: () => Frontier | undefined
  parts: AsyncDisposableStack
}

/** prom-client costs 15 MB: loaded only when asked for. */
async function serveThem(address: string, { disk, say, health, queue, parts }: ServingParts) {
  const [{ openMetrics }, { serveMetrics }, { openResourceMonitor }, { snapshotReport }] = await Promise.all([
    import('../../observe/metrics.ts'),
    import('../../observe/serve-metrics.ts'),
    import('../../orchestrator/resources.ts'),
    import('../../orchestrator/resources-policy.ts'),
  ])
  const monitor = parts.use(openResourceMonitor({ disk }))
  const metrics = await openMetrics({ version: VERSION })
  metrics.watchMachine(() => machineNumbers(monitor.snapshot()))
  const snapshot = async () => {
    const { lanes } = (await queue()?.stats()) ?? NO_TASKS
    const queues = Object.fromEntries(Object.entries(lanes).map(([lane, { pending }]) => [lane, pending]))
    return snapshotReport(monitor.snapshot(), { queues, bytesPerWorker: FILE_WORKER_BYTES })
  }
  const server = parts.use(
    await serveMetrics({ address, metrics, health, snapshot, warn: (line) => say('warn', line) }),
  )
  say('info', `metrics are at ${server.url}/metrics`)
  return { metrics, url: server.url }
}
