/**
 * The loop of files: the run's `files` lane, from the claim to the commit, beside the loop that fetches pages.
 *
 *   frontier ──claim──▶ waiting ──its host is free──▶ pool ──stored──▶ commit: done + db_update ──▶ frontier
 *      ▲                   └─ db_update ──batch──▶ records ──▶ commit: done                          │
 *      └──────────────── retry · postpone · dead · handed back at the stop ◀─────────────────────────┘
 *
 * No more is claimed than the pool can soon take. A store or a database that is away costs no tries and no second download.
 */
import { rm } from 'node:fs/promises'
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Task } from '../core/task.ts'
import { hostOf } from '../core/url.ts'
import type { RateLimit } from '../fetch/contract.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import type { Decide, FileJob, FileOrder, FilePool, FileRecords } from './contract.ts'
import { HostPlace, type MayFetch } from './host-place.ts'
import { FILES_LANE, orderOf, pinnedLane } from './orders.ts'
import { PATIENCE, Patience, type PatienceLimits } from './patience.ts'
import { leaseKey, type Settled, settleFailure, settleHandedBack, settleRecorded, settleStored } from './settle.ts'
import { writeRecords } from './write-records.ts'

export interface FileLoopParts {
  frontier: Frontier
  pool: FilePool
  records: FileRecords
  /** Shared with the pages of the run, so that both together are polite. */
  rateLimit: RateLimit
  decide: Decide
  bus: EventBus
  runId: string
  scraper: string
  /** Its own, not that of the loop of pages: leases are told apart by it. */
  workerId: string
  leaseMs: number
  /** What running jobs get at the stop. */
  drainMs: number
  /** Throws what robots.txt has against it (`E_ROBOTS`). Default: nothing. */
  mayFetch?: MayFetch
  /** Request headers of a download, the cookies of its session included. Default: none. */
  headersFor?: (task: Task) => Promise<Readonly<Record<string, string>>>
  /** Default: `files` and the one pinned to this machine. */
  lanes?: readonly string[]
  /** Longest job, from the request to the store. Default 2 h. */
  jobMsMax?: number
  patience?: PatienceLimits
  now?: () => number
}

export type FilesEnd = { how: 'stopped' } | { how: 'halted'; error: ScrapeError }

export interface FileLoop {
  /** Resolves when it was stopped or halted, and everything it held is settled or handed back. Never rejects. */
  readonly ended: Promise<FilesEnd>
  /** Jobs in the pool, and claimed ones that wait for their host. */
  readonly running: number
  readonly held: number
  /** For scaling: tasks waiting in the lanes, due or not, and jobs running. */
  load(): Promise<{ waiting: number; running: number }>
}

export function runFiles(parts: FileLoopParts, stop: AbortSignal): FileLoop {
  const loop = new Loop(parts)
  const ended = loop.run(stop)
  return {
    ended,
    get running() {
      return loop.running
    },
    get held() {
      return loop.held
    },
    load: () => loop.load(),
  }
}

/** Shortest and longest wait before an empty lane is asked again. */
const POLL_MS = { min: 20, max: 1000 }
const COMMIT_MAX = 100
const RECORDS_MAX = 200
const JOB_MS_MAX = 7_200_000
const SUSPECTS_MAX = 1000

class Loop {
  readonly #parts: Required<FileLoopParts>
  readonly #stored: Patience
  readonly #recorded: Patience
  /** Leases to keep alive; those of them that wait for their host; those a job works on; those whose commit is on its way. */
  readonly #held = new Set<Lease>()
  #waiting: Lease[] = []
  readonly #jobs = new Map<Lease, { controller: AbortController; done: Promise<void> }>()
  readonly #committing = new Set<Lease>()
  #records: Lease[] = []
  #settled: Settled[] = []
  /** Tasks that were in a process when it died with several: next time alone. */
  readonly #suspects = new Set<string>()
  #work = new Set<Promise<void>>()
  #isClaiming = false
  #isWritingRecords = false
  #isCommitting = false
  #isStopping = false
  #pollMs = POLL_MS.min
  #wakeTimer: NodeJS.Timeout | undefined
  readonly #end = Promise.withResolvers<FilesEnd>()

