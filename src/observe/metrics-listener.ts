/** From events to metrics, for one scraper. */
import type { Counter } from 'prom-client'
import { ERRORS } from '../core/error-table.ts'
import type { EventOf, RunEvent } from '../core/events.ts'
import { NOT_FETCHED } from '../core/not-fetched.ts'
import type { Instruments } from './metrics-instruments.ts'
import { errorTypeOf } from './metrics-table.ts'

/** What the listeners of all scrapers in a process share: a bound on label values only holds over all of them. */
export interface MetricsShared {
  now(): number
  hosts(name: string): string
  routes(name: string): string
  classes(name: string): string
  vendors(name: string): string
  proxies(name: string): string
  fields(name: string): string
  /** What all workers of this process have together, with what this one has now; undefined: it is gone. */
  pools(worker: string, sizes: PoolSizes | undefined): PoolSizes
  /** False when there are too many workers to tell them apart. */
  heardOf(worker: string): boolean
  forgetWorker(worker: string): void
}

/** Hosts whose circuit is told apart; a walk over them all happens only when one changes. */
const CIRCUITS_MAX = 1000

export interface PoolSizes {
  open: number
  free: number
  files: number
}

/** Of tasks that are lost with their workers, and of errors that nobody named. */
const CLASSES = new Set([...Object.values(ERRORS).map((kind) => kind.class), 'crash', 'unknown'])
const BLOCK_CLASSES = ['rate_limit', 'challenge', 'captcha', 'blocked', 'login_wall', 'geo', 'consent']

interface MetricsListener {
  listen(event: RunEvent): void
  /** The run is left: what was true of it only is shown no longer. */
  leave(): void
}

