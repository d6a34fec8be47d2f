/**
 * The file side of a worker: processes that store files, the loop that feeds them, and their records. None of it is created
 * before the run's first file, because most scrapers never have one.
 */

import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ScrapeError } from '../../core/errors.ts'
import { toScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { every } from '../../core/every.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import { FILES_LANE, isFileLane, type Task } from '../../core/task.ts'
import type { KeptDownload, Sessions } from '../../crawl/contract.ts'
import { decide } from '../../crawl/retry.ts'
import type { RateLimit } from '../../fetch/contract.ts'
import { ForeignLanes } from '../../files/foreign-lanes.ts'
import { LaneLife } from '../../files/lane-life.ts'
import type { FileLoop } from '../../files/loop.ts'
import { pinnedLane } from '../../files/orders.ts'
import type { OpenFilePool } from '../../files/pool.ts'
import { spoolId, UPLOADS } from '../../files/spool.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import type { FileOrders } from './file-process.ts'

/** Plain data: it may be sent to another process. */
export interface FileSpec {
  /** A folder, or `s3://BUCKET/PREFIX?…`. */
  store: string
  /** A local folder for files in progress. */
  spool: string
  /** Where records are kept: `postgres://…`, or a file. */
  records: string
  workersMax: number
  bytesMax: number
  steps: readonly string[]
}

interface WorkerFilesParts {
  spec: FileSpec
  frontier: Frontier
  limits: ResolvedLimits
  rateLimit: RateLimit
  sessions: Sessions
  mayFetch: (url: string, signal: AbortSignal) => Promise<void>
  http: Pick<FileOrders['http'], 'userAgent' | 'allowPrivate' | 'allowAddresses' | 'proxy'>
  bus: EventBus
  runId: string
  scraper: string
  workerId: string
  leaseMs: number
  drainMs: number
  /** Called once, with the first file. */
  onBegin: () => void
  /**
   * False: other workers store files that any machine can fetch; this one only stores its own browsers' downloads. Default true.
   */
  takesShared?: boolean
  /** How long another machine may be unresponsive before its files are given up. Default 10 min. */
  silentMsMax?: number
}

/** How often the frontier is checked for files of other workers. */
const LOOK_MS = 2_000
const DRAIN_LOOK_MS = 200
/** Engines that a second machine cannot open. */
const ONE_MACHINE = new Set(['memory:', 'sqlite:'])
const HEADERS_MS_MAX = 60_000
const IDLE_MS_MAX = 60_000
const TOTAL_MS_MAX = 7_200_000
const ENTRY = fileURLToPath(new URL('./file-process.ts', import.meta.url))

export class WorkerFiles implements AsyncDisposable {
  readonly #parts: WorkerFilesParts
  readonly #stop: AbortSignal
  readonly #ending = new AbortController()
  readonly #failed = Promise.withResolvers<ScrapeError>()
  #hasFailed = false
  readonly #foreign: ForeignLanes
  readonly #life: LaneLife
  /** The lane pinned to this machine, and the served lanes that may hold anything now. */
  #ownLane: string | undefined
  #pinned: readonly string[] = []
  readonly #looking: NodeJS.Timeout
  #looked: Promise<void>
  #pool: OpenFilePool | undefined
  #loop: FileLoop | undefined
  #opening: Promise<void> | undefined
  #opened = new AsyncDisposableStack()

  constructor(parts: WorkerFilesParts, stop: AbortSignal) {
    this.#parts = parts
    this.#foreign = new ForeignLanes(parts)
    this.#life = new LaneLife(parts.frontier)
    this.#stop = AbortSignal.any([stop, this.#ending.signal])
    this.#looking = every(() => {
      this.#looked = this.#look()
      return this.#looked
    }, LOOK_MS)
    this.#looking.unref()
    this.#looked = this.#look()
  }

  /** Undefined before the first file. */
  get pool(): OpenFilePool | undefined {
    return this.#pool
  }

  /** Tasks waiting in the lanes this worker serves, as of the last check. */
  get waiting(): number {
    return this.#waiting
  }
  #waiting = 0

  /** Resolves with the error that makes storing files impossible; never resolves otherwise. */
  get failed(): Promise<ScrapeError> {
    return this.#failed.promise
  }

  /** Called by code that has just requested a file. */
  wake(): void {
    if (this.#stop.aborted) return
    this.#opening ??= this.#open().catch((error) => this.#fail(toScrapeError(error, 'E_OUTPUT')))
  }

  /** A page has just requested one or more files. */
  ordered = (): void => {
    if (this.#takesShared || this.#pinned.length > 0) this.wake()
  }

  get #takesShared(): boolean {
    return this.#parts.takesShared ?? true
  }

  get #isOnOneMachine(): boolean {
    return ONE_MACHINE.has(this.#parts.frontier.engine)
  }

  #fail(error: ScrapeError): void {
    this.#hasFailed = true
    this.#failed.resolve(error)
  }

  /** Takes over a browser's download before its page is closed. */
  keep = async ({ path }: { path: string }): Promise<KeptDownload> => {
    const folder = join(this.#parts.spec.spool, UPLOADS)
    await mkdir(folder, { recursive: true })
    const kept = join(folder, crypto.randomUUID())
    await rename(path, kept)
    const lane = await this.#lane()
    if (!this.#pinned.includes(lane)) this.#pinned = [...this.#pinned, lane]
    if (!this.#isOnOneMachine) await this.#life.sign(lane).catch(() => {}) // the next check signs, too
    return { path: kept, lane }
  }

  /** Resolves when this worker has no more files to store, or is told to stop. */
  async drained(): Promise<void> {
    while (!this.#stop.aborted && !this.#hasFailed && (await this.#count()) > 0) {
      this.wake()
      await sleep(DRAIN_LOOK_MS, undefined, { signal: this.#stop }).catch(() => {})
    }
  }

  async #look(): Promise<void> {
    // An unreachable frontier is reported by the crawl.
    const count = await this.#count().catch(() => 0)
    if (count > 0) this.wake()
  }

  async #count(): Promise<number> {
    const served = await this.#served(await this.#parts.frontier.stats())
    this.#pinned = served.map(([lane]) => lane).filter((lane) => lane !== FILES_LANE)
    this.#waiting = served.reduce((sum, [, { pending }]) => sum + pending, 0)
    return served.reduce((sum, [, { pending, claimed }]) => sum + pending + claimed, 0)
  }

  /**
   * The lanes with files that this worker serves. In a run limited to one machine, no other machine could have the file: if it is
   * no longer here, it is reported missing and the run ends.
   */
  async #served({ lanes, isPaused }: FrontierStats): Promise<[string, { pending: number; claimed: number }][]> {
    const files = Object.entries(lanes).filter(
      ([lane, { pending, claimed }]) => isFileLane(lane) && pending + claimed > 0,
    )
    if (files.every(([lane]) => lane === FILES_LANE)) return this.#takesShared ? files : []
    if (this.#isOnOneMachine) return files
    const own = await this.#lane()
    const isServed = (lane: string) => lane === own || (lane === FILES_LANE && this.#takesShared)
    if (files.some(([lane]) => lane === own)) await this.#life.sign(own)
    await this.#foreign.look({ lanes: files.filter(([lane]) => lane !== FILES_LANE && lane !== own), isPaused })
    return files.filter(([lane]) => isServed(lane))
  }

  async #lane(): Promise<string> {
    this.#ownLane ??= pinnedLane(await spoolId(this.#parts.spec.spool))
    return this.#ownLane
  }

  async #open(): Promise<void> {
    const { spec, frontier, limits, rateLimit, mayFetch, bus, runId, scraper, leaseMs, drainMs } = this.#parts
    this.#parts.onBegin()
    const [{ openFileRecords }, { lazyRecords }, { openFilePool }, { runFiles }] = await Promise.all([
      import('../../runs/file-records.ts'),
      import('../../files/lazy-records.ts'),
      import('../../files/pool.ts'),
      import('../../files/loop.ts'),
    ])
    const records = this.#opened.use(lazyRecords(() => openFileRecords(spec.records)))
    const pool = this.#opened.use(
      openFilePool({
        entry: ENTRY,
        orders: this.#orders(),
        workers: 1,
        findStored: (sha256, place) => records.findStored(sha256, place),
        onDeath: (pid, how) =>
          bus.emit({ type: 'log', level: 'error', message: `file process ${pid} died (${how}); starting another` }),
      }),
    )
    this.#pool = pool
    this.#loop = runFiles(
      {
        frontier,
        pool,
        records,
        rateLimit,
        mayFetch,
        decide: (error, attempt) => decide(error, { attempt }, limits, Date.now()),
        headersFor: (task) => this.#headersFor(task),
        bus,
        runId,
        scraper,
        workerId: fileWorkerId(this.#parts.workerId),
        leaseMs,
        drainMs,
        pinnedLanes: () => this.#pinned,
        takesShared: this.#takesShared,
        retryAfterMsMax: limits.retryAfterMax,
      },
      this.#stop,
    )
    void this.#loop.ended.then((end) => {
      if (end.how === 'halted') this.#fail(end.error)
    })
  }

  #orders(): FileOrders {
    const { spec, http, limits } = this.#parts
    return {
      store: spec.store,
      spool: spec.spool,
      bytesMax: spec.bytesMax,
      steps: spec.steps as FileOrders['steps'],
      http: {
        ...http,
        connectTimeoutMs: limits.connectTimeout,
        connectionsPerHost: limits.perHost.concurrency,
        headersMsMax: HEADERS_MS_MAX,
        idleMsMax: IDLE_MS_MAX,
        totalMsMax: TOTAL_MS_MAX,
        redirectsMax: limits.redirects,
        retryAfterMsMax: limits.retryAfterMax,
      },
    }
  }

  async #headersFor({ session, url }: Task): Promise<Readonly<Record<string, string>>> {
    const { sessions } = this.#parts
    const state = session === undefined ? undefined : await sessions.get(session)
    return state === undefined ? {} : sessions.headers(state, url)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking)
    this.#ending.abort()
    await this.#looked
    await this.#opening
    await this.#loop?.ended
    await this.#opened.disposeAsync()
  }
}

/**
 * Leases on files are distinguished from those on pages: a page suspected of killing workers must not wait for a long download.
 */
export function fileWorkerId(workerId: string): string {
  return `${workerId}/files`
}
