/** `--metrics`: feeds a run's events to the metrics and serves them. Loaded only when asked for. */
import type { EventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { VERSION } from '../user-agent.ts'

export interface RunMetricsParts {
  address: string
  scraper: string
  runId: string
  frontier: Frontier
  bus: EventBus
  /** States of all workers of the run, where there is a fleet. */
  workerStates?: () => Promise<readonly string[]>
}

export async function openMetricsServer({
  address,
  scraper,
  runId,
  frontier,
  bus,
  workerStates,
}: RunMetricsParts): Promise<AsyncDisposable> {
  const [{ openMetrics }, { serveMetrics }] = await Promise.all([
    import('../../observe/metrics.ts'),
    import('../../observe/serve-metrics.ts'),
  ])
  const metrics = await openMetrics({ version: VERSION })
  const unlisten = bus.on(metrics.listener(scraper))
  const unwatch = metrics.watchQueue(scraper, () => frontier.stats())
  if (workerStates !== undefined) metrics.watchWorkers(scraper, workerStates)
  const say = (level: 'info' | 'warn') => (message: string) => bus.emit({ type: 'log', level, message })
  const server = await serveMetrics({ address, metrics, health: () => ({ runId }), warn: say('warn') })
  say('info')(`metrics are at ${server.url}/metrics`)
  return {
    async [Symbol.asyncDispose]() {
      await server.close()
      unwatch()
      unlisten()
    },
  }
}