  constructor(parts: FileLoopParts) {
    this.#parts = {
      mayFetch: async () => {},
      headersFor: async () => ({}),
      lanes: [FILES_LANE, pinnedLane()],
      jobMsMax: JOB_MS_MAX,
      patience: PATIENCE,
      now: Date.now,
      ...parts,
    }
    this.#stored = new Patience(this.#parts.patience)
    this.#recorded = new Patience(this.#parts.patience)
  }

  get running(): number {
    return this.#jobs.size
  }

  get held(): number {
    return this.#waiting.length
  }

  async load(): Promise<{ waiting: number; running: number }> {
    const { lanes } = await this.#parts.frontier.stats()
    const waiting = this.#parts.lanes.reduce((sum, lane) => sum + (lanes[lane]?.pending ?? 0), 0)
    return { waiting: waiting + this.#waiting.length, running: this.#jobs.size }
  }

  async run(stop: AbortSignal): Promise<FilesEnd> {
    const { rateLimit, bus, leaseMs } = this.#parts
    const onStop = () => this.#end.resolve({ how: 'stopped' })
    stop.addEventListener('abort', onStop, { once: true })
    if (stop.aborted) onStop()
    rateLimit.onFree(() => this.#pump())
    // A page that was committed may have ordered files: no need to wait for the next look.
    const unlisten = bus.on((event) => {
      if (event.type === 'committed' && event.added > 0 && this.#pollMs > POLL_MS.min) this.#wakeIn(0)
    })
    const heartbeat = setInterval(() => this.#track(this.#extendLeases()), leaseMs / 3)
    if (!stop.aborted) this.#pump()
    const end = await this.#end.promise
    stop.removeEventListener('abort', onStop)
    unlisten()
    await this.#drain(end.how === 'halted' ? 0 : this.#parts.drainMs)
    clearInterval(heartbeat)
    return end
  }

  /** Starts what may start, and claims what there is room for. */
  #pump(): void {
    if (this.#isStopping) return
    const { pool, now } = this.#parts
    const storeWaitMs = this.#stored.waitMs(now())
    let soonestMs = storeWaitMs === 0 ? Number.POSITIVE_INFINITY : storeWaitMs
    const waiting: Lease[] = []
    for (const lease of this.#waiting) {
      const waitMs = this.#jobs.size < pool.capacity ? Math.max(storeWaitMs, this.#hostWaitMs(lease)) : Infinity
      if (waitMs === 0) this.#start(lease)
      else waiting.push(lease)
      soonestMs = Math.min(soonestMs, waitMs)
    }
    this.#waiting = waiting
    const room = 2 * pool.capacity - this.#waiting.length - this.#jobs.size
    const mayClaim = this.#waiting.length < pool.capacity && room > 0
    if (mayClaim && !this.#isClaiming) this.#track(this.#claim(Math.min(room, pool.capacity)))
    else if (Number.isFinite(soonestMs)) this.#wakeIn(soonestMs)
  }

  #hostWaitMs({ task }: Lease): number {
    return isUpload(task) ? 0 : this.#parts.rateLimit.waitMs(hostOf(task.url))
  }

  async #claim(max: number): Promise<void> {
    const { frontier, workerId, leaseMs, lanes, rateLimit } = this.#parts
    this.#isClaiming = true
    let isDry = true
    try {
      const avoidHosts = [...new Set([...this.#waiting.map(({ task }) => hostOf(task.url)), ...rateLimit.busyHosts()])]
      const avoiding = avoidHosts.length > 0 ? { avoidHosts } : {}
      const leases = await frontier.claim({ max, workerId, leaseMs, lanes, ...avoiding })
      isDry = leases.length === 0
      for (const lease of leases) this.#take(lease)
    } catch (error) {
      return this.#halt(toScrapeError(error, 'E_SERVICE'))
    } finally {
      this.#isClaiming = false
    }
    if (this.#records.length > 0) this.#track(this.#writeRecords())
    this.#pollMs = isDry ? Math.min(POLL_MS.max, this.#pollMs * 2) : POLL_MS.min
    if (isDry) this.#wakeIn(this.#pollMs)
    else this.#pump()
  }

  #take(lease: Lease): void {
    this.#held.add(lease)
    try {
      if (orderOf(lease.task).type === 'db_update') this.#records.push(lease)
      else this.#waiting.push(lease)
    } catch (error) {
      this.#fail(lease, 'download', toScrapeError(error, 'E_ROUTE_DATA'), performance.now())
    }
  }

  #start(lease: Lease): void {
    const controller = new AbortController()
    const done = this.#carryOut(lease, controller.signal).finally(() => {
      this.#jobs.delete(lease)
      this.#pump()
    })
    this.#jobs.set(lease, { controller, done })
  }

  /** One job, the whole journey. Never throws. */
  async #carryOut(lease: Lease, aborted: AbortSignal): Promise<void> {
    const { pool, runId, scraper, headersFor, jobMsMax, now } = this.#parts
    const { task } = lease
    const order = orderOf(task) as FileJob['order']
    const startedMs = performance.now()
    const late = AbortSignal.timeout(jobMsMax)
    const signal = AbortSignal.any([aborted, late])
    using place = new HostPlace(this.#parts.rateLimit, this.#parts.mayFetch, signal)
    try {
      let headers = {}
      if (order.type === 'download') {
        await place.enter(task.url)
        headers = await headersFor(task)
      }
      const job: FileJob = {
        task: { id: task.id, url: task.url, session: task.session },
        order,
        runId,
        scraper,
        headers,
      }
      const isAlone = this.#suspects.delete(task.id) || lease.losses > 0
      const stored = await pool.run(job, signal, {
        onRedirect: (url) => place.enter(url),
        beforeStore: () => this.#mustHold(lease),
        isAlone,
      })
      this.#stored.succeeded()
      this.#settle(settleStored(lease, job, stored, { startedMs, nowMs: now() }))
    } catch (error) {
      if (aborted.aborted) return this.#handBack(lease, 'stopped before it was done')
      const known = late.aborted ? new ScrapeError('E_TIMEOUT_TOTAL', `not stored within ${jobMsMax} ms`) : error
      this.#fail(lease, order.type, this.#withPatience(toScrapeError(known, 'E_FILE_WORKER'), task), startedMs)
    }
  }

  /** A job that slept past its lease must not write over what its successor stored. */
  async #mustHold(lease: Lease): Promise<void> {
    const { lost } = await this.#parts.frontier.extend([lease], this.#parts.leaseMs)
    if (lost.length > 0) throw new ScrapeError('E_FILE_WORKER', 'its lease is lost')
  }

  /** What is nobody's fault comes with a time to come back, which makes it cost no try (`Decide`). */
  #withPatience(error: ScrapeError, task: Task): ScrapeError {
    const { now, rateLimit } = this.#parts
    const { retryAfterMs } = error.details
    if (error.code === 'E_FILE_STORE') return named(error, this.#stored.failed(now()))
    if (error.code === 'E_FILE_RECORD') return named(error, this.#recorded.failed(now()))
    if (error.code === 'E_FILE_WORKER' && retryAfterMs !== undefined) this.#suspect(task.id)
    if ((error.code === 'E_RATE_LIMITED' || error.code === 'E_SERVER') && retryAfterMs !== undefined)
      rateLimit.pause(hostOf(task.url), now() + retryAfterMs, error.message)
    return error
  }

  #suspect(taskId: string): void {
    if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(taskId)
  }

  #fail(lease: Lease, order: FileOrder['type'], error: ScrapeError, startedMs: number): void {
    const { halt, ...settled } = settleFailure(lease, order, error, { decide: this.#parts.decide, startedMs })
    this.#settle(settled)
    if (halt !== undefined) this.#halt(halt)
  }

  async #writeRecords(): Promise<void> {
    if (this.#isWritingRecords) return
    this.#isWritingRecords = true
    while (this.#records.length > 0) {
      const batch = this.#records.splice(0, RECORDS_MAX)
      const startedMs = performance.now()
      const refused = await writeRecords(this.#parts.records, batch)
      if (refused.size < batch.length) this.#recorded.succeeded()
      for (const lease of batch) {
        const error = refused.get(lease)
        if (error === undefined) this.#settle(settleRecorded(lease, startedMs))
        else this.#fail(lease, 'db_update', this.#withPatience(error, lease.task), startedMs)
      }
    }
    this.#isWritingRecords = false
  }

  #handBack(lease: Lease, reason: string): void {
    this.#settle(settleHandedBack(lease, reason))
  }

  #settle(settled: Settled): void {
    this.#settled.push(settled)
    this.#track(this.#commit())
  }

  /** What is settled while one commit is on its way makes up the next. */
  async #commit(): Promise<void> {
    if (this.#isCommitting) return
    this.#isCommitting = true
    await null // those who settle in this turn come along
    try {
      while (this.#settled.length > 0) {
        const batch = this.#settled.splice(0, COMMIT_MAX)
        for (const { outcome } of batch) this.#committing.add(outcome.lease)
        const { stale } = await this.#parts.frontier.commit(batch.map(({ outcome }) => outcome))
        const lost = new Set(stale.map(leaseKey))
        for (const settled of batch) await this.#onCommitted(settled, lost.has(leaseKey(settled.outcome.lease)))
      }
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    } finally {
      this.#isCommitting = false
    }
    this.#pollMs = POLL_MS.min
    this.#pump()
  }

  async #onCommitted({ outcome: { lease }, event, path }: Settled, isStale: boolean): Promise<void> {
    this.#held.delete(lease)
    this.#committing.delete(lease)
    if (event !== undefined) this.#parts.bus.emit(isStale ? { ...event, outcome: 'stale' } : event)
    if (path !== undefined && !isStale) await rm(path, { force: true }).catch(() => {})
  }

  async #extendLeases(): Promise<void> {
    const { frontier, leaseMs, bus } = this.#parts
    if (this.#held.size === 0) return
    try {
      const { lost } = await frontier.extend([...this.#held], leaseMs)
      const gone = new Set(lost.map(leaseKey))
      const isLost = (lease: Lease) => gone.has(leaseKey(lease)) && !this.#committing.has(lease)
      const mine = [...this.#held].filter(isLost)
      if (mine.length === 0) return
      this.#waiting = this.#waiting.filter((lease) => !isLost(lease))
      for (const lease of mine) {
        this.#held.delete(lease)
        this.#jobs.get(lease)?.controller.abort(new Error('its lease is lost'))
      }
      bus.emit({ type: 'lease.lost', url: mine[0]!.task.url, count: mine.length })
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  #halt(error: ScrapeError): void {
    this.#end.resolve({ how: 'halted', error })
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#wakeTimer)
    this.#wakeTimer = setTimeout(() => this.#pump(), Math.min(Math.max(ms, 1), POLL_MS.max))
  }

  /** Hands back what waits, gives running jobs their time, then takes them away, too. Their parts stay for the next try. */
  async #drain(drainMs: number): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#wakeTimer)
    await this.#settleDown() // a claim on its way
    for (const lease of this.#waiting.splice(0)) this.#handBack(lease, 'the worker stopped')
    const jobs = [...this.#jobs.values()]
    const deadline = setTimeout(() => {
      for (const { controller } of jobs) controller.abort(new Error('drain time is over'))
    }, drainMs)
    await Promise.all(jobs.map(({ done }) => done))
    clearTimeout(deadline)
    await this.#settleDown()
  }

  /** Work nobody waits for otherwise; all of it has ended when the loop has. */
  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  async #settleDown(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }
}

function named(error: ScrapeError, retryAfterMs: number | undefined): ScrapeError {
  if (retryAfterMs === undefined) return error
  return new ScrapeError(error.code, error.message, { ...error.details, retryAfterMs })
}

function isUpload({ data }: Task): boolean {
  return (data as { type?: string } | null)?.type === 'upload'
}
