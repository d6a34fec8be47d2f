/**
 * The crawl loop of one worker: claim → fetch → read → settle → commit, until nothing remains or it is told to stop.
 *
 *   frontier ──claim──▶ inbox ──a host is free──▶ visit: fetch ▸ read ▸ settle ──▶ channel ──batch──▶ frontier.commit
 *
 * Every hand-over is bounded: when the commit waits for a slow sink the channel fills, visits wait to hand over, and no new
 * request goes out.
 */

import { type ScrapeError, toScrapeError } from '../core/errors.ts'
import { every } from '../core/every.ts'
import { HeldLeases } from '../core/held-leases.ts'
import { residentBytes } from '../core/resident-memory.ts'
import type { Lease } from '../frontier/contract.ts'
import { Channel } from './channel.ts'
import { Claims } from './claims.ts'
import { Committer } from './commit.ts'
import type { CrawlEnd, CrawlParts } from './contract.ts'
import { Fallbacks } from './fallback.ts'
import { isFileTask } from './file-tasks.ts'
import { Inbox } from './inbox.ts'
import { isReaderLoaded, loadReader } from './read-page.ts'
import { type Settled, settleHandedBack } from './settle.ts'
import { restorePauses, StallWatch } from './stall.ts'
import { Visits } from './visits.ts'

/** Runs until it ends; everything it started has stopped when it resolves. */
export async function crawl(parts: CrawlParts, stop: AbortSignal): Promise<CrawlEnd> {
  await using loop = new CrawlLoop(parts)
  return await loop.run(stop)
}

const REPORT_MS = 500
/** After the first request was started; long enough for it to be sent. */
const LOAD_AFTER_MS = 10
/** How long aborted fetches and handlers have to react. */
const ABORT_GRACE_MS = 1_000
/** Leases of a host that is paused for longer than this go back to the frontier. */
const HOLD_PAUSED_MS_MAX = 5_000

class CrawlLoop implements AsyncDisposable {
  readonly #parts: CrawlParts
  readonly #channel: Channel<Settled>
  readonly #inbox: Inbox
  readonly #committer: Committer
  readonly #claims: Claims
  readonly #visits: Visits
  readonly #stall: StallWatch
  readonly #cpuAtStart = process.cpuUsage()
  /** Leases this worker must keep alive: in the inbox, being visited, or waiting for their commit. */
  readonly #held: HeldLeases<Lease>
  #finishedPages = 0
  #isLookingUp = false
  #isStallCheckDue = false
  #isStopping = false
  #wakeTimer: NodeJS.Timeout | undefined
  #loading: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #reporting: NodeJS.Timeout | undefined
  #haltedBy: ScrapeError | undefined
  readonly #end = Promise.withResolvers<CrawlEnd>()

