/**
 * The visits of a worker: starts as many as may run concurrently, and takes each from its request to its outcome.
 *
 *   inbox ──a host is free──▶ fetch ▸ read ▸ settle ──▶ committer
 *
 * A socket gets its next request before the page it delivered is parsed.
 */

import { ScrapeError, toScrapeError } from '../core/errors.ts'
import { pageOf } from '../core/failed-page.ts'
import type { ItemRow } from '../core/item.ts'
import { openFilesWords } from '../core/open-files.ts'
import type { Page } from '../core/page.ts'
import { refusalOf } from '../core/refused.ts'
import type { Emitted, Log } from '../core/scraper.ts'
import type { Task } from '../core/task.ts'
import type { Lease } from '../frontier/contract.ts'
import type { Claims } from './claims.ts'
import type { Committer } from './commit.ts'
import type { CrawlParts } from './contract.ts'
import type { Fallbacks } from './fallback.ts'
import { downloadTasks } from './file-tasks.ts'
import type { Inbox, WaitMs } from './inbox.ts'
import { PageTurns } from './page-turns.ts'
import { canConflict, LatestRoutes } from './queued-routes.ts'
import { type PageReading, type ReadingRequest, readPage } from './read-page.ts'
import { createRecentItems } from './recent-items.ts'
import { requestOf, skipsFiles } from './request.ts'
import { ResourceBrake } from './resource-brake.ts'
import { type Settled, settleDone, settleFailure, settleHandedBack, type TryTimes } from './settle.ts'
import { tracePage } from './trace.ts'

interface VisitsParts extends CrawlParts {
  inbox: Inbox
  claims: Pick<Claims, 'queueMs'>
  committer: Pick<Committer, 'handOver'>
  fallbacks: Fallbacks
  /** A request or visit has ended, so more may start. */
  onRoom: () => void
  /** A page ended the run. */
  onHalt: (error: ScrapeError) => void
}

export class Visits {
  readonly #parts: VisitsParts
  readonly #recall: (row: ItemRow) => Emitted
  readonly #hardStop = new AbortController()
  readonly #turns = new PageTurns()
  readonly #queuedRoutes: LatestRoutes | undefined
  readonly #brake = new ResourceBrake()
  #hasSlowedDown = false
  #inFlight = 0
  /** Visits that have a browser page, or wait for one. */
  #browserPages = 0
  readonly #unfinished = new Set<Lease>()

