/**
 * The crawl loop of one worker: claim → fetch → read → settle → commit, until nothing remains or somebody says stop.
 *
 *   frontier ──claim──▶ inbox ──a host is free──▶ #visit: fetch ▸ read ▸ settle ──▶ channel ──batch──▶ frontier.commit
 *
 * A socket is given its next request before the page it brought is parsed. Every hand-over is bounded: when the commit waits
 * for a slow sink the channel fills, visits wait to hand over, and no new request goes out.
 */

import { ScrapeError, toScrapeError } from '../core/errors.ts'
import { every } from '../core/every.ts'
import { pageOf } from '../core/failed-page.ts'
import { HeldLeases } from '../core/held-leases.ts'
import type { ItemRow } from '../core/item.ts'
import { openFilesWords } from '../core/open-files.ts'
import type { Page } from '../core/page.ts'
import { refusalOf } from '../core/refused.ts'
import { residentBytes } from '../core/resident-memory.ts'
import type { Emitted, Log } from '../core/scraper.ts'
import type { Task } from '../core/task.ts'
import type { Lease } from '../frontier/contract.ts'
import { Channel } from './channel.ts'
import { Claims } from './claims.ts'
import { Committer } from './commit.ts'
import type { CrawlEnd, CrawlParts } from './contract.ts'
import { Fallbacks } from './fallback.ts'
import { downloadTasks, isFileTask } from './file-tasks.ts'
import { Inbox, type WaitMs } from './inbox.ts'
import { PageTurns } from './page-turns.ts'
import { canConflict, LatestRoutes } from './queued-routes.ts'
import { type PageReading, type ReadingRequest, readPage } from './read-page.ts'
import { createRecentItems } from './recent-items.ts'
import { requestOf, skipsFiles } from './request.ts'
import { ResourceBrake } from './resource-brake.ts'
import { type Settled, settleDone, settleFailure, settleHandedBack, type TryTimes } from './settle.ts'
import { restorePauses, StallWatch } from './stall.ts'
import { tracePage } from './trace.ts'

/** Runs until it ends; everything it started has stopped when it resolves. */
export async function crawl(parts: CrawlParts, stop: AbortSignal): Promise<CrawlEnd> {
  await using loop = new CrawlLoop(parts)
  return await loop.run(stop)
}

const REPORT_MS = 500
/** How long aborted fetches and handlers get to notice. */
const ABORT_GRACE_MS = 1_000
/** Leases of a host that is paused for longer than this go back to the frontier. */
const HOLD_PAUSED_MS_MAX = 5_000

class CrawlLoop implements AsyncDisposable {
  readonly #parts: CrawlParts
  readonly #channel: Channel<Settled>
  readonly #recall: (row: ItemRow) => Emitted
  readonly #fallbacks: Fallbacks
  readonly #inbox: Inbox
  readonly #committer: Committer
  readonly #hardStop = new AbortController()
  readonly #cpuAtStart = process.cpuUsage()
  readonly #turns = new PageTurns()
  readonly #queuedRoutes: LatestRoutes | undefined
  readonly #claimedAtMs = new WeakMap<Lease, number>()
  /** Leases this worker must keep alive: in the inbox, being visited, or waiting for their commit. */
  readonly #held: HeldLeases<Lease>
  /** Requests out. */
  #inFlight = 0
  readonly #brake = new ResourceBrake()
  #hasSlowedDown = false
  /** Visits that have a page of a browser, or wait for one. */
  #browserPages = 0
  /** Visits begun whose result is not in the channel yet. */
  readonly #visits = new Set<Lease>()
  #finishedPages = 0
  readonly #claims: Claims
  readonly #stall: StallWatch
  #isLookingUp = false
  #isStopping = false
  #wakeTimer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #reporting: NodeJS.Timeout | undefined
  #haltedBy: ScrapeError | undefined
  readonly #end = Promise.withResolvers<CrawlEnd>()

