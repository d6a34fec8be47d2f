/**
 * The loop of files: the run's `files` lane, from the claim to the commit, beside the loop that fetches pages.
 *
 *   frontier ──claim──▶ waiting ──its host is free──▶ pool ──stored──▶ commit: done + db_update ──▶ frontier
 *      ▲                   └─ db_update ──batch──▶ records ──▶ commit: done                          │
 *      └──────────────── retry · postpone · dead · handed back at the stop ◀─────────────────────────┘
 *
 * No more is claimed than the pool can soon take. What is on this machine already asks nothing of a host and goes first. A store or a database that is away costs no tries and no second download.
 */

import { ScrapeError, toScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { every } from '../core/every.ts'
import { HeldLeases } from '../core/held-leases.ts'
import type { Task } from '../core/task.ts'
import { hostOf } from '../core/url.ts'
import type { RateLimit } from '../fetch/contract.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import { FileClaims, isUpload, POLL_MS } from './claims.ts'
import { FileCommitter } from './commit.ts'
import type { Decide, FileJob, FileOrder, FilePool, FileRecords } from './contract.ts'
import { FailureWaits } from './failure-waits.ts'
import { DownloadSlot, type MayFetch } from './host-slot.ts'
import { orderOf } from './orders.ts'
import { SERVICE_BACKOFF, type ServiceBackoffLimits } from './service-backoff.ts'
import { type Settled, settleFailure, settleHandedBack, settleRecorded, settleStored } from './settle-file.ts'
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
  /** Lanes of files this machine has, of those that may hold any now; asked before each claim. Default: none. */
  pinnedLanes?: () => readonly string[]
  /** False: only `pinnedLanes` are claimed from. Default true. */
  takesShared?: boolean
  /** Longest job, from the request to the store. Default 2 h. */
  jobMsMax?: number
  patience?: ServiceBackoffLimits
  /** Waits of our own are not longer: `Decide` makes those cost a try. Default: no limit. */
  retryAfterMsMax?: number
  now?: () => number
}

export type FilesEnd = { how: 'stopped' } | { how: 'halted'; error: ScrapeError }

export interface FileLoop {
  /** Resolves when it was stopped or halted, and everything it held is settled or handed back. Never rejects. */
  readonly ended: Promise<FilesEnd>
}

export function runFiles(parts: FileLoopParts, stop: AbortSignal): FileLoop {
  return { ended: new Loop(parts).run(stop) }
}

/** While something waits, how often the run is asked whether it is paused. */
const PAUSE_LOOK_MS = 500
const RECORDS_MAX = 200
const JOB_MS_MAX = 7_200_000

class Loop {
  readonly #parts: Required<FileLoopParts>
  readonly #claims: FileClaims
  readonly #failureWaits: FailureWaits
  readonly #held: HeldLeases<Lease>
  readonly #committer: FileCommitter
  /** Those of them that wait for their host, and those a job works on. */
  #waiting: Lease[] = []
  readonly #jobs = new Map<Lease, { controller: AbortController; done: Promise<void> }>()
  /** Hosts a job is about to get a slot of. */
  readonly #entering = new Set<string>()
  #records: Lease[] = []
  #work = new Set<Promise<void>>()
  #isLookingUp = false
  #isWritingRecords = false
  #isStopping = false
  #wakeTimer: NodeJS.Timeout | undefined
  readonly #end = Promise.withResolvers<FilesEnd>()

