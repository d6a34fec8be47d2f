/**
 * Many proxies as one way out. Those that work are used, by how well they do; those that do not rest and are looked at again.
 *
 *        connection or login fails               rest is over, and a check succeeds
 *   up ────────────────────────────▶ down ─────────────────────────────────────────▶ up
 *    └─ blocked by a site: rests for that site only            └─ check fails: rests again, longer
 *
 * While all that are up rest for a site, its pages wait for the first of them, and lose no try. When that has been so for longer
 * than `patienceMs`, they go out all the same: whatever the site answers then ends them.
 *
 * With none up, all are checked every few seconds and pages wait, for as long as `downMsMax`. One that answers a check is on trial:
 * it is used, and counts as up once a tunnel has been established. One that rejects our login is never used again; if all do, that is
 * a configuration error (`E_PROXY_REFUSED`). Nothing is ever sent directly instead. Whatever leaves this file
 * about a proxy is its `host:port`: a login is in no event, error or status.
 */

import { LRUCache } from 'lru-cache'
import { backoffMs, doubledMs, steadyBackoffMs } from '../../core/backoff.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { every } from '../../core/every.ts'
import type { AddressGuard, AddressOptions } from '../net/address.ts'
import { openProxyGuard } from '../net/proxy.ts'
import { checkProxy } from '../net/proxy-check.ts'
import { proxyName } from '../net/proxy-url.ts'
import { hash32, Member, type PooledProxy, type ProxyStatus, uniqueName } from './pooled-proxy.ts'
import { ProxyTiers } from './proxy-tiers.ts'

export interface ProxyPoolOptions {
  /** URLs by tier, the cheapest first. */
  tiers: readonly (readonly string[])[]
  addresses: AddressOptions
  events?: Pick<EventBus, 'emit'>
  /** A rest is drawn from 0 to this, doubled with each in a row. Default 5 minutes. */
  restMs?: number
  /** Default 1 hour. */
  restMsMax?: number
  /** How long the pages of a site that blocks all of them wait at no cost. Default 2 minutes. */
  patienceMs?: number
  /** How long all of them may be down before pages fail with `E_PROXIES_LOST`. Default: no limit. */
  downMsMax?: number
  /** How often those whose rest is over are checked, and all of them while none is up. Default 1 s. */
  recheckMs?: number
  /** How long a page waits for a proxy to come back before it is put off. Default 10 s. */
  waitMsMax?: number
  now?: () => number
  random?: () => number
  check?: (url: string, timeoutMs: number) => Promise<number>
}

/** A set, or whatever can tell. */
export type Avoided<T> = Pick<ReadonlySet<T>, 'has'>

export interface ProxyPool extends Disposable {
  readonly size: number
  /** Looks at all of them; those that do not answer are down. Throws `E_PROXY` when none does. */
  checkAll(): Promise<void>
  /** The way to a socket for whoever is no identity: through one that is up, and through another when that one fails. */
  readonly guard: AddressGuard
  /** One that is up, for a request to `host`; rather none of `avoid`. Undefined: none is up, or all rest for this site. */
  pick(host: string, avoid?: Avoided<PooledProxy>): PooledProxy | undefined
  /** As `pick`, and waits for one to come up. Rejects with `E_PROXIES_DOWN`, which says when to come again. */
  wait(host: string, signal: AbortSignal): Promise<PooledProxy>
  /** The same one for a name as long as it is up, in whatever process. */
  pickFor(name: string): PooledProxy | undefined
  isUp(proxy: PooledProxy): boolean
  /** None of them has let anything through since the last one failed. */
  readonly areAllDown: boolean
  /** How many a request to `host` could go through now. */
  countFor(host: string): number
  /** A page came through it. */
  onGood(proxy: PooledProxy, host: string): void
  /** The site turned us away there: others are used for it, for a while. */
  onBlocked(proxy: PooledProxy, host: string, reason: string): void
  status(): ProxyStatus[]
}