export function createMetricsListener(m: Instruments, shared: MetricsShared, scraper: string): MetricsListener {
  bearCounters(m, shared)
  // Children are looked up once: a page then costs additions, not objects of labels.
  const outcomes = new Map<string, Record<EventOf<'page'>['outcome'], Counter.Internal>>()
  const stage = (name: string) => m.pageSeconds.labels(scraper, name)
  const stages = { queue: stage('queue'), fetch: stage('fetch'), parse: stage('parse'), sink: stage('sink') }
  const change = (name: string) => m.items.labels(scraper, name)
  const changes = { new: change('new'), same: change('same'), changed: change('changed'), invalid: change('invalid') }
  for (const one of Object.values(changes)) one.inc(0)
  const suspectPages = m.suspectPages.labels(scraper)
  suspectPages.inc(0)
  for (const reason of Object.keys(NOT_FETCHED)) m.notFetched.inc({ scraper, reason }, 0)
  const sinkLag = m.sinkLag.labels('all')
  const filled = new Map<string, number>()
  let fieldItems = 0
  const circuits = new Map<string, 'open' | 'half-open'>()
  const circuitState = m.circuitState.labels(scraper)
  circuitState.set(0)
  const proxies = new Set<string>()
  const workers = new Set<string>()
  let hasBrowsers = false
  const firstTry = m.oldRequests.labels('start')
  const laterTry = m.oldRequests.labels('retry')

  function outcomesOf(route: string) {
    const name = shared.routes(route)
    const known = outcomes.get(name)
    if (known !== undefined) return known
    const child = (outcome: string) => m.pages.labels(scraper, name, outcome)
    const children = {
      ok: child('ok'),
      retried: child('retried'),
      postponed: child('postponed'),
      failed: child('failed'),
      skipped: child('skipped'),
      stale: child('stale'),
    }
    // A rate sees no step from nothing to one, and a share of errors that is missing is no share of 0.
    for (const one of Object.values(children)) one.inc(0)
    outcomes.set(name, children)
    return children
  }

  function onPage(event: EventOf<'page'>): void {
    const { outcome, queueMs, fetchMs, parseMs, bytes, error } = event
    outcomesOf(event.route)[outcome].inc()
    if (queueMs !== undefined) stages.queue.observe(queueMs / 1000)
    if (parseMs !== undefined) stages.parse.observe(parseMs / 1000)
    if (bytes !== undefined && bytes > 0) m.responseBytes.inc(bytes)
    if (fetchMs !== undefined) {
      stages.fetch.observe(fetchMs / 1000)
      m.oldRequestSeconds.observe(fetchMs / 1000)
      const phase = event.attempt === 1 ? firstTry : laterTry
      phase.inc()
    }
    const cls = shared.classes(error?.class ?? 'unknown')
    if (outcome === 'retried') {
      m.retries.inc({ class: cls })
      m.oldRetries.inc()
    } else if (outcome === 'failed') m.deadLetters.inc({ class: cls })
    if (error !== undefined && outcome !== 'skipped') m.oldErrors.inc({ error_type: errorTypeOf(error.class) })
  }

  function onFile({ outcome, bytes = 0, error }: EventOf<'file'>): void {
    m.files.inc({ scraper, outcome })
    if (outcome === 'stored') m.fileBytes.inc({ scraper }, bytes)
    const cls = shared.classes(error?.class ?? 'unknown')
    if (outcome === 'retried') m.retries.inc({ class: cls })
    else if (outcome === 'failed') m.deadLetters.inc({ class: cls })
  }

  function onPools({ workerId, pagesOpen, pagesFree, fileWorkers }: EventOf<'pools'>): void {
    workers.add(workerId)
    hasBrowsers ||= pagesOpen !== undefined
    showPools(shared.pools(workerId, { open: pagesOpen ?? 0, free: pagesFree ?? 0, files: fileWorkers }))
  }

  function showPools({ open, free, files }: PoolSizes): void {
    if (hasBrowsers) {
      m.browserPages.set({ state: 'open' }, open)
      m.browserPages.set({ state: 'free' }, free)
    }
    m.fileWorkers.set(files)
  }

  function onFields(event: EventOf<'fields'>): void {
    fieldItems += event.items
    for (const field of Object.keys(event.filled)) {
      const name = shared.fields(field)
      if (name !== field) continue // fields over the bound have no common ratio
      const count = (filled.get(field) ?? 0) + event.filled[field]!
      filled.set(field, count)
      if (fieldItems > 0) m.fieldFilled.set({ scraper, field }, count / fieldItems)
    }
  }

  function onCircuit({ host, state }: EventOf<'circuit'>): void {
    circuits.delete(host)
    if (state !== 'closed' && circuits.size < CIRCUITS_MAX) circuits.set(host, state)
    let worst = 0
    for (const one of circuits.values()) worst = Math.max(worst, one === 'open' ? 2 : 1)
    circuitState.set(worst)
  }

  function onProxy({ proxy, state, host }: EventOf<'proxy'>): void {
    // One site that refuses it does not make it bad, and proxies over the bound have no common state.
    if (host !== undefined || shared.proxies(proxy) !== proxy) return
    proxies.add(proxy)
    m.proxyUp.set({ proxy }, state === 'up' ? 1 : 0)
  }

  function onWorker(event: EventOf<'worker.in-flight'>): void {
    const { workerId } = event
    if (!shared.heardOf(workerId)) return
    workers.add(workerId)
    m.workerInFlight.set({ worker: workerId }, event.inFlight)
    m.workerHeartbeat.set({ worker: workerId }, shared.now() / 1000)
  }

  function leave(): void {
    m.circuitState.remove({ scraper })
    m.sinkLag.remove({ sink: 'all' })
    for (const proxy of proxies) m.proxyUp.remove({ proxy })
    for (const field of filled.keys()) m.fieldFilled.remove({ scraper, field })
    for (const worker of workers) {
      shared.forgetWorker(worker)
      showPools(shared.pools(worker, undefined))
    }
  }

  function listen(event: RunEvent): void {
    switch (event.type) {
      case 'page':
        onPage(event)
        if (event.suspicion !== undefined && event.outcome === 'ok') suspectPages.inc()
        break
      case 'committed':
        if (event.itemsNew > 0) changes.new.inc(event.itemsNew)
        if (event.itemsNew > 0) m.oldItems.inc(event.itemsNew)
        if (event.itemsSame > 0) changes.same.inc(event.itemsSame)
        if (event.itemsChanged > 0) changes.changed.inc(event.itemsChanged)
        sinkLag.set(event.backlog)
        break
      case 'file':
        onFile(event)
        break
      case 'pools':
        onPools(event)
        break
      case 'browser':
        m.browserEvents.inc({ event: event.what })
        break
      case 'not-fetched':
        for (const [reason, by] of Object.entries(event.counts)) m.notFetched.inc({ scraper, reason }, by)
        break
      case 'item.invalid':
        changes.invalid.inc()
        break
      case 'fields':
        onFields(event)
        break
      case 'throttled':
        m.throttled.inc({ host: shared.hosts(event.host) })
        break
      case 'blocked':
        m.blocked.inc({ class: shared.classes(event.class), vendor: shared.vendors(event.vendor) })
        break
      case 'circuit':
        onCircuit(event)
        break
      case 'proxy':
        onProxy(event)
        break
      case 'leases.expired':
        m.leasesExpired.inc(event.returned + event.dead)
        if (event.dead > 0) m.deadLetters.inc({ class: 'crash' }, event.dead)
        break
      case 'sinks.flushed':
        stages.sink.observe(event.ms / 1000)
        sinkLag.set(event.backlog)
        break
      case 'worker.in-flight':
        onWorker(event)
        break
      case 'run.finished':
        if (event.state === 'finished') m.lastSuccess.set({ scraper }, shared.now() / 1000)
        break
      case 'run.started':
      case 'lease.lost':
      case 'scaled':
      case 'identity.retired':
      case 'log':
        break
      default:
        event satisfies never
    }
  }
  return { listen, leave }
}

/** At 0 from the start: an increase does not see a counter's first value, and the first burst is the one to hear of. */
function bearCounters(m: Instruments, shared: MetricsShared): void {
  for (const name of CLASSES) {
    m.retries.inc({ class: shared.classes(name) }, 0)
    m.deadLetters.inc({ class: shared.classes(name) }, 0)
  }
  for (const name of BLOCK_CLASSES) m.blocked.inc({ class: shared.classes(name), vendor: shared.vendors('unknown') }, 0)
}
