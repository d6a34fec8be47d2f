/** The numbers of a run, kept from its events in constant memory: progress, summary, run.json and the live feed read them. */
import type { EventOf, RunEvent } from '../core/events.ts'
import { redactText } from '../core/redact-text.ts'
import { type FileCounts, NO_FILES } from '../core/run.ts'
import { createHistogram } from './histogram.ts'
import { createSlidingWindow } from './sliding-window.ts'
import { type BlockedGroup, createTrouble, type OpenCircuit } from './trouble.ts'

type PageOutcome = EventOf<'page'>['outcome']
type OutcomeCounts = Record<PageOutcome, number>

/** Bounds: what the web or a scraper can make many of ends in one row called `other`. */
const ROUTES_MAX = 100
const ERROR_GROUPS_MAX = 100
const HOSTS_MAX = 200
const FIELDS_MAX = 500
const WORKERS_MAX = 256
const OTHER = 'other'

const WINDOW_MS = 10_000
/** A host that throttles again so soon after its pause is still the same trouble, and its count goes on. */
const HOST_CALM_MS = 60_000
/** A worker not heard of for so long holds no memory any more. */
const WORKER_SILENT_MS = 30_000

interface ErrorGroup {
  code: string
  class: string
  /** Pages given up on, or items refused. */
  count: number
  /** Tries that failed with it and were repeated. */
  retries: number
  /** A URL it happened at. */
  example: string
  message: string
}

interface ThrottledHost {
  host: string
  untilMs: number
  reason: string
  /** How often since the host was last calm for a minute. */
  count: number
}

interface WorkerNumbers {
  workerId: string
  inFlight: number
  rssBytes: number
  cpuMs: number
  /** When it last reported (epoch ms). */
  atMs: number
}

export interface TallySnapshot {
  /** Tries by how they ended. */
  pages: OutcomeCounts
  routes: Record<string, OutcomeCounts>
  items: { new: number; same: number; changed: number; invalid: number }
  files: FileCounts
  /** Tasks the pages added. */
  added: number
  /** Pages answered from the cache. */
  fromCache: number
  bytes: number
  /** Time of fetching, over all tries that got an answer. */
  latencyMs: { p50: number; p95: number }
  /** Over the last 10 s. Pages are those settled: ok or failed. Bytes are those of pages and of stored files. */
  rate: { pages: number; bytes: number; added: number }
  /** Tasks that failed at least once and wait for, or are in, their next try. */
  retrying: number
  /** Most frequent first. */
  errors: ErrorGroup[]
  /** Hosts waiting now, the longest wait first. */
  throttled: ThrottledHost[]
  /** Why the page that was postponed last waits (robots.txt, a proxy, a paused host); none since a page was settled. */
  waiting?: { reason: string; untilMs: number }
  /** Block pages, challenges and walls, most frequent first. */
  blocked: BlockedGroup[]
  /** Hosts that fail and are left alone now. */
  circuits: OpenCircuit[]
  workers: WorkerNumbers[]
  inFlight: number
  rssBytes: number
  rssBytesMax: number
  cpuMs: number
  /** CPU used over the last reports of all workers; 1 is one core. */
  cpuRatio: number
  /** Share of items in which each field has a value, in the order the fields came. */
  fieldFill: Record<string, number>
  leases: { lost: number; expired: number; dead: number }
  /** Accepted items no sink has confirmed yet. */
  sinkBacklog: number
}

export interface Tally {
  /** Give it to `bus.on`. */
  readonly record: (event: RunEvent) => void
  snapshot(): TallySnapshot
}

interface WorkerState extends WorkerNumbers {
  cpuRatio: number
}

const noCounts = (): OutcomeCounts => ({ ok: 0, retried: 0, postponed: 0, failed: 0, skipped: 0, stale: 0 })

