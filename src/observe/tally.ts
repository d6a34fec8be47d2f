/** The numbers of a run, kept from its events in constant memory: progress, summary, run.json and the live feed read them. */
import type { EventOf, RunEvent } from '../core/events.ts'
import { redactText } from '../core/redact-text.ts'
import { type FileCounts, NO_FILES } from '../core/run.ts'
import { type ErrorGroup, ErrorGroups } from './error-groups.ts'
import { createHistogram } from './histogram.ts'
import { createSlidingWindow } from './sliding-window.ts'
import { type BlockedGroup, HostTrouble, type OpenCircuit, type ThrottledHost } from './trouble.ts'
import { type WorkersSnapshot, WorkerTally } from './worker-tally.ts'

type PageOutcome = EventOf<'page'>['outcome']
type OutcomeCounts = Record<PageOutcome, number>

/** Bounds: what the web or a scraper can make many of ends in one row called `other`. */
const ROUTES_MAX = 100
const FIELDS_MAX = 500
const OTHER = 'other'

const WINDOW_MS = 10_000

export interface TallySnapshot extends WorkersSnapshot {
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

const noCounts = (): OutcomeCounts => ({ ok: 0, retried: 0, postponed: 0, failed: 0, skipped: 0, stale: 0 })

export function createTally(options: { now?: () => number } = {}): Tally {
  return new RunTally(options.now ?? Date.now)
}

class RunTally implements Tally {
  readonly #now: () => number
  readonly #pages = noCounts()
  readonly #routes = new Map<string, OutcomeCounts>()
  readonly #items = { new: 0, same: 0, changed: 0, invalid: 0 }
  readonly #files = { ...NO_FILES }
  readonly #latency = createHistogram()
  readonly #window = createSlidingWindow(WINDOW_MS)
  readonly #errors = new ErrorGroups()
  readonly #trouble = new HostTrouble()
  readonly #workers = new WorkerTally()
  readonly #fields = new Map<string, number>()
  readonly #leases = { lost: 0, expired: 0, dead: 0 }
  #waiting: TallySnapshot['waiting']
  #added = 0
  #bytes = 0
  #fromCache = 0
  #retrying = 0
  #fieldItems = 0
  #sinkBacklog = 0

  constructor(now: () => number) {
    this.#now = now
  }

  readonly record = (event: RunEvent): void => {
    switch (event.type) {
      case 'page':
        this.#recordPage(event)
        break
      case 'file':
        this.#recordFile(event)
        break
      case 'committed':
        this.#items.new += event.itemsNew
        this.#items.same += event.itemsSame
        this.#items.changed += event.itemsChanged
        this.#added += event.added
        this.#sinkBacklog = event.backlog
        if (event.added > 0) this.#window.add(this.#now(), 0, 0, event.added)
        break
      case 'item.invalid':
        this.#items.invalid += 1
        this.#errors.recordInvalidItem(event)
        break
      case 'fields':
        this.#recordFields(event)
        break
      case 'throttled':
        this.#trouble.recordThrottled(event, this.#now())
        break
      case 'blocked':
        this.#trouble.recordBlocked(event, this.#now())
        break
      case 'circuit':
        this.#trouble.recordCircuit(event)
        break
      case 'lease.lost':
        this.#leases.lost += event.count
        break
      case 'leases.expired':
        this.#leases.expired += event.returned + event.dead
        this.#leases.dead += event.dead
        break
      case 'sinks.flushed':
        this.#sinkBacklog = event.backlog
        break
      case 'worker.in-flight':
        this.#workers.record(event, this.#now())
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

  snapshot(): TallySnapshot {
    const nowMs = this.#now()
    const sums = this.#window.read(nowMs)
    const perSecond = (sum: number) => (sums.spanMs === 0 ? 0 : (sum * 1000) / sums.spanMs)
    return {
      pages: { ...this.#pages },
      routes: Object.fromEntries([...this.#routes].map(([name, counts]) => [name, { ...counts }])),
      items: { ...this.#items },
      files: { ...this.#files },
      added: this.#added,
      fromCache: this.#fromCache,
      bytes: this.#bytes,
      latencyMs: { p50: this.#latency.quantile(0.5), p95: this.#latency.quantile(0.95) },
      rate: { pages: perSecond(sums.pages), bytes: perSecond(sums.bytes), added: perSecond(sums.added) },
      // A resumed run settles tasks whose first failure was counted by the process before it.
      retrying: Math.max(0, this.#retrying),
      errors: this.#errors.list(),
      throttled: this.#trouble.throttled(nowMs),
      waiting: this.#waiting,
      blocked: this.#trouble.blocked(),
      circuits: this.#trouble.circuits(),
      ...this.#workers.snapshot(nowMs),
      fieldFill: Object.fromEntries(
        [...this.#fields].map(([field, filled]) => [field, this.#fieldItems === 0 ? 0 : filled / this.#fieldItems]),
      ),
      leases: { ...this.#leases },
      sinkBacklog: this.#sinkBacklog,
    }
  }

  #recordPage(event: EventOf<'page'>): void {
    const { outcome } = event
    this.#pages[outcome] += 1
    this.#countsOf(event.route)[outcome] += 1
    if (event.fetchMs !== undefined) this.#latency.add(event.fetchMs)
    if (event.fromCache) this.#fromCache += 1
    const pageBytes = event.bytes ?? 0
    this.#bytes += pageBytes
    const isSettled = outcome === 'ok' || outcome === 'failed' || outcome === 'skipped'
    this.#window.add(this.#now(), isSettled ? 1 : 0, pageBytes, 0)
    // The first failure puts a task among those retrying, its end takes it out; tries between change nothing.
    if (outcome === 'retried' && event.attempt === 1) this.#retrying += 1
    else if (isSettled && event.attempt > 1) this.#retrying -= 1
    this.#recordWait(event)
    this.#errors.recordTry(event)
  }

  #countsOf(route: string): OutcomeCounts {
    const known = this.#routes.get(route)
    if (known !== undefined) return known
    const name = this.#routes.size < ROUTES_MAX ? route : OTHER
    const counts = this.#routes.get(name) ?? noCounts()
    this.#routes.set(name, counts)
    return counts
  }

  #recordFile(event: EventOf<'file'>): void {
    const { outcome, bytes = 0 } = event
    this.#recordWait(event)
    if (outcome !== 'postponed' && outcome !== 'skipped' && outcome !== 'stale') this.#files[outcome] += 1
    if (outcome === 'stored') {
      this.#files.bytes += bytes
      this.#window.add(this.#now(), 0, bytes, 0)
    }
    this.#errors.recordTry(event)
  }

  #recordWait({ outcome, error, retryAtMs }: EventOf<'page'> | EventOf<'file'>): void {
    if (outcome !== 'postponed') this.#waiting = undefined
    else if (error !== undefined) this.#waiting = { reason: redactText(error.message), untilMs: retryAtMs ?? 0 }
  }

  #recordFields(event: EventOf<'fields'>): void {
    this.#fieldItems += event.items
    for (const field of Object.keys(event.filled)) {
      if (!this.#fields.has(field) && this.#fields.size >= FIELDS_MAX) continue
      this.#fields.set(field, (this.#fields.get(field) ?? 0) + event.filled[field]!)
    }
  }
}
