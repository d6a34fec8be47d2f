/** `--metrics`: serves the metrics of a process from the moment it is opened. Loaded only on demand: prom-client costs 15 MB. */

import { VERSION } from '../../config/user-agent.ts'
import type { EventBus } from '../../core/events.ts'
import type { ResourceSnapshot } from '../../fleet/resources.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { MachineNumbers, Metrics } from '../../observe/metrics.ts'
import type { MetricsServerOptions } from '../../observe/serve-metrics.ts'
import { FILE_WORKER_BYTES } from './worker-resources.ts'

interface ProcessMetricsParts {
  address: string
  /** A path on the disk to watch. */
  disk: string
  say: (level: 'info' | 'warn', message: string) => void
  health: NonNullable<MetricsServerOptions['health']>
  /** The current queue, if there is one. */
  queue: () => Frontier | undefined
}

interface ProcessMetrics extends AsyncDisposable {
  readonly metrics: Metrics
  readonly url: string
}

export async function openProcessMetrics(parts: ProcessMetricsParts): Promise<ProcessMetrics> {
  const { address, disk, say, health, queue } = parts
  const [{ openMetrics }, { serveMetrics }, { openResourceMonitor }, { snapshotReport }] = await Promise.all([
    import('../../observe/metrics.ts'),
    import('../../observe/serve-metrics.ts'),
    import('../../fleet/resources.ts'),
    import('../../fleet/resources-policy.ts'),
  ])
  await using opening = new AsyncDisposableStack()
  const monitor = opening.use(openResourceMonitor({ disk }))
  const metrics = await openMetrics({ version: VERSION })
  metrics.watchMachine(() => machineNumbers(monitor.snapshot()))
  const snapshot = async () => {
    const lanes = Object.entries((await queue()?.stats())?.lanes ?? {})
    const queues = Object.fromEntries(lanes.map(([lane, { pending }]) => [lane, pending]))
    return snapshotReport(monitor.snapshot(), { queues, bytesPerWorker: FILE_WORKER_BYTES })
  }
  const warn = (line: string) => say('warn', line)
  const server = opening.use(await serveMetrics({ address, metrics, health, snapshot, warn }))
  say('info', `metrics are at ${server.url}/metrics`)
  const opened = opening.move()
  return { metrics, url: server.url, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

interface RunMetricsParts {
  address: string
  scraper: string
  runId: string
  frontier: Frontier
  bus: EventBus
  disk: string
}

/** Metrics of one run, for as long as it lasts. */
export async function openMetricsServer({ scraper, runId, frontier, bus, ...rest }: RunMetricsParts) {
  const say = (level: 'info' | 'warn', message: string) => bus.emit({ type: 'log', level, message })
  const served = await openProcessMetrics({ ...rest, say, health: () => ({ runId }), queue: () => frontier })
  served.metrics.watchEvents(scraper, bus)
  served.metrics.watchQueue(scraper, () => frontier.stats())
  return served
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
