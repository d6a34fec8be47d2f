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

/** Counters, gauges and histograms of one scraper, looked up once: a page then costs additions, not objects of labels. */
function childrenOf(m: Instruments, scraper: string) {
  const stage = (name: string) => m.pageSeconds.labels(scraper, name)
  const change = (name: string) => m.items.labels(scraper, name)
  return {
    stages: { queue: stage('queue'), fetch: stage('fetch'), parse: stage('parse'), sink: stage('sink') },
    changes: { new: change('new'), same: change('same'), changed: change('changed'), invalid: change('invalid') },
    suspectPages: m.suspectPages.labels(scraper),
    sinkLag: m.sinkLag.labels('all'),
    circuitState: m.circuitState.labels(scraper),
    firstTry: m.oldRequests.labels('start'),
    laterTry: m.oldRequests.labels('retry'),
  }
}

export class MetricsListener {
  readonly #metrics: Instruments
  readonly #shared: MetricsShared
  readonly #scraper: string
  readonly #children: ReturnType<typeof childrenOf>
  /** By route. */
  readonly #outcomes = new Map<string, Record<EventOf<'page'>['outcome'], Counter.Internal>>()
  readonly #circuits = new Map<string, 'open' | 'half-open'>()
  readonly #proxies = new Set<string>()
  readonly #workers = new Set<string>()
  readonly #filled = new Map<string, number>()
  #fieldItems = 0
  #hasBrowsers = false

  constructor(m: Instruments, shared: MetricsShared, scraper: string) {
    this.#metrics = m
    this.#shared = shared
    this.#scraper = scraper
    this.#children = childrenOf(m, scraper)
    startAtZero(m, shared)
    for (const one of Object.values(this.#children.changes)) one.inc(0)
    this.#children.suspectPages.inc(0)
    for (const reason of Object.keys(NOT_FETCHED)) m.notFetched.inc({ scraper, reason }, 0)
    this.#children.circuitState.set(0)
  }

  readonly listen = (event: RunEvent): void => {
    switch (event.type) {
      case 'page':
        this.#onPage(event)
        if (event.suspicion !== undefined && event.outcome === 'ok') this.#children.suspectPages.inc()
        break
      case 'committed':
        if (event.itemsNew > 0) this.#children.changes.new.inc(event.itemsNew)
        if (event.itemsNew > 0) this.#metrics.oldItems.inc(event.itemsNew)
        if (event.itemsSame > 0) this.#children.changes.same.inc(event.itemsSame)
        if (event.itemsChanged > 0) this.#children.changes.changed.inc(event.itemsChanged)
        this.#children.sinkLag.set(event.backlog)
        break
      case 'file':
        this.#onFile(event)
        break
      case 'pools':
        this.#onPools(event)
        break
      case 'browser':
        this.#metrics.browserEvents.inc({ event: event.what })
        break
      case 'not-fetched':
        for (const [reason, by] of Object.entries(event.counts))
          this.#metrics.notFetched.inc({ scraper: this.#scraper, reason }, by)
        break
      case 'item.invalid':
        this.#children.changes.invalid.inc()
        break
      case 'fields':
        this.#onFields(event)
        break
      case 'throttled':
        this.#metrics.throttled.inc({ host: this.#shared.hosts(event.host) })
        break
      case 'blocked':
        this.#metrics.blocked.inc({
          class: this.#shared.classes(event.class),
          vendor: this.#shared.vendors(event.vendor),
        })
        break
      case 'circuit':
        this.#onCircuit(event)
        break
      case 'proxy':
        this.#onProxy(event)
        break
      case 'leases.expired':
        this.#metrics.leasesExpired.inc(event.returned + event.dead)
        if (event.dead > 0) this.#metrics.deadLetters.inc({ class: 'crash' }, event.dead)
        break
      case 'sinks.flushed':
        this.#children.stages.sink.observe(event.ms / 1000)
        this.#children.sinkLag.set(event.backlog)
        break
      case 'worker.in-flight':
        this.#onWorker(event)
        break
      case 'run.finished':
        if (event.state === 'finished')
          this.#metrics.lastSuccess.set({ scraper: this.#scraper }, this.#shared.now() / 1000)
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

  /** The run is left: what was true of it only is shown no longer. */
  leave(): void {
    this.#metrics.circuitState.remove({ scraper: this.#scraper })
    this.#metrics.sinkLag.remove({ sink: 'all' })
    for (const proxy of this.#proxies) this.#metrics.proxyUp.remove({ proxy })
    for (const field of this.#filled.keys()) this.#metrics.fieldFilled.remove({ scraper: this.#scraper, field })
    for (const worker of this.#workers) {
      this.#shared.forgetWorker(worker)
      this.#showPools(this.#shared.pools(worker, undefined))
    }
  }

  #onPage(event: EventOf<'page'>): void {
    const { outcome, queueMs, fetchMs, parseMs, bytes, error } = event
    this.#outcomesOf(event.route)[outcome].inc()
    if (queueMs !== undefined) this.#children.stages.queue.observe(queueMs / 1000)
    if (parseMs !== undefined) this.#children.stages.parse.observe(parseMs / 1000)
    if (bytes !== undefined && bytes > 0) this.#metrics.responseBytes.inc(bytes)
    if (fetchMs !== undefined) {
      this.#children.stages.fetch.observe(fetchMs / 1000)
      this.#metrics.oldRequestSeconds.observe(fetchMs / 1000)
      const phase = event.attempt === 1 ? this.#children.firstTry : this.#children.laterTry
      phase.inc()
    }
    const cls = this.#shared.classes(error?.class ?? 'unknown')
    if (outcome === 'retried') {
      this.#metrics.retries.inc({ class: cls })
      this.#metrics.oldRetries.inc()
    } else if (outcome === 'failed') this.#metrics.deadLetters.inc({ class: cls })
    if (error !== undefined && outcome !== 'skipped')
      this.#metrics.oldErrors.inc({ error_type: errorTypeOf(error.class) })
  }

  #outcomesOf(route: string) {
    const name = this.#shared.routes(route)
    const known = this.#outcomes.get(name)
    if (known !== undefined) return known
    const child = (outcome: string) => this.#metrics.pages.labels(this.#scraper, name, outcome)
    const children = {
      ok: child('ok'),
      retried: child('retried'),
      postponed: child('postponed'),
      failed: child('failed'),
      skipped: child('skipped'),
      stale: child('stale'),
    }
    // A rate sees no step from nothing to one, and a missing share of errors is not a share of 0.
    for (const one of Object.values(children)) one.inc(0)
    this.#outcomes.set(name, children)
    return children
  }

  #onFile({ outcome, bytes = 0, error }: EventOf<'file'>): void {
    this.#metrics.files.inc({ scraper: this.#scraper, outcome })
    if (outcome === 'stored') this.#metrics.fileBytes.inc({ scraper: this.#scraper }, bytes)
    const cls = this.#shared.classes(error?.class ?? 'unknown')
    if (outcome === 'retried') this.#metrics.retries.inc({ class: cls })
    else if (outcome === 'failed') this.#metrics.deadLetters.inc({ class: cls })
  }

  #onPools({ workerId, pagesOpen, pagesFree, fileWorkers }: EventOf<'pools'>): void {
    this.#workers.add(workerId)
    this.#hasBrowsers ||= pagesOpen !== undefined
    this.#showPools(this.#shared.pools(workerId, { open: pagesOpen ?? 0, free: pagesFree ?? 0, files: fileWorkers }))
  }