const CHECK_MS_MAX = 5000
const CHECKS_AT_ONCE_MAX = 64
const RECHECK_MS = 1000
const FAILED_TUNNELS_MAX = 3
/** The longest pause between two trials of a proxy that answers checks but lets no request through. */
const TRIAL_MS_MAX = 30_000
/** How often, at most, it is logged that all of them are down. */
const SAID_MS = 60_000
/** The first rest for a site. Short: it doubles with each in a row, and all pages of the site may wait for it. */
const SITE_REST_MS = 10_000
const PATIENCE_MS = 120_000
/** Sites that block all of them, remembered. */
const SITES_MAX = 10_000

export function openProxyPool(options: ProxyPoolOptions): ProxyPool {
  return new Proxies(options)
}

class Proxies implements ProxyPool {
  readonly #options: ProxyPoolOptions
  readonly #members: Member[]
  readonly #tiers: ProxyTiers
  readonly #now: () => number
  readonly #random: () => number
  readonly #sweeper: NodeJS.Timeout
  readonly #waiters = new Set<() => void>()
  readonly #disposal = new AbortController()
  /** Since when all rest for a site (epoch ms). */
  readonly #restingSinceMs = new LRUCache<string, number>({ max: SITES_MAX })
  areAllDown = false
  #downSinceMs = 0
  #saidDownMs = Number.NEGATIVE_INFINITY
  #hasSaidDown = false