export function createTally(options: { now?: () => number } = {}): Tally {
  const now = options.now ?? Date.now
  const pages = noCounts()
  const routes = new Map<string, OutcomeCounts>()
  const items = { new: 0, same: 0, changed: 0, invalid: 0 }
  const files = { ...NO_FILES }
  const latency = createHistogram()
  const window = createSlidingWindow(WINDOW_MS)
  const errors = new Map<string, ErrorGroup>()
  const throttled = new Map<string, ThrottledHost>()
  const trouble = createTrouble(now)
  let waiting: TallySnapshot['waiting']
  const workers = new Map<string, WorkerState>()
  const fields = new Map<string, number>()
  const leases = { lost: 0, expired: 0, dead: 0 }
  let added = 0
  let bytes = 0
  let fromCache = 0
  let retrying = 0
  let fieldItems = 0
  let sinkBacklog = 0
  let rssBytesMax = 0
  let departedCpuMs = 0

  function recordPage(event: EventOf<'page'>): void {
    const { outcome, error } = event
    pages[outcome] += 1
    let route = routes.get(event.route)
    if (route === undefined) {
      const name = routes.size < ROUTES_MAX ? event.route : OTHER
      route = routes.get(name) ?? noCounts()
      routes.set(name, route)
    }
    route[outcome] += 1
    if (event.fetchMs !== undefined) latency.add(event.fetchMs)
    if (event.fromCache) fromCache += 1
    const pageBytes = event.bytes ?? 0
    bytes += pageBytes
    const isSettled = outcome === 'ok' || outcome === 'failed' || outcome === 'skipped'
    window.add(now(), isSettled ? 1 : 0, pageBytes, 0)
    // The first failure puts a task among those retrying, its end takes it out; tries between change nothing.
    if (outcome === 'retried' && event.attempt === 1) retrying += 1
    else if (isSettled && event.attempt > 1) retrying -= 1
    noteWait(event)
    if (error === undefined || outcome === 'skipped') return
    const group = errorGroup(error.code, error.class, event.url, error.message)
    if (outcome === 'failed') group.count += 1
    else if (outcome === 'retried') group.retries += 1
  }

  function noteWait({ outcome, error, retryAtMs }: EventOf<'page'> | EventOf<'file'>): void {
    if (outcome !== 'postponed') waiting = undefined
    else if (error !== undefined) waiting = { reason: redactText(error.message), untilMs: retryAtMs ?? 0 }
  }

  function recordFile(event: EventOf<'file'>): void {
    const { outcome, error, url, bytes = 0 } = event
    noteWait(event)
    if (outcome !== 'postponed' && outcome !== 'skipped' && outcome !== 'stale') files[outcome] += 1
    if (outcome === 'stored') {
      files.bytes += bytes
      window.add(now(), 0, bytes, 0)
    }
    if (error === undefined || outcome === 'skipped') return
    const group = errorGroup(error.code, error.class, url, error.message)
    if (outcome === 'failed') group.count += 1
    else if (outcome === 'retried') group.retries += 1
  }

  function errorGroup(code: string, cls: string, url: string, message: string): ErrorGroup {
    const key = `${code} ${cls}`
    const known = errors.get(key)
    if (known !== undefined) return known
    const isOther = errors.size >= ERROR_GROUPS_MAX
    const group = errors.get(isOther ? OTHER : key) ?? {
      code: isOther ? OTHER : code,
      class: isOther ? OTHER : cls,
      count: 0,
      retries: 0,
      example: redactText(url),
      message: redactText(message),
    }
    errors.set(isOther ? OTHER : key, group)
    return group
  }

  function recordThrottle(event: EventOf<'throttled'>): void {
    const nowMs = now()
    const known = throttled.get(event.host)
    if (known === undefined && throttled.size >= HOSTS_MAX) forgetOneHost(nowMs)
    const isStill = known !== undefined && known.untilMs + HOST_CALM_MS > nowMs
    throttled.set(event.host, {
      host: event.host,
      untilMs: isStill ? Math.max(known.untilMs, event.untilMs) : event.untilMs,
      reason: event.reason,
      count: isStill ? known.count + 1 : 1,
    })
  }

  function forgetOneHost(nowMs: number): void {
    for (const [host, { untilMs }] of throttled) if (untilMs <= nowMs) throttled.delete(host)
    if (throttled.size < HOSTS_MAX) return
    const oldest = throttled.keys().next()
    if (!oldest.done) throttled.delete(oldest.value)
  }

  function recordWorker(event: EventOf<'worker.in-flight'>): void {
    const atMs = now()
    const before = workers.get(event.workerId)
    if (before === undefined && workers.size >= WORKERS_MAX) forgetSilentWorkers(atMs)
    if (before === undefined && workers.size >= WORKERS_MAX) return
    const passedMs = before === undefined ? 0 : atMs - before.atMs
    workers.set(event.workerId, {
      workerId: event.workerId,
      inFlight: event.inFlight,
      rssBytes: event.rssBytes,
      cpuMs: event.cpuMs,
      atMs,
      cpuRatio: passedMs > 0 ? Math.max(0, event.cpuMs - before!.cpuMs) / passedMs : (before?.cpuRatio ?? 0),
    })
    rssBytesMax = Math.max(rssBytesMax, sumOf(liveWorkers(atMs), 'rssBytes'))
  }

  function forgetSilentWorkers(nowMs: number): void {
    for (const worker of workers.values()) {
      if (nowMs - worker.atMs <= WORKER_SILENT_MS) continue
      departedCpuMs += worker.cpuMs
      workers.delete(worker.workerId)
    }
  }

  const liveWorkers = (nowMs: number) => [...workers.values()].filter((w) => nowMs - w.atMs <= WORKER_SILENT_MS)

  function recordFields(event: EventOf<'fields'>): void {
    fieldItems += event.items
    for (const field of Object.keys(event.filled)) {
      if (!fields.has(field) && fields.size >= FIELDS_MAX) continue
      fields.set(field, (fields.get(field) ?? 0) + event.filled[field]!)
    }
  }

  function record(event: RunEvent): void {
    switch (event.type) {
      case 'page':
        recordPage(event)
        break
      case 'file':
        recordFile(event)
        break
      case 'committed':
        items.new += event.itemsNew
        items.same += event.itemsSame
        items.changed += event.itemsChanged
        added += event.added
        sinkBacklog = event.backlog
        if (event.added > 0) window.add(now(), 0, 0, event.added)
        break
      case 'item.invalid':
        items.invalid += 1
        errorGroup('E_ITEM_INVALID', 'item', event.url, event.problems[0] ?? 'invalid item').count += 1
        break
      case 'fields':
        recordFields(event)
        break
      case 'throttled':
        recordThrottle(event)
        break
      case 'blocked':
        trouble.recordBlocked(event)
        break
      case 'circuit':
        trouble.recordCircuit(event)
        break
      case 'lease.lost':
        leases.lost += event.count
        break
      case 'leases.expired':
        leases.expired += event.returned + event.dead
        leases.dead += event.dead
        break
      case 'sinks.flushed':
        sinkBacklog = event.backlog
        break
      case 'worker.in-flight':
        recordWorker(event)
        break
      case 'run.started':
      case 'run.finished':
      case 'not-fetched':
      case 'browser':
      case 'scaled':
      case 'pools':
      case 'proxy':
      case 'identity.retired':
      case 'log':
        break
      default:
        event satisfies never
    }
  }

  function snapshot(): TallySnapshot {
    const nowMs = now()
    const live = liveWorkers(nowMs)
    const sums = window.read(nowMs)
    const perSecond = (sum: number) => (sums.spanMs === 0 ? 0 : (sum * 1000) / sums.spanMs)
    return {
      pages: { ...pages },
      routes: Object.fromEntries([...routes].map(([name, counts]) => [name, { ...counts }])),
      items: { ...items },
      files: { ...files },
      added,
      fromCache,
      bytes,
      latencyMs: { p50: latency.quantile(0.5), p95: latency.quantile(0.95) },
      rate: { pages: perSecond(sums.pages), bytes: perSecond(sums.bytes), added: perSecond(sums.added) },
      // A resumed run settles tasks whose first failure was counted by the process before it.
      retrying: Math.max(0, retrying),
      errors: [...errors.values()].map((group) => ({ ...group })).sort(byCount),
      throttled: [...throttled.values()]
        .filter(({ untilMs }) => untilMs > nowMs)
        .map((host) => ({ ...host }))
        .sort((a, b) => b.untilMs - a.untilMs),
      ...(waiting === undefined ? {} : { waiting }),
      blocked: trouble.blocked(),
      circuits: trouble.circuits(),
      workers: live.map(({ cpuRatio: _, ...numbers }) => numbers),
      inFlight: sumOf(live, 'inFlight'),
      rssBytes: sumOf(live, 'rssBytes'),
      rssBytesMax,
      cpuMs: departedCpuMs + sumOf([...workers.values()], 'cpuMs'),
      cpuRatio: sumOf(live, 'cpuRatio'),
      fieldFill: Object.fromEntries(
        [...fields].map(([field, filled]) => [field, fieldItems === 0 ? 0 : filled / fieldItems]),
      ),
      leases: { ...leases },
      sinkBacklog,
    }
  }

  return { record, snapshot }
}

function sumOf<K extends string>(rows: readonly Record<K, number>[], key: K): number {
  let sum = 0
  for (const row of rows) sum += row[key]
  return sum
}

const byCount = (a: ErrorGroup, b: ErrorGroup) => b.count - a.count || b.retries - a.retries
