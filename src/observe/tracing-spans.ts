/**
 * One try at a page as OpenTelemetry spans: `page`, containing `queue`, `fetch`, `read`, `commit` and one `item stored` per item.
 */
import { randomBytes } from 'node:crypto'
import type { EventOf, PageTrace } from '../core/events.ts'
import { redactText } from '../core/redact-text.ts'

/** A span before it has a resource; times are epoch milliseconds. */
export interface PlainSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Record<string, string | number | boolean>
  readonly error?: string
  readonly link?: { traceId: string; spanId: string }
  readonly events?: readonly { name: string; atMs: number; attributes: Record<string, string | number> }[]
}

/** `traceparent` → its ids. Validated when it was created. */
const traceIdOf = (traceparent: string) => traceparent.slice(3, 35)
const spanIdOf = (traceparent: string) => traceparent.slice(36, 52)

type Step = Pick<PlainSpan, 'name' | 'startMs' | 'endMs'> & Partial<Pick<PlainSpan, 'attributes' | 'error'>>

function child(trace: PageTrace, { attributes = {}, ...step }: Step): PlainSpan {
  const spanId = randomBytes(8).toString('hex')
  return { traceId: traceIdOf(trace.own), spanId, parentId: spanIdOf(trace.own), attributes, ...step }
}

export function storedSpan(trace: PageTrace, key: string, startMs: number, endMs: number): PlainSpan {
  return child(trace, { name: 'item stored', startMs, endMs, attributes: { 'sluice.item.key': redactText(key) } })
}

export function pageSpans(event: EventOf<'page'>, trace: PageTrace, about: Record<string, string>): PlainSpan[] {
  const { queueMs = 0, fetchMs = 0, parseMs = 0 } = event
  const fetchedMs = trace.startedAtMs + fetchMs
  const { commitStartedAtMs, commitEndedAtMs = fetchedMs + parseMs } = trace
  const error = event.error === undefined ? undefined : redactText(`${event.error.code}: ${event.error.message}`)
  const hasPage = event.outcome === 'ok' || parseMs > 0
  const queuedMs = trace.startedAtMs - queueMs
  const spans: PlainSpan[] = [
    {
      name: `page ${event.route}`,
      traceId: traceIdOf(trace.own),
      spanId: spanIdOf(trace.own),
      parentId: trace.parent === undefined ? undefined : spanIdOf(trace.parent),
      startMs: queuedMs,
      endMs: commitEndedAtMs,
      attributes: { ...about, ...pageAttributes(event) },
      error,
      link: trace.link === undefined ? undefined : { traceId: traceIdOf(trace.link), spanId: spanIdOf(trace.link) },
      events: troubles(event, fetchedMs),
    },
    child(trace, { name: 'queue', startMs: queuedMs, endMs: trace.startedAtMs }),
    child(trace, {
      name: 'fetch',
      startMs: trace.startedAtMs,
      endMs: fetchedMs,
      attributes: fetchAttributes(event),
      error: hasPage ? undefined : error,
    }),
  ]
  if (hasPage)
    spans.push(
      child(trace, {
        name: 'read',
        startMs: fetchedMs,
        endMs: fetchedMs + parseMs,
        error: event.outcome === 'ok' ? undefined : error,
      }),
    )
  if (commitStartedAtMs !== undefined)
    spans.push(
      child(trace, {
        name: 'commit',
        startMs: commitStartedAtMs,
        endMs: commitEndedAtMs,
        attributes: { 'sluice.items': event.items ?? 0, 'sluice.tasks': event.tasks ?? 0 },
      }),
    )
  return spans
}

function pageAttributes({ url, host, route, attempt, outcome, status }: EventOf<'page'>) {
  return {
    'url.full': redactText(url),
    'server.address': host,
    'sluice.route': route,
    'sluice.attempt': attempt,
    'sluice.outcome': outcome,
    ...(status === undefined ? {} : { 'http.response.status_code': status }),
  }
}

function fetchAttributes({ status, bytes, fromCache }: EventOf<'page'>) {
  return {
    ...(status === undefined ? {} : { 'http.response.status_code': status }),
    ...(bytes === undefined ? {} : { 'http.response.body.size': bytes }),
    ...(fromCache === undefined ? {} : { 'sluice.from_cache': fromCache }),
  }
}

function troubles({ error, outcome, retryAtMs }: EventOf<'page'>, atMs: number): NonNullable<PlainSpan['events']> {
  if (error === undefined) return []
  const attributes = { 'exception.type': error.code, 'exception.message': redactText(error.message) }
  const again =
    retryAtMs === undefined ? [] : [{ name: outcome, atMs, attributes: { 'sluice.retry_at_ms': retryAtMs } }]
  return [{ name: 'exception', atMs, attributes }, ...again]
}
