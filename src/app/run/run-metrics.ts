/** `--metrics`: feeds a run's events to the metrics and serves them. Loaded only when asked for. */
import type { EventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { MachineNumbers } from '../../observe/metrics.ts'
import type { ResourceSnapshot } from '../../orchestrator/resources.ts'
import { VERSION } from '../user-agent.ts'
import { FILE_WORKER_BYTES } from './machine-side.ts'

export interface RunMetricsParts {
  address: string
  scraper: string
  runId: string
  frontier: Frontier
  bus: EventBus
  /** A path on the disk that is watched. */
  disk: string
  /** States of all workers of the run, where there is a fleet. */
  workerStates?: () => Promise<readonly string[]>
}

export async function openMetricsServer({
  address,
  scraper,
  runId,
  frontier,
  bus,
  disk,
  workerStates,
}: RunMetricsParts): Promise<AsyncDisposable> {
  const [{ openMetrics }, { serveMetrics }, { openResourceMonitor }, { snapshotReport }] = await Promise.all([
    import('../../observe/metrics.ts'),
    import('../../observe/serve-metrics.ts'),
    import('../../orchestrator/resources.ts'),
    import('../../orchestrator/resources-policy.ts'),
  ])
  const monitor = openResourceMonitor({ disk })
  const metrics = await openMetrics({ version: VERSION })
  const unlisten = bus.on(metrics.listener(scraper))
  const unwatch = metrics.watchQueue(scraper, () => frontier.stats())
  if (workerStates !== undefined) metrics.watchWorkers(scraper, workerStates)
  metrics.watchMachine(() => machineNumbers(monitor.snapshot()))
  const snapshot = async () => {
    const { lanes } = await frontier.stats()
    const queues = Object.fromEntries(Object.entries(lanes).map(([lane, { pending }]) => [lane, pending]))
    return snapshotReport(monitor.snapshot(), { queues, bytesPerWorker: FILE_WORKER_BYTES })
  }
  const say = (level: 'info' | 'warn') => (message: string) => bus.emit({ type: 'log', level, message })
  const server = await serveMetrics({ address, metrics, health: () => ({ runId }), snapshot, warn: say('warn') })
  say('info')(`metrics are at ${server.url}/metrics`)
  return {
    async [Symbol.asyncDispose]() {
      await server.close()
      monitor[Symbol.dispose]()
      unwatch()
      unlisten()
    },
  }
}

export function machineNumbers({ cpu, memory, disk, eventLoop }: ResourceSnapshot): MachineNumbers {
  return {
    cpuRatio: cpu.usage,
    memory: { usedBytes: memory.usedBytes, freeBytes: memory.freeBytes },
    diskFreeBytes: disk?.freeBytes ?? 0,
    diskTotalBytes: disk?.totalBytes ?? 0,
    loopLagMs: eventLoop.p95Ms,
  }
}