  constructor(parts: CrawlParts) {
    this.#parts = parts
    this.#held = new HeldLeases(parts)
    this.#channel = parts.channel ?? new Channel()
    const fallbacks = new Fallbacks(parts.compiled, parts.browsers !== undefined, parts.wasTurnedAway)
    this.#inbox = new Inbox((lease) => fallbacks.isInBrowser(lease))
    this.#claims = new Claims({ ...parts, inbox: this.#inbox, held: this.#held, onClaimed: () => this.#pump() })
    const { wait: waitMs, backoffMax: backoffMsMax } = parts.compiled.limits
    this.#stall = new StallWatch({ ...parts, waitMs, backoffMsMax })
    this.#committer = new Committer({
      ...parts,
      channel: this.#channel,
      held: this.#held,
      isHungry: () => this.#inbox.size === 0 || this.#isStopping,
      isStopping: () => this.#isStopping,
      onCommitted: (batch, stale) => this.#onCommitted(batch, stale),
    })
    this.#visits = new Visits({
      ...parts,
      inbox: this.#inbox,
      claims: this.#claims,
      committer: this.#committer,
      fallbacks,
      onRoom: () => {
        if (this.#isStallCheckDue && this.#visits.unfinished.size === 0) void this.#stopIfStalled()
        this.#pump()
      },
      onHalt: (error) => this.#halt(error),
    })
  }

  async run(stop: AbortSignal): Promise<CrawlEnd> {
    const { rateLimit, browsers, leaseMs } = this.#parts
    await restorePauses(this.#parts)
    if (this.#parts.isFirstStart !== true) await loadReader()
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
    if (!stop.aborted) {
      this.#pump()
      if (!isReaderLoaded()) this.#loading = setTimeout(() => void this.#loadReader(), LOAD_AFTER_MS)
    }
    const end = await this.#end.promise
    stop.removeEventListener('abort', onStop)
    await this.#drain()
    await committed
    return this.#haltedBy === undefined ? end : { how: 'halted', error: this.#haltedBy }
  }

  /** Loading opens many files at once, so no second request is sent before it is done: with few file descriptors it could fail later. */
  async #loadReader(): Promise<void> {
    this.#report() // the run log loads its writer now, too
    try {
      await loadReader()
      this.#pump()
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_RESOURCES'))
    }
  }

  /** Starts as many visits as it may, and claims more tasks when the inbox runs low. */
  #pump(): void {
    if (this.#isStopping) return
    const { concurrency } = this.#parts
    let isBlocked = false
    while (this.#mayStart()) {
      const next = this.#visits.startNext()
      if (next === 'started') continue
      isBlocked = this.#inbox.size > 0
      if (Number.isFinite(next.waitMs)) this.#wakeIn(next.waitMs)
      break
    }
    this.#parts.onWaiting?.(this.#inbox.waitingForBrowser)
    const isLow = this.#inbox.size < concurrency || (isBlocked && this.#inbox.size < 8 * concurrency)
    if (isLow && !this.#claims.isUnderWay && this.#mayStart()) void this.#claim(isBlocked)
  }

  #mayStart(): boolean {
    const open = this.#held.size - this.#inbox.size
    const mayBeSecond = isReaderLoaded() || this.#visits.inFlight === 0
    return !this.#isStopping && mayBeSecond && this.#visits.hasRoom && this.#finishedPages + open < this.#parts.pagesMax
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

  /** A full inbox claims nothing, so a pause or a manual task is looked up here. */
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
      this.#pump() // no other claim was made in the meantime, even if the inbox ran dry
    }
  }

  /** Postponed until nothing is in flight: the probes of a dead host may leave few such moments. */
  async #stopIfStalled(): Promise<void> {
    this.#isStallCheckDue = this.#visits.unfinished.size > 0
    if (this.#isStopping || this.#isStallCheckDue) return
    try {
      const stalled = await this.#stall.check(this.#inbox.hosts(1))
      if (stalled === undefined || this.#isStopping || this.#visits.unfinished.size > 0) return
      this.#parts.bus.emit({ type: 'log', level: 'warn', message: stalled.message })
      this.#halt(stalled)
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  #hostsToAvoid(isBlocked: boolean): string[] {
    const { rateLimit, concurrency } = this.#parts
    const paused = rateLimit.busyHosts().filter((host) => isLongPause(rateLimit.waitMs(host)))
    return [...new Set([...this.#inbox.hosts(isBlocked ? 1 : concurrency), ...paused])]
  }

  #handBackPaused(): void {
    const { rateLimit, now } = this.#parts
    for (const lease of this.#inbox.remove((_, host) => isLongPause(rateLimit.waitMs(host)))) {
      void this.#committer.handOver(settleHandedBack(lease, 'its host is paused', now() + HOLD_PAUSED_MS_MAX))
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
      this.#pump() // it may have been waiting for these
    } catch (error) {
      this.#halt(toScrapeError(error, 'E_SERVICE'))
    }
  }

  #report(): void {
    const { user, system } = process.cpuUsage(this.#cpuAtStart)
    this.#parts.bus.emit({
      type: 'worker.in-flight',
      workerId: this.#parts.workerId,
      inFlight: this.#visits.inFlight,
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

  /** Hands back waiting tasks, gives visits in flight time to finish, then hands back the rest. */
  async #drain(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#wakeTimer)
    this.#committer.hurry()
    const { drainMs } = this.#parts
    const deadline = setTimeout(
      () => this.#visits.abort(new Error('drain time is over')),
      this.#haltedBy === undefined ? drainMs : 0,
    )
    await this.#handBack(this.#inbox.remove(() => true))
    const givenUpAtMs = performance.now() + (this.#haltedBy === undefined ? drainMs : 0) + ABORT_GRACE_MS
    while ((this.#visits.unfinished.size > 0 || this.#claims.isUnderWay) && performance.now() < givenUpAtMs) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    clearTimeout(deadline)
    // A handler that is still running now may never end: its task goes to another worker, and a late result is dropped.
    await this.#handBack([...this.#inbox.remove(() => true), ...this.#visits.unfinished])
    this.#channel.close()
  }

  async #handBack(leases: readonly Lease[], why = 'the worker stopped'): Promise<void> {
    for (const lease of leases) await this.#committer.handOver(settleHandedBack(lease, why))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat)
    clearInterval(this.#reporting)
    clearTimeout(this.#loading)
    this.#report()
    clearTimeout(this.#wakeTimer)
  }
}

function isLongPause(waitMs: number): boolean {
  return waitMs > HOLD_PAUSED_MS_MAX && Number.isFinite(waitMs)
}