  constructor(parts: FileLoopParts) {
    this.#parts = {
      mayFetch: async () => {},
      headersFor: async () => ({}),
      pinnedLanes: () => [],
      takesShared: true,
      jobMsMax: JOB_MS_MAX,
      patience: SERVICE_BACKOFF,
      retryAfterMsMax: Number.POSITIVE_INFINITY,
      now: Date.now,
      ...parts,
    }
    this.#failureWaits = new FailureWaits(this.#parts)
    this.#claims = new FileClaims(this.#parts, {
      waiting: () => this.#waiting,
      jobs: this.#jobs,
      hostWaitMs: (lease) => this.#hostWaitMs(lease),
    })
    const { frontier, bus } = this.#parts
    this.#held = new HeldLeases(this.#parts)
    this.#committer = new FileCommitter({
      frontier,
      bus,
      held: this.#held,
      onNews: () => this.#onNews(),
      onFailure: (error) => this.#halt(error),
    })
  }

  async run(stop: AbortSignal): Promise<FilesEnd> {
    const { rateLimit, bus, leaseMs } = this.#parts
    const onStop = () => this.#end.resolve({ how: 'stopped' })
    stop.addEventListener('abort', onStop, { once: true })
    if (stop.aborted) onStop()
    // Called for every page: it starts what waits, and claims nothing that is not due.
    rateLimit.onFree(() => {
      if (this.#waiting.length > 0) this.#pump()
    })
    const unlisten = bus.on((event) => {
      if (event.type === 'committed' && event.added > 0) this.#onAdded()
    })
    const lookingUp = every(() => this.#track(this.#lookUp()), PAUSE_LOOK_MS)
    const heartbeat = every(() => this.#track(this.#extendLeases()), leaseMs / 3)
    if (!stop.aborted) this.#pump()
    const end = await this.#end.promise
    stop.removeEventListener('abort', onStop)
    unlisten()
    await this.#drain(end.how === 'halted' ? 0 : this.#parts.drainMs)
    clearInterval(heartbeat)
    clearInterval(lookingUp)
    return end
  }

  /** Starts what may start, and claims what there is room for if it is time. */
  #pump(): void {
    if (this.#isStopping) return
    const soonestMs = this.#startWaiting()
    const { dueInMs } = this.#claims
    if (dueInMs <= 0 && this.#claims.canClaim) this.#track(this.#claim())
    else this.#wakeIn(Math.min(soonestMs, dueInMs > 0 ? dueInMs : POLL_MS.max))
  }

  /** Returns in how many milliseconds the next of those who wait might start. */
  #startWaiting(): number {
    const { pool } = this.#parts
    const { storeWaitMs } = this.#failureWaits
    let soonestMs = storeWaitMs === 0 ? Number.POSITIVE_INFINITY : storeWaitMs
    const waiting: Lease[] = []
    for (const lease of this.#waiting) {
      const waitMs = this.#jobs.size < pool.capacity ? Math.max(storeWaitMs, this.#hostWaitMs(lease)) : Infinity
      if (waitMs === 0) this.#start(lease)
      else waiting.push(lease)
      soonestMs = Math.min(soonestMs, waitMs)
    }
    this.#waiting = waiting
    return soonestMs
  }

  #hostWaitMs({ task }: Lease): number {
    if (isUpload(task)) return 0
    const host = hostOf(task.url)
    return this.#entering.has(host) ? Number.POSITIVE_INFINITY : this.#parts.rateLimit.waitMs(host, { isFile: true })
  }

  async #claim(): Promise<void> {
    try {
      await this.#claims.claim((lease) => this.#take(lease))
    } catch (error) {
      return this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
    if (this.#records.length > 0) this.#track(this.#writeRecords())
    this.#pump()
  }

  #onAdded(): void {
    if (!this.#isStopping && this.#claims.onAdded()) this.#wakeIn(this.#claims.dueInMs)
  }

  /** Leases that wait while the run is paused are handed back: they must not start. */
  async #lookUp(): Promise<void> {
    if (this.#isStopping || this.#waiting.length === 0 || this.#isLookingUp) return
    this.#isLookingUp = true
    try {
      if (!(await this.#parts.frontier.stats()).isPaused) return
      for (const lease of this.#waiting.splice(0)) this.#handBack(lease, 'the run is paused')
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    } finally {
      this.#isLookingUp = false
    }
  }

  #take(lease: Lease): void {
    this.#held.add(lease)
    try {
      const { type } = orderOf(lease.task)
      if (type === 'db_update') this.#records.push(lease)
      else if (type === 'upload') this.#waiting.unshift(lease)
      else this.#waiting.push(lease)
    } catch (error) {
      this.#fail(lease, 'download', toScrapeError(error, 'E_ROUTE_DATA'), performance.now())
    }
  }

  #start(lease: Lease): void {
    const controller = new AbortController()
    const done = this.#carryOut(lease, controller).finally(() => {
      this.#jobs.delete(lease)
      this.#claims.onRoom()
      this.#pump()
    })
    this.#jobs.set(lease, { controller, done })
  }

  /** One job, the whole journey. Never throws. */
  async #carryOut(lease: Lease, controller: AbortController): Promise<void> {
    const { pool, runId, scraper, headersFor, jobMsMax, now } = this.#parts
    const { task } = lease
    const { signal } = controller
    const order = orderOf(task) as FileJob['order']
    const startedMs = performance.now()
    // Not `AbortSignal.timeout`: that would be held for two hours after each file.
    const late = new ScrapeError('E_TIMEOUT_TOTAL', `not stored within ${jobMsMax} ms`)
    const deadline = setTimeout(() => controller.abort(late), jobMsMax)
    using place = new DownloadSlot(this.#parts.rateLimit, this.#parts.mayFetch, signal)
    try {
      let headers = {}
      if (order.type === 'download') {
        await this.#enter(place, task.url)
        headers = await headersFor(task)
      }
      const job: FileJob = {
        task: { id: task.id, url: task.url, session: task.session },
        order,
        runId,
        scraper,
        headers,
      }
      const isAlone = this.#failureWaits.takeSuspect(task.id) || lease.losses > 0
      const stored = await pool.run(job, signal, {
        onRedirect: (url) => place.enter(url),
        onReceived: () => place.leave(),
        beforeStore: () => this.#mustHold(lease),
        isAlone,
      })
      this.#failureWaits.onStored()
      this.#settle(settleStored(lease, job, stored, { startedMs, nowMs: now() }))
    } catch (error) {
      const isLate = signal.reason === late
      if (signal.aborted && !isLate) return this.#handBack(lease, 'stopped before it was done')
      const known = toScrapeError(isLate ? late : error, 'E_FILE_WORKER')
      this.#fail(lease, order.type, this.#failureWaits.onFailure(known, task), startedMs)
    } finally {
      clearTimeout(deadline)
    }
  }

  /** One after the other: those who come together would all find the same free slot, and wait for it in places of the pool. */
  async #enter(place: DownloadSlot, url: string): Promise<void> {
    const host = hostOf(url)
    this.#entering.add(host)
    try {
      await place.enter(url)
    } finally {
      this.#entering.delete(host)
      if (this.#waiting.length > 0) this.#pump()
    }
  }

  /** A job that slept past its lease must not write over what its successor stored. */
  async #mustHold(lease: Lease): Promise<void> {
    const { lost } = await this.#parts.frontier.extend([lease], this.#parts.leaseMs)
    if (lost.length > 0) throw new ScrapeError('E_FILE_WORKER', 'its lease is lost')
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
      if (refused.size < batch.length) this.#failureWaits.onRecorded()
      for (const lease of batch) {
        const error = refused.get(lease)
        if (error === undefined) this.#settle(settleRecorded(lease, startedMs))
        else this.#fail(lease, 'db_update', this.#failureWaits.onFailure(error, lease.task), startedMs)
      }
    }
    this.#isWritingRecords = false
  }

  #handBack(lease: Lease, reason: string): void {
    this.#settle(settleHandedBack(lease, reason))
  }

  #settle(settled: Settled): void {
    this.#track(this.#committer.settle(settled))
  }

  async #extendLeases(): Promise<void> {
    try {
      const lost = await this.#held.extend()
      if (lost.size === 0) return
      this.#waiting = this.#waiting.filter((lease) => !lost.has(lease))
      for (const lease of lost) this.#jobs.get(lease)?.controller.abort(new Error('its lease is lost'))
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  /** Something may have come into a lane. */
  #onNews(): void {
    this.#claims.onNews()
    this.#pump()
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
