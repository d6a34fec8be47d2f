/**
 * OpenTelemetry traces of a run: listens for pages and stored items, and sends spans to an OTLP/HTTP collector.
 *
 * The ids were assigned when the page was read (`crawl/trace.ts`), so a span is created here complete, with its times, and goes
 * straight to the SDK's batch: bounded, sent in the background, dropped when the collector is slower than the crawl.
 */
import { hostname } from 'node:os'
import type { Attributes } from '@opentelemetry/api'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { PageTrace, RunEvent } from '../core/events.ts'
import { optionalPackage } from '../core/optional-package.ts'
import { type PlainSpan, pageSpans, storedSpan } from './tracing-spans.ts'

interface TracingOptions {
  /** Base URL of the collector; undefined: from the SDK's own environment variables. */
  endpoint: string | undefined
  scraper: string
  runId: string
  storesAtCommit?: boolean
  warn: (message: string) => void
}

export interface Tracing extends AsyncDisposable {
  readonly record: (event: RunEvent) => void
  /** Call when sinks have confirmed the items with these keys. */
  readonly stored: (keys: readonly string[], startedAtMs: number) => void
}

const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/resources',
  '@opentelemetry/exporter-trace-otlp-http',
]
/** Maximum number of buffered spans; at 6 per page, some 5,000 pages. */
const QUEUE_SPANS_MAX = 32_768
const SEND_EVERY_MS = 1_000
const SEND_MS_MAX = 3_000
/** How long the end of a run waits for the collector. */
const CLOSE_MS_MAX = 5_000
/** Items waiting for their page's event or their flush; the oldest are dropped. */
const WAITING_ITEMS_MAX = 20_000

const loadSdk = () =>
  optionalPackage('traces need', PACKAGES, async () => {
    const [sdk, resources, http] = await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/exporter-trace-otlp-http'),
    ])
    return { ...sdk, ...resources, ...http }
  })

/** Throws `E_PACKAGE_MISSING` if a package is missing; an unresponsive collector causes a warning, once. */
export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const { endpoint, scraper, runId, storesAtCommit = false } = options
  const sdk = await loadSdk()
  const url = endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, '')}/v1/traces` }
  const exporter = new sdk.OTLPTraceExporter({ ...url, timeoutMillis: SEND_MS_MAX })
  const processor = new sdk.BatchSpanProcessor({
    exporter: warnOnce(exporter, options.warn),
    maxQueueSize: QUEUE_SPANS_MAX,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: CLOSE_MS_MAX,
  })
  const resource = sdk
    .resourceFromAttributes({ 'service.name': 'sluice', 'process.pid': process.pid, 'host.name': hostname() })
    .merge(sdk.detectResources({ detectors: [sdk.envDetector] })) // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
  const send = (span: PlainSpan) => processor.onEnd(readable(span, resource))
  const about = { 'sluice.scraper': scraper, 'sluice.run_id': runId }
  const pages = new Map<string, PageTrace>()
  const flushes = new Map<string, { startMs: number; endMs: number }>()

  function emitted(trace: PageTrace): void {
    const { commitStartedAtMs = trace.startedAtMs, commitEndedAtMs = commitStartedAtMs } = trace
    for (const key of trace.itemKeys) {
      const flush = storesAtCommit ? { startMs: commitStartedAtMs, endMs: commitEndedAtMs } : flushes.get(key)
      if (flush === undefined) remember(pages, key, trace)
      else send(storedSpan(trace, key, flush.startMs, flush.endMs))
      flushes.delete(key)
    }
  }

  return {
    record(event) {
      if (event.type !== 'page' || event.trace === undefined) return
      for (const span of pageSpans(event, event.trace, about)) send(span)
      if (event.outcome === 'ok') emitted(event.trace)
    },
    stored(keys, startMs) {
      const endMs = Date.now()
      for (const key of keys) {
        const trace = pages.get(key)
        // Another process may have read its page: its events arrive a little after the flush.
        if (trace === undefined) remember(flushes, key, { startMs, endMs })
        else send(storedSpan(trace, key, startMs, endMs))
        pages.delete(key)
      }
    },
    async [Symbol.asyncDispose]() {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, CLOSE_MS_MAX)
      await Promise.race([processor.shutdown().catch(() => {}), late]) // reported by `warnOnce`
      clearTimeout(timer)
    },
  }
}

function remember<T>(waiting: Map<string, T>, key: string, value: T): void {
  if (waiting.size >= WAITING_ITEMS_MAX) waiting.delete(waiting.keys().next().value!)
  if (!waiting.has(key)) waiting.set(key, value) // the first one is the one that is stored
}

function warnOnce(exporter: SpanExporter, warn: (message: string) => void): SpanExporter {
  let isSaid = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== 0 && !isSaid) {
          isSaid = true
          warn(`traces cannot be sent (${result.error?.message || 'no answer'}); the run goes on without them`)
        }
        done({ code: 0 })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}

const hrTime = (ms: number): [number, number] => {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
}

function readable(span: PlainSpan, resource: ReadableSpan['resource']): ReadableSpan {
  const { name, traceId, spanId, parentId, startMs, attributes, error, link, events = [] } = span
  const endMs = Math.max(startMs, span.endMs)
  const context = { traceId, spanId, traceFlags: 1 }
  return {
    name,
    kind: name === 'fetch' ? 2 : 0, // client, internal
    spanContext: () => context,
    ...(parentId === undefined
      ? {}
      : { parentSpanContext: { traceId, spanId: parentId, traceFlags: 1, isRemote: true } }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status: error === undefined ? { code: 0 } : { code: 2, message: error },
    attributes,
    links: link === undefined ? [] : [{ context: { ...link, traceFlags: 1 } }],
    events: events.map((one) => ({ name: one.name, time: hrTime(one.atMs), attributes: one.attributes as Attributes })),
    ended: true,
    resource,
    instrumentationScope: { name: 'sluice' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}