  constructor(options: ProxyPoolOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#random = options.random ?? Math.random
    const names = new Map<string, number>()
    this.#members = options.tiers.flatMap((urls, tier) =>
      urls.map((url) => {
        const member = new Member(uniqueName(proxyName(url), names), url, tier)
        member.guard = this.#watchedGuard(member, openProxyGuard(options.addresses, url))
        return member
      }),
    )
    this.#tiers = new ProxyTiers(options.tiers.length)
    this.#sweeper = every(() => this.#sweep(), options.recheckMs ?? RECHECK_MS)
    this.#sweeper.unref()
  }

  get size(): number {
    return this.#members.length
  }

  async checkAll(): Promise<void> {
    const left = [...this.#members]
    const work = async () => {
      for (let member = left.pop(); member !== undefined; member = left.pop()) {
        try {
          member.latencyMs = await this.#look(member)
        } catch (error) {
          this.#fail(member, namedReason(member, error), error)
        }
      }
    }
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE_MAX }, work))
    if (this.#members.some(({ restUntilMs }) => restUntilMs === 0)) return
    this.#throwIfRefused()
    const notes = this.#members.slice(0, 10).map(({ name, reason }) => `${name}: ${reason}`)
    const what = this.size === 1 ? this.#members[0]!.reason : `none of the ${this.size} proxies can be reached`
    throw new ScrapeError('E_PROXY', what, { notes })
  }

  readonly guard: AddressGuard = (origin) => (target, callback) => {
    const failed = new Set<PooledProxy>()
    const host = hostKey(target.hostname, origin)
    const tryNext = (proxy: PooledProxy) =>
      proxy.guard(origin)(target, (...result) => {
        const next = isProxyFault(result[0]) ? this.pick(host, failed.add(proxy)) : undefined
        if (next === undefined || failed.has(next) || failed.size >= FAILED_TUNNELS_MAX) callback(...result)
        else tryNext(next)
      })
    this.wait(host, this.#disposal.signal).then(tryNext, (error: Error) => callback(error, null))
  }

  pick(host: string, avoid?: Avoided<PooledProxy>): PooledProxy | undefined {
    const tier = this.#tiers.next(host)
    const nowMs = this.#now()
    const areRestsOver = this.#patienceLeftMs(host) <= 0
    let best: Member | undefined
    let bestRank = Number.POSITIVE_INFINITY
    for (const member of this.#members) {
      if (member.restUntilMs > 0) continue
      if (!areRestsOver && member.isBlockedBy(host, nowMs)) continue
      const isResting = member.restUntilMsFor(host, nowMs) > 0
      // What was tried in vain weighs most, then a rest for this site, then the distance to the tier that suits it.
      const rank = (avoid?.has(member) === true ? 10_000 : 0) + (isResting ? 100 : 0) + Math.abs(member.tier - tier)
      if (rank > bestRank || (rank === bestRank && member.turn >= best!.turn)) continue
      best = member
      bestRank = rank
    }
    if (best !== undefined) best.turn += 1 / best.score
    return best
  }

  async wait(host: string, signal: AbortSignal): Promise<PooledProxy> {
    const untilMs = this.#now() + (this.#options.waitMsMax ?? 10_000)
    for (;;) {
      if (signal.aborted) throw signal.reason
      this.#throwIfRefused()
      const proxy = this.pick(host)
      if (proxy !== undefined) return proxy
      this.#throwIfLost()
      const resting = this.#restingError(host)
      if (resting !== undefined) throw resting
      if (this.#now() >= untilMs) throw this.#downError()
      await this.#change(Math.min(untilMs, this.#lostAtMs) - this.#now(), signal)
    }
  }

  /** Rendezvous hashing: one that goes down moves only its own names to others. */
  pickFor(name: string): PooledProxy | undefined {
    let best: Member | undefined
    let bestWeight = -1
    for (const member of this.#members) {
      if (member.restUntilMs > 0) continue
      const weight = hash32(`${member.url}\n${name}`)
      if (weight > bestWeight) {
        best = member
        bestWeight = weight
      }
    }
    return best
  }

  isUp(proxy: PooledProxy): boolean {
    return (proxy as Member).isUp
  }

  countFor(host: string): number {
    const nowMs = this.#now()
    return this.#members.filter((member) => member.isUp && !member.isBlockedBy(host, nowMs)).length
  }

  onGood(proxy: PooledProxy, host: string): void {
    const member = proxy as Member
    member.rate(1)
    member.forgive(host)
    if (this.#restingSinceMs.size > 0) this.#restingSinceMs.delete(host)
  }

  onBlocked(proxy: PooledProxy, host: string, reason: string): void {
    const member = proxy as Member
    const untilMs = member.rest(host, this.#now(), true, this.#siteRestMs)
    if (untilMs === undefined) return
    this.#tiers.onError(host, member.tier)
    this.#tell(member, 'down', reason, { host, untilMs })
  }

  status(): ProxyStatus[] {
    return this.#members.map(({ status }) => status)
  }

  [Symbol.dispose](): void {
    this.#disposal.abort(new ScrapeError('E_STOPPED', 'the proxies are not needed any more'))
    clearInterval(this.#sweeper)
    this.#wake()
  }

  /** The connector sees what no status tells: whether it was the proxy that failed, or who is behind it. */
  #watchedGuard(member: Member, guard: AddressGuard): AddressGuard {
    return (origin) => {
      const connect = guard(origin)
      return (target, callback) => {
        const startedMs = performance.now()
        connect(target, (...result) => {
          if (result[0] === null) this.#onTunnel(member, performance.now() - startedMs)
          else this.#onFailure(member, hostKey(target.hostname, origin), result[0])
          callback(...result)
        })
      }
    }
  }

  /** That a proxy cannot reach a site (502, 504) may be the site's fault: it rests for that site, and others are asked. */
  #onFailure(member: Member, host: string, error: Error): void {
    if (!(error instanceof ScrapeError)) return
    const isOwnFault = isProxyFault(error)
    if (isOwnFault && !isAboutTarget(error)) this.#fail(member, error.message, error)
    else if (isOwnFault || error.code === 'E_CONNECTION' || error.code === 'E_TIMEOUT_CONNECT') {
      member.rate(0)
      member.rest(host, this.#now(), false, this.#restMs)
      this.#tiers.onError(host, member.tier)
    }
  }

  #fail(member: Member, reason: string, error: unknown): void {
    if (error instanceof ScrapeError && error.details.isLoginRefused === true) this.#refuse(member, reason)
    else this.#down(member, reason)
  }

  /** Permanently: no check will make our login valid. */
  #refuse(member: Member, reason: string): void {
    if (member.isRefused) return
    member.isRefused = true
    member.isOnTrial = false
    member.restUntilMs = Number.POSITIVE_INFINITY
    member.reason = reason
    this.#tell(member, 'down', reason)
    if (this.size > 1) this.#log('warn', `${reason}: ${member.name} is not used again`)
    this.#noteIfAllDown(reason)
    this.#wake()
  }

  #down(member: Member, reason: string): void {
    if (member.isRefused) return
    member.rate(0)
    const wasUp = member.restUntilMs === 0 && !member.isOnTrial
    if (member.isOnTrial) member.failedTrials++
    member.isOnTrial = false
    member.restUntilMs = this.#now() + this.#restMs(member.downs++)
    member.reason = reason
    if (wasUp) this.#tell(member, 'down', reason, { untilMs: member.restUntilMs })
    this.#noteIfAllDown(reason)
  }

  #noteIfAllDown(reason: string): void {
    if (this.areAllDown || this.#members.some((one) => one.restUntilMs === 0)) return
    this.areAllDown = true
    this.#downSinceMs = this.#now()
    const isHopeless = this.#members.every(({ isRefused }) => isRefused) // the next page ends the run instead
    this.#hasSaidDown = !isHopeless && this.#now() - this.#saidDownMs >= SAID_MS
    if (this.#hasSaidDown) {
      this.#saidDownMs = this.#now()
      const count = this.size === 1 ? 'the proxy is' : `all ${this.size} proxies are`
      this.#log('warn', `${count} down (${reason}): pages wait, and nothing is sent directly`)
    }
    this.#sweep()
  }

  /** It answers a check. The next tunnel shows whether it lets us through. */
  #try(member: Member): void {
    member.isOnTrial = true
    member.restUntilMs = 0
    member.failures = 0
    // Not behind by all the turns it missed: it would be the only one picked until it had caught up.
    member.turn = Math.max(member.turn, ...this.#members.filter((one) => one !== member).map((one) => one.turn))
    this.#wake()
  }

  #onTunnel(member: Member, ms: number): void {
    member.onTunnel(ms)
    if (member.isRefused) return
    if (member.isOnTrial || !member.isUp) this.#tell(member, 'up', 'lets us through again')
    member.restUntilMs = 0
    member.isOnTrial = false
    member.failedTrials = 0
    if (!this.areAllDown) return
    this.areAllDown = false
    if (this.#hasSaidDown) this.#log('info', `the proxy ${member.name} is back: fetching continues`)
  }

  #sweep(): void {
    const nowMs = this.#now()
    for (const member of this.#members) {
      if (member.restUntilMs === 0 || member.isChecking || member.isRefused) continue
      if (this.areAllDown ? this.#isTrialDue(member, nowMs) : member.restUntilMs <= nowMs) void this.#check(member)
    }
  }

  /** At once, and then after a pause that doubles with each failed trial. */
  #isTrialDue({ failedTrials, checkedAtMs }: Member, nowMs: number): boolean {
    if (failedTrials === 0) return true
    const { recheckMs = RECHECK_MS } = this.#options
    return nowMs - checkedAtMs >= doubledMs(failedTrials + 1, { delayMsMin: recheckMs, delayMsMax: TRIAL_MS_MAX })
  }

  async #check(member: Member): Promise<void> {
    member.isChecking = true
    try {
      await this.#look(member)
      member.checkedAtMs = this.#now()
      if (!this.#disposal.signal.aborted) this.#try(member)
    } catch (error) {
      if (this.#disposal.signal.aborted) return
      if (error instanceof ScrapeError && error.details.isLoginRefused === true) {
        this.#refuse(member, namedReason(member, error))
        return
      }
      member.reason = namedReason(member, error)
      // While none is up, being asked again and again is no reason to rest longer.
      if (!this.areAllDown) member.restUntilMs = this.#now() + this.#restMs(member.downs++)
    } finally {
      member.isChecking = false
    }
  }

  #look(member: Member): Promise<number> {
    return (this.#options.check ?? checkProxy)(member.url, CHECK_MS_MAX)
  }

  readonly #restMs = (inARow: number): number => {
    const { restMs = 300_000, restMsMax = 3_600_000 } = this.#options
    return Math.max(1, backoffMs(inARow + 1, { delayMsMin: restMs, delayMsMax: restMsMax }, this.#random))
  }

  /** Never much shorter than said: the site has just turned it away. */
  readonly #siteRestMs = (inARow: number): number => {
    const { restMs = SITE_REST_MS, restMsMax = 3_600_000 } = this.#options
    return steadyBackoffMs(
      inARow + 1,
      { delayMsMin: Math.min(restMs, SITE_REST_MS), delayMsMax: restMsMax },
      this.#random,
    )
  }

  #patienceLeftMs(host: string): number {
    const sinceMs = this.#restingSinceMs.size === 0 ? undefined : this.#restingSinceMs.get(host)
    if (sinceMs === undefined) return Number.POSITIVE_INFINITY
    return sinceMs + (this.#options.patienceMs ?? PATIENCE_MS) - this.#now()
  }

  /** Undefined unless all that are up rest for the site. */
  #restingError(host: string): ScrapeError | undefined {
    const nowMs = this.#now()
    const up = this.#members.filter(({ isUp }) => isUp)
    if (up.length === 0) return undefined
    if (!this.#restingSinceMs.has(host)) this.#restingSinceMs.set(host, nowMs)
    const firstMs = Math.min(...up.map((member) => member.restUntilMsFor(host, nowMs))) - nowMs
    const retryAfterMs = Math.ceil(Math.max(1, Math.min(firstMs, this.#patienceLeftMs(host))))
    const which = up.length === 1 ? `the proxy ${up[0]!.name} rests` : `all ${up.length} proxies rest`
    const message = `${which} for ${host}, which turned us away there`
    return new ScrapeError('E_PROXIES_DOWN', message, { retryAfterMs })
  }

  #downError(): ScrapeError {
    const retryAfterMs = 5 * (this.#options.recheckMs ?? RECHECK_MS)
    const names = this.#members.slice(0, 10).map(({ name, reason }) => `${name}: ${reason}`)
    const message = this.size === 1 ? this.#members[0]!.reason : `none of the ${this.size} proxies is up`
    return new ScrapeError('E_PROXIES_DOWN', message, { retryAfterMs, notes: names })
  }

  #throwIfRefused(): void {
    if (!this.#members.every(({ isRefused }) => isRefused)) return
    const notes = this.#members.slice(0, 10).map(({ name, reason }) => `${name}: ${reason}`)
    const message = this.size === 1 ? this.#members[0]!.reason : `all ${this.size} proxies reject our logins`
    throw new ScrapeError('E_PROXY_REFUSED', message, { notes })
  }

  /** When waiting for them is over. */
  get #lostAtMs(): number {
    return this.areAllDown
      ? this.#downSinceMs + (this.#options.downMsMax ?? Number.POSITIVE_INFINITY) + 1
      : Number.POSITIVE_INFINITY
  }

  #throwIfLost(): void {
    if (this.#now() < this.#lostAtMs) return
    const downMs = this.#now() - this.#downSinceMs
    const { message, details } = this.#downError()
    const notes = { notes: details.notes ?? [] }
    throw new ScrapeError('E_PROXIES_LOST', `no proxy has worked for ${Math.round(downMs / 1000)} s: ${message}`, notes)
  }

  /** Until a proxy comes up, or `ms` have passed. */
  #change(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#waiters.delete(done)
        resolve()
      }
      const timer = setTimeout(done, Math.max(1, ms))
      signal.addEventListener('abort', done, { once: true })
      this.#waiters.add(done)
    })
  }

  #wake(): void {
    for (const done of [...this.#waiters]) done()
  }

  #tell(member: Member, state: 'up' | 'down', reason: string, more: { host?: string; untilMs?: number } = {}): void {
    this.#options.events?.emit({ type: 'proxy', proxy: member.name, state, reason, ...more })
  }

  #log(level: 'info' | 'warn', message: string): void {
    this.#options.events?.emit({ type: 'log', level, message })
  }
}

/** A check knows no name. */
function namedReason({ name }: Member, error: unknown): string {
  return (error as Error).message.replace(/^the proxy /, `the proxy ${name} `)
}

/** It refuses this connection, not our login: its rules do not allow the port or host. */
const isAboutTarget = ({ details: { status = 0 } }: ScrapeError) => status >= 400 && status < 500

const isProxyFault = (error: Error | null) => error instanceof ScrapeError && error.code === 'E_PROXY'

/** As URLs name it. A browser's door knows no scheme, so both default ports are left out. */
function hostKey(hostname: string, { port }: URL): string {
  return port === '' || port === '443' || port === '80' ? hostname : `${hostname}:${port}`
}