  #showPools({ open, free, files }: PoolSizes): void {
    if (this.#hasBrowsers) {
      this.#metrics.browserPages.set({ state: 'open' }, open)
      this.#metrics.browserPages.set({ state: 'free' }, free)
    }
    this.#metrics.fileWorkers.set(files)
  }

  #onFields(event: EventOf<'fields'>): void {
    this.#fieldItems += event.items
    for (const field of Object.keys(event.filled)) {
      const name = this.#shared.fields(field)
      if (name !== field) continue // fields over the bound have no common ratio
      const count = (this.#filled.get(field) ?? 0) + event.filled[field]!
      this.#filled.set(field, count)
      if (this.#fieldItems > 0)
        this.#metrics.fieldFilled.set({ scraper: this.#scraper, field }, count / this.#fieldItems)
    }
  }

  #onCircuit({ host, state }: EventOf<'circuit'>): void {
    this.#circuits.delete(host)
    if (state !== 'closed' && this.#circuits.size < CIRCUITS_MAX) this.#circuits.set(host, state)
    let worst = 0
    for (const one of this.#circuits.values()) worst = Math.max(worst, one === 'open' ? 2 : 1)
    this.#children.circuitState.set(worst)
  }

  #onProxy({ proxy, state, host }: EventOf<'proxy'>): void {
    // One site that refuses it does not make it bad, and proxies over the bound have no common state.
    if (host !== undefined || this.#shared.proxies(proxy) !== proxy) return
    this.#proxies.add(proxy)
    this.#metrics.proxyUp.set({ proxy }, state === 'up' ? 1 : 0)
  }

  #onWorker(event: EventOf<'worker.in-flight'>): void {
    const { workerId } = event
    if (!this.#shared.heardOf(workerId)) return
    this.#workers.add(workerId)
    this.#metrics.workerInFlight.set({ worker: workerId }, event.inFlight)
    this.#metrics.workerHeartbeat.set({ worker: workerId }, this.#shared.now() / 1000)
  }
}

/** At 0 from the start: an increase does not see a counter's first value, and the first burst is the one to hear of. */
function startAtZero(m: Instruments, shared: MetricsShared): void {
  for (const name of CLASSES) {
    m.retries.inc({ class: shared.classes(name) }, 0)
    m.deadLetters.inc({ class: shared.classes(name) }, 0)
  }
  for (const name of BLOCK_CLASSES) m.blocked.inc({ class: shared.classes(name), vendor: shared.vendors('unknown') }, 0)
}
