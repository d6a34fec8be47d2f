/** `--otel`: turns a run's events into OpenTelemetry spans. Its packages are loaded only on demand. */

import type { ConfigValues } from '../../config/option-table.ts'
import type { EventBus } from '../../core/events.ts'
import type { Tracing } from '../../observe/tracing.ts'

interface RunTracingParts {
  scraper: string
  runId: string
  bus: EventBus
  /** Items reach their destination with the commit, so there is no sink writer. Default false. */
  storesAtCommit?: boolean
}

export function traceRatioOf({ otel, otelSample }: Pick<ConfigValues, 'otel' | 'otelSample'>): number | undefined {
  return otel === undefined ? undefined : otelSample
}

/** Undefined if it is not enabled. Throws `E_OPTION` if a package is missing. */
export async function openRunTracing(
  { otel }: Pick<ConfigValues, 'otel'>,
  { bus, ...about }: RunTracingParts,
): Promise<Tracing | undefined> {
  if (otel === undefined) return undefined
  const { openTracing } = await import('../../observe/tracing.ts')
  const warn = (message: string) => bus.emit({ type: 'log', level: 'warn', message })
  const tracing = await openTracing({ ...about, endpoint: otel === 'on' ? undefined : otel, warn })
  bus.on(tracing.record)
  return tracing
}