  constructor(parts: CrawlParts) {
    this.#parts = parts
    this.#held = new HeldLeases(parts)
    this.#channel = parts.channel ?? new Channel()
    this.#recall = createRecentItems(parts.recentItemsMax)
    if (canConflict(parts.compiled.routes)) this.#queuedRoutes = new LatestRoutes()
    this.#claims = new Claims(parts, (leases) => this.#onClaimed(leases))
    const { wait: waitMs, backoffMax: backoffMsMax } = parts.compiled.limits
    this.#stall = new StallWatch({ ...parts, waitMs, backoffMsMax })
    this.#fallbacks = new Fallbacks(parts.compiled, parts.browsers !== undefined, parts.wasTurnedAway)
    this.#inbox = new Inbox((lease) => this.#fallbacks.isInBrowser(lease))
    this.#committer = new Committer({
      ...parts,
      channel: this.#channel,
      held: this.#held,
      isHungry: () => this.#inbox.size === 0 || this.#isStopping,
      isStopping: () => this.#isStopping,
      onCommitted: (batch, stale) => this.#onCommitted(batch, stale),
    })
    // Every exchange listens to this one signal; Node would take 11 listeners for a leak.
    process.getBuiltinModule('node:events').setMaxListeners(0, this.#hardStop.signal)
  }

  async run(stop: AbortSignal): Promise<CrawlEnd> {
    const { rateLimit, browsers, leaseMs } = this.#parts
    await restorePauses(this.#parts)
    const onStop = () => this.#end.resolve({ how: 'stopped' })
    stop.addEventListener('abort', onStop, { once: true })
    if (stop.aborted) onStop()
    rateLimit.onFree(() => this.#pump())
    browsers?.onFree(() => this.#pump())
    this.#heartbeat = every(() => this.#extendLeases(), leaseMs / 3)
    this.#reporting = every(() => {
      this.#report()
      return Promise.all([this.#lookUp(), this.#stopIfStalled()])
    }, REPORT_MS)
    this.#report()
    const committed = this.#committer.run().catch((error) => this.#halt(toScrapeError(error, 'E_SERVICE')))
    if (!stop.aborted) this.#pump()
    const end = await this.#end.promise
    stop.removeEventListener('abort', onStop)
    await this.#drain()
    await committed
    return this.#haltedBy === undefined ? end : { how: 'halted', error: this.#haltedBy }
  }

  /** One visit of one task, the whole journey. */
  async #visit(lease: Lease): Promise<void> {
    const { now, random, traceRatio: ratio } = this.#parts
    const { task } = lease
    const isInBrowser = this.#fallbacks.isInBrowser(lease)
    const startedMs = performance.now()
    const startedAtMs = now()
    const times = { queueMs: startedAtMs - (this.#claimedAtMs.get(lease) ?? startedAtMs), fetchMs: 0, parseMs: 0 }
    let page: Page | undefined
    let settled: Settled & { halt?: ScrapeError }
    this.#visits.add(lease)
    if (isInBrowser) this.#browserPages++
    try {
      const refusal = refusalOf(task)
      if (refusal !== undefined) throw new ScrapeError(refusal.code, refusal.message)
      this.#inFlight++
      page = await this.#fetch(lease, isInBrowser).finally(() => {
        this.#inFlight--
        times.fetchMs = performance.now() - startedMs
        this.#pump() // refill the socket before this page is parsed: +27 % at 64 in flight
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
    await this.#handOver(settled)
    this.#visits.delete(lease)
    if (settled.halt !== undefined) this.#halt(settled.halt)
    this.#pump()
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
    // A page that keeps its slot for ever would cost all others theirs; an HTTP page costs nobody anything.
    return await withinTime(compiled.limits.handlerTimeout, task.url, async () => {
      const reading = await readPage(request)
      reading.tasks.push(...(await downloadTasks({ task, base: page.url }, await live.downloads(), keepDownload)))
      return reading
    }).catch(async (error: unknown) => {
      // Whatever a handler throws when its page dies under it, is not the handler's fault: the task is tried again.
      throw (await live.failureBehind(error)) ?? error
    })
  }

  async #settleFailure(lease: Lease, error: ScrapeError, page: Page | undefined, times: TryTimes) {
    const { compiled, now, random, keepSnapshot, startsFromList = false } = this.#parts
    this.#fallbacks.note(lease, error.code)
    if (error.code === 'E_RESOURCES') this.#slowDown(error)
    // A browser that does not answer would be waited for in vain.
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

  /** One line per run. */
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

  /** Starts what may start, and asks for more when the inbox runs low. */
  #pump(): void {
    if (this.#isStopping) return
    const { concurrency } = this.#parts
    let isBlocked = false
    while (this.#mayStart()) {
      const next = this.#inbox.take(this.#waitMs)
      if (next.lease === undefined) {
        isBlocked = this.#inbox.size > 0
        if (Number.isFinite(next.waitMs)) this.#wakeIn(next.waitMs)
        break
      }
      void this.#visit(next.lease)
    }
    this.#parts.onWaiting?.(this.#inbox.waitingForBrowser)
    const isLow = this.#inbox.size < concurrency || (isBlocked && this.#inbox.size < 8 * concurrency)
    if (isLow && !this.#claims.isUnderWay && this.#mayStart()) void this.#claim(isBlocked)
  }

  readonly #waitMs: WaitMs = (host, inBrowser) => {
    const { rateLimit, browsers } = this.#parts
    const isFull = inBrowser && browsers !== undefined && this.#browserPages >= browsers.slots
    return isFull ? Number.POSITIVE_INFINITY : rateLimit.waitMs(host)
  }

  #mayStart(): boolean {
    const { concurrency, pagesMax } = this.#parts
    const open = this.#held.size - this.#inbox.size
    return (
      !this.#isStopping &&
      this.#inFlight < Math.min(concurrency, this.#brake.limit(this.#parts.now())) &&
      this.#visits.size < 2 * concurrency &&
      this.#finishedPages + open < pagesMax
    )
  }

  async #claim(isBlocked: boolean): Promise<void> {
    try {
      this.#handBackPaused()
      if (await this.#claims.claim(this.#hostsToAvoid(isBlocked))) return
      this.#committer.hurry()
      const next = await this.#claims.whenDry(this.#held.size > 0)
      if (next === 'over') this.#end.resolve({ how: 'finished' })
      else if (next !== 'busy') this.#wakeIn(next)
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  /** While the inbox is full the frontier is not asked, and yet it may have something to say: pause, or this first. */
  async #lookUp(): Promise<void> {
    if (this.#isStopping || this.#inbox.size === 0 || this.#isLookingUp) return
    this.#isLookingUp = true
    try {
      if ((await this.#parts.frontier.stats()).isPaused)
        await this.#handBack(
          this.#inbox.remove(() => true),
          'the run is paused',
        )
      else await this.#claims.claimManual(this.#inbox.manual)
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    } finally {
      this.#isLookingUp = false
      this.#pump() // while it claimed, no other claim was made, however dry the inbox ran
    }
  }

  async #stopIfStalled(): Promise<void> {
    if (this.#isStopping || this.#visits.size > 0) return
    try {
      const stalled = await this.#stall.check(this.#inbox.hosts(1))
      if (stalled === undefined || this.#isStopping || this.#visits.size > 0) return
      this.#parts.bus.emit({ type: 'log', level: 'warn', message: stalled.message })
      this.#halt(stalled)
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  #onClaimed(leases: readonly Lease[]): void {
    for (const lease of leases) {
      this.#held.add(lease)
      this.#claimedAtMs.set(lease, this.#parts.now())
    }
    this.#inbox.add(leases)
    this.#pump()
  }

  #hostsToAvoid(isBlocked: boolean): string[] {
    const { rateLimit, concurrency } = this.#parts
    const paused = rateLimit.busyHosts().filter((host) => isLongPause(rateLimit.waitMs(host)))
    return [...new Set([...this.#inbox.hosts(isBlocked ? 1 : concurrency), ...paused])]
  }

  #handBackPaused(): void {
    const { rateLimit, now } = this.#parts
    for (const lease of this.#inbox.remove((_, host) => isLongPause(rateLimit.waitMs(host)))) {
      void this.#handOver(settleHandedBack(lease, 'its host is paused', now() + HOLD_PAUSED_MS_MAX))
    }
  }

  /** Waits while the channel is full. Never throws: a channel is broken only by the commit's own failure, which ends the run. */
  #handOver(settled: Settled): undefined | Promise<void> {
    try {
      const waiting = this.#channel.push(settled)
      this.#committer.noticed()
      return waiting?.catch(() => {})
    } catch {
      return undefined
    }
  }

  #onCommitted(batch: readonly Settled[], isStale: (lease: Lease) => boolean): void {
    const hasFiles = ({ outcome }: Settled) => outcome.kind === 'done' && outcome.tasks?.some(isFileTask) === true
    if (batch.some(hasFiles)) this.#parts.onFiles?.()
    for (const { outcome, event } of batch) {
      const isSkipped = event?.outcome === 'skipped' // it must not be fetched, so it does not count against the page limit
      const isEnd = !isSkipped && (outcome.kind === 'done' || outcome.kind === 'dead')
      if (isEnd && !isStale(outcome.lease)) this.#finishedPages++
    }
    if (this.#finishedPages >= this.#parts.pagesMax) this.#end.resolve({ how: 'limit' })
    this.#pump()
  }

  async #extendLeases(): Promise<void> {
    try {
      const lost = await this.#held.extend()
      if (lost.size === 0) return
      this.#inbox.remove((lease) => lost.has(lease))
      this.#pump() // what it waited for may have been these
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  #report(): void {
    const { user, system } = process.cpuUsage(this.#cpuAtStart)
    this.#parts.bus.emit({
      type: 'worker.in-flight',
      workerId: this.#parts.workerId,
      inFlight: this.#inFlight,
      rssBytes: residentBytes(),
      cpuMs: (user + system) / 1000,
    })
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#wakeTimer)
    this.#wakeTimer = setTimeout(() => this.#pump(), Math.min(ms, 60_000))
  }

  #halt(error: ScrapeError): void {
    this.#haltedBy ??= error
    this.#end.resolve({ how: 'halted', error })
  }

  /** Hands back what waits, gives what is in flight its time, then hands that back too. */
  async #drain(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#wakeTimer)
    this.#committer.hurry()
    const { drainMs } = this.#parts
    const deadline = setTimeout(
      () => this.#hardStop.abort(new Error('drain time is over')),
      this.#haltedBy === undefined ? drainMs : 0,
    )
    await this.#handBack(this.#inbox.remove(() => true))
    const givenUpAtMs = performance.now() + (this.#haltedBy === undefined ? drainMs : 0) + ABORT_GRACE_MS
    while ((this.#visits.size > 0 || this.#claims.isUnderWay) && performance.now() < givenUpAtMs) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    clearTimeout(deadline)
    // What has not ended by now is a handler that never will: its task goes to somebody else, its late result nowhere.
    await this.#handBack([...this.#inbox.remove(() => true), ...this.#visits])
    this.#channel.close()
  }

  async #handBack(leases: readonly Lease[], why = 'the worker stopped'): Promise<void> {
    for (const lease of leases) await this.#handOver(settleHandedBack(lease, why))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    clearInterval(this.#reporting)
    this.#report()
    clearTimeout(this.#wakeTimer)
  }
}

/** What goes on after that fails when its page is closed. */
async function withinTime<T>(ms: number, url: string, work: () => Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const what = `the handler was not done after ${ms} ms`
  const timer = setTimeout(() => reject(new ScrapeError('E_HANDLER_TIMEOUT', what, { url })), ms)
  try {
    const working = work()
    working.catch(() => {}) // nobody listens to it once it is late
    return await Promise.race([working, late])
  } finally {
    clearTimeout(timer)
  }
}

function isLongPause(waitMs: number): boolean {
  return waitMs > HOLD_PAUSED_MS_MAX && Number.isFinite(waitMs)
}
