/**
 * Many proxies as one way out. Those that work are used, by how well they do; those that do not rest and are looked at again.
 * `proxy-health.ts` says which are up; one that a site blocks rests for that site only.
 *
 * While all that are up rest for a site, its pages wait for the first of them, and lose no try. When that has been so for longer
 * than `patienceMs`, they go out all the same: whatever the site answers then ends them.
 *
 * With none up, pages wait, for as long as `downMsMax`. Nothing is ever sent directly instead. Whatever leaves these files
 * about a proxy is its `host:port`: a login is in no event, error or status.
 */

import { LRUCache } from 'lru-cache'
import { steadyBackoffMs } from '../../core/backoff.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { AddressGuard, AddressOptions } from '../net/address.ts'
import { openProxyGuard } from '../net/proxy.ts'
import { proxyName } from '../net/proxy-url.ts'
import { hash32, Member, type PooledProxy, type ProxyStatus, uniqueName } from './pooled-proxy.ts'
import { ProxyHealth, type ProxyHealthOptions } from './proxy-health.ts'
import { ProxyTiers } from './proxy-tiers.ts'

export interface ProxyPoolOptions extends ProxyHealthOptions {
  /** URLs by tier, the cheapest first. */
  tiers: readonly (readonly string[])[]
  addresses: AddressOptions
  /** How long the pages of a site that blocks all of them wait at no cost. Default 2 minutes. */
  patienceMs?: number
  /** How long a page waits for a proxy to come back before it is put off. Default 10 s. */
  waitMsMax?: number
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

const FAILED_TUNNELS_MAX = 3
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
  readonly #health: ProxyHealth
  readonly #tiers: ProxyTiers
  readonly #now: () => number
  readonly #random: () => number
  readonly #disposal = new AbortController()
  /** Since when all rest for a site (epoch ms). */
  readonly #restingSinceMs = new LRUCache<string, number>({ max: SITES_MAX })

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
    this.#health = new ProxyHealth(this.#members, options)
    this.#tiers = new ProxyTiers(options.tiers.length)
  }

  get size(): number {
    return this.#members.length
  }

  get areAllDown(): boolean {
    return this.#health.areAllDown
  }

  checkAll(): Promise<void> {
    return this.#health.checkAll()
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
      this.#health.throwIfRefused()
      const proxy = this.pick(host)
      if (proxy !== undefined) return proxy
      this.#health.throwIfLost()
      const resting = this.#restingError(host)
      if (resting !== undefined) throw resting
      if (this.#now() >= untilMs) throw this.#health.downError()
      await this.#health.untilChange(Math.min(untilMs, this.#health.lostAtMs) - this.#now(), signal)
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
    this.#options.events?.emit({ type: 'proxy', proxy: member.name, state: 'down', reason, host, untilMs })
  }

  status(): ProxyStatus[] {
    return this.#members.map(({ status }) => status)
  }

  [Symbol.dispose](): void {
    this.#disposal.abort(new ScrapeError('E_STOPPED', 'the proxies are not needed any more'))
    this.#health[Symbol.dispose]()
  }

  /** The connector sees what no status tells: whether it was the proxy that failed, or who is behind it. */
  #watchedGuard(member: Member, guard: AddressGuard): AddressGuard {
    return (origin) => {
      const connect = guard(origin)
      return (target, callback) => {
        const startedMs = performance.now()
        connect(target, (...result) => {
          if (result[0] === null) this.#health.onTunnel(member, performance.now() - startedMs)
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
    if (isOwnFault && !isAboutTarget(error)) this.#health.fail(member, error.message, error)
    else if (isOwnFault || error.code === 'E_CONNECTION' || error.code === 'E_TIMEOUT_CONNECT') {
      member.rate(0)
      member.rest(host, this.#now(), false, this.#health.restMs)
      this.#tiers.onError(host, member.tier)
    }
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
}

/** It refuses this connection, not our login: its rules do not allow the port or host. */
const isAboutTarget = ({ details: { status = 0 } }: ScrapeError) => status >= 400 && status < 500

const isProxyFault = (error: Error | null) => error instanceof ScrapeError && error.code === 'E_PROXY'

/** As URLs name it. A browser's door knows no scheme, so both default ports are left out. */
function hostKey(hostname: string, { port }: URL): string {
  return port === '' || port === '443' || port === '80' ? hostname : `${hostname}:${port}`
}