  constructor(parts: VisitsParts) {
    this.#parts = parts
    this.#recall = createRecentItems(parts.recentItemsMax)
    if (canConflict(parts.compiled.routes)) this.#queuedRoutes = new LatestRoutes()
    // Every exchange listens to this signal; Node warns of a leak from 11 listeners on.
    process.getBuiltinModule('node:events').setMaxListeners(0, this.#hardStop.signal)
  }

  /** Requests in flight. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Visits whose result is not in the channel yet. */
  get unfinished(): ReadonlySet<Lease> {
    return this.#unfinished
  }

  get hasRoom(): boolean {
    const { concurrency, now } = this.#parts
    return this.#inFlight < Math.min(concurrency, this.#brake.limit(now())) && this.#unfinished.size < 2 * concurrency
  }

  /** Takes a task whose host is free from the inbox and starts its visit; if there is none, returns how long to wait. */
  startNext(): 'started' | { waitMs: number } {
    const next = this.#parts.inbox.take(this.#waitMs)
    if (next.lease === undefined) return { waitMs: next.waitMs }
    void this.#visit(next.lease)
    return 'started'
  }

  /** Aborts the visits in flight; their tasks are handed back. */
  abort(reason: Error): void {
    this.#hardStop.abort(reason)
  }

  /** One visit of one task, the whole journey. */
  async #visit(lease: Lease): Promise<void> {
    const { now, random, claims, committer, traceRatio: ratio } = this.#parts
    const { task } = lease
    const isInBrowser = this.#parts.fallbacks.isInBrowser(lease)
    const startedMs = performance.now()
    const startedAtMs = now()
    const times = { queueMs: claims.queueMs(lease, startedAtMs), fetchMs: 0, parseMs: 0 }
    let page: Page | undefined
    let settled: Settled & { halt?: ScrapeError }
    this.#unfinished.add(lease)
    if (isInBrowser) this.#browserPages++
    try {
      const refusal = refusalOf(task)
      if (refusal !== undefined) throw new ScrapeError(refusal.code, refusal.message)
      this.#inFlight++
      page = await this.#fetch(lease, isInBrowser).finally(() => {
        this.#inFlight--
        times.fetchMs = performance.now() - startedMs
        this.#parts.onRoom() // refill the socket before this page is parsed: +27 % at 64 in flight
      })
      await this.#turns.next()
      const parseStartedMs = performance.now()
      const reading = await this.#read(lease, page)
      times.parseMs = performance.now() - parseStartedMs
      this.#reportInvalid(task, reading.invalid)
      this.#queuedRoutes?.note(reading.tasks)
      this.#parts.onRead?.(task, page, reading, this.#parts.args)
      settled = {
        ...settleDone(lease, page, reading, times),
        ...(reading.stop === undefined ? {} : { halt: reading.stop }),
      }
    } catch (error) {
      settled = this.#hardStop.signal.aborted
        ? settleHandedBack(lease, 'stopped before it was done')
        : await this.#settleFailure(lease, toScrapeError(error, 'E_HANDLER', { url: task.url }), page, times)
    }
    page?.release()
    if (isInBrowser) this.#browserPages--
    if (ratio !== undefined) tracePage(settled, { startedAtMs, ratio, random })
    await committer.handOver(settled)
    this.#unfinished.delete(lease)
    if (settled.halt !== undefined) this.#parts.onHalt(settled.halt)
    this.#parts.onRoom()
  }

  async #fetch(lease: Lease, isInBrowser: boolean): Promise<Page> {
    const { compiled, fetcher, sessions, startsFromList } = this.#parts
    const request = requestOf({ compiled, isInBrowser, startsFromList }, lease, sessions)
    return await fetcher.fetch(request instanceof Promise ? await request : request, this.#hardStop.signal)
  }

  async #read(lease: Lease, page: Page): Promise<PageReading> {
    const { compiled, runId, args, policy, save, sessions, keepDownload } = this.#parts
    const { task, attempt } = lease
    const request: ReadingRequest = {
      compiled, task, page, attempt, runId, args, policy, save, recall: this.#recall, sessions, log: this.#log,
      queuedRoutes: this.#queuedRoutes,
    } // biome-ignore format: one line reads better
    if (page.live === undefined) return await readPage(request)
    const { live } = page
    // A browser page that never ends would keep its slot from all others; an HTTP page holds none.
    return await withinTime(compiled.limits.handlerTimeout, task.url, async () => {
      const reading = await readPage(request)
      reading.tasks.push(...(await downloadTasks({ task, base: page.url }, await live.downloads(), keepDownload)))
      return reading
    }).catch(async (error: unknown) => {
      // If the page crashed under its handler, the error is not the handler's fault: the task is retried.
      throw (await live.failureBehind(error)) ?? error
    })
  }

  async #settleFailure(lease: Lease, error: ScrapeError, page: Page | undefined, times: TryTimes) {
    const { compiled, now, random, fallbacks, keepSnapshot, startsFromList = false } = this.#parts
    fallbacks.note(lease, error.code)
    if (error.code === 'E_RESOURCES') this.#slowDown(error)
    // A crashed browser takes no screenshot.
    const screenshot = error.code === 'E_BROWSER_CRASHED' ? undefined : await page?.live?.screenshot()
    return settleFailure(lease, error, {
      limits: compiled.limits,
      nowMs: now(),
      random,
      times,
      isStart: lease.task.depth === 0 && !startsFromList,
      skipsFiles: skipsFiles(compiled, lease.task.route),
      keepSnapshot: () => keepSnapshot(lease.task, page ?? pageOf(error), screenshot),
    })
  }

  /** Logged once per run. */
  #slowDown(error: ScrapeError): void {
    const { bus, now } = this.#parts
    if (!this.#brake.refused(this.#inFlight + 1, now()) || this.#hasSlowedDown) return
    this.#hasSlowedDown = true
    const message = `${error.message}: continuing with fewer pages at once; ${openFilesWords()}. ${error.fix}`
    bus.emit({ type: 'log', level: 'warn', message })
  }

  readonly #log = (task: Task): Log => {
    const at = (level: 'debug' | 'info' | 'warn') => (message: string, extra?: object) =>
      this.#parts.bus.emit({ type: 'log', level, message, url: task.url, ...(extra === undefined ? {} : { extra }) })
    return { debug: at('debug'), info: at('info'), warn: at('warn') }
  }

  #reportInvalid(task: Task, invalid: readonly { problems: string[]; item: string }[]): void {
    for (const one of invalid) this.#parts.bus.emit({ type: 'item.invalid', url: task.url, route: task.route, ...one })
  }

  readonly #waitMs: WaitMs = (host, inBrowser) => {
    const { rateLimit, browsers } = this.#parts
    const isFull = inBrowser && browsers !== undefined && this.#browserPages >= browsers.slots
    return isFull ? Number.POSITIVE_INFINITY : rateLimit.waitMs(host)
  }
}

/** Work that continues after the timeout fails when its page is closed. */
async function withinTime<T>(ms: number, url: string, work: () => Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const what = `the handler was not done after ${ms} ms`
  const timer = setTimeout(() => reject(new ScrapeError('E_HANDLER_TIMEOUT', what, { url })), ms)
  try {
    const working = work()
    working.catch(() => {}) // after the timeout, nothing awaits it
    return await Promise.race([working, late])
  } finally {
    clearTimeout(timer)
  }
}
