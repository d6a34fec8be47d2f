/**
 * The identities of a worker: which one makes the next request. The proxy is chosen first (by health, tier and the sites that
 * block it), then an identity behind it. A run without proxies that identifies as itself uses none of this.
 */
import { LRUCache } from 'lru-cache'
import { BLOCK_CODES } from '../../core/error-table.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { hostOf } from '../../core/url.ts'
import type { FetchRequest } from '../contract.ts'
import { IDENTITY_LIMITS, type Identity, type IdentityLimits, PinnedIdentity } from './identity.ts'
import { hash32, type PooledProxy } from './pooled-proxy.ts'
import { type Profile, profiles } from './profiles.ts'
import type { Avoided, ProxyPool } from './proxy-pool.ts'

export type IdentityStrategy = 'round-robin' | 'random' | 'until-failure'
/** tls: like a browser, down to its TLS handshake. */
export type IdentityMode = 'honest' | 'browser' | 'tls'

export interface IdentitiesOptions {
  mode: IdentityMode
  /** Undefined: there are none, and all identities connect the way the run does. */
  proxies?: ProxyPool
  /** Others use the proxies too, so they are not closed together with the identities. */
  areProxiesShared?: boolean
  /** Pages of this run may be opened in our own browser, which can only pass for a Chromium. */
  needsChromium?: boolean
  /** For the mode `tls`: the profiles that the TLS library can imitate. */
  tlsProfiles?: readonly Profile[]
  /** Default `round-robin`. */
  strategy?: IdentityStrategy
  /** Settings of individual sites. */
  siteOf?: (host: string) => { proxies?: 'off'; identity?: IdentityMode } | undefined
  limits?: Partial<IdentityLimits>
  /** Identities at the same time. Default 1000. */
  identitiesMax?: number
  events?: Pick<EventBus, 'emit'>
  now?: () => number
  random?: () => number
}

type IdentityRequest = Pick<FetchRequest, 'url' | 'session' | 'avoid'>

export interface Identities extends Disposable {
  readonly proxies: ProxyPool | undefined
  readonly size: number
  /** Chooses an identity for this request. Returns a promise only while no proxy is up. Throws `E_PROXIES_DOWN`. */
  take(request: IdentityRequest, signal: AbortSignal): Identity | Promise<Identity>
  /** Whether the next attempt at a site could be made with another identity. */
  hasOthers(host: string): boolean
  /** A page was fetched. */
  onGood(identity: Identity, url: string): void
  /** A request failed. A block retires the identity, and its proxy is not used for that site for a while. */
  onError(identity: Identity, url: string, error: ScrapeError): void
}

/** Per proxy, or without one: more would only mean more strangers at one address. Honest mode has a single identity. */
const PER_WAY_MAX: Readonly<Record<IdentityMode, number>> = { browser: 8, tls: 8, honest: 1 }
/** Pages whose next attempt uses another identity. */
const REFUSED_MAX = 10_000
const SITES_MAX = 10_000

/** Verdicts caused by the page or by ourselves, which say nothing about the identity. */
const NOBODYS_FAULT: ReadonlySet<string> = new Set(['drop', 'halt', 'later'])

export function createIdentities(options: IdentitiesOptions): Identities {
  return new IdentityPool(options)
}

/** The proxies and profiles that a page was refused with. */
interface Refused {
  proxies: Avoided<PooledProxy>
  profiles: Avoided<Profile>
}

interface Way {
  readonly identities: PinnedIdentity[]
  next: number
}

class IdentityPool implements Identities {
  readonly proxies: ProxyPool | undefined
  readonly #options: IdentitiesOptions
  readonly #limits: IdentityLimits
  readonly #now: () => number
  readonly #random: () => number
  /** By proxy and mode; identities of a proxy that is gone for good are limited by the bound of the pool. */
  readonly #ways = new Map<PooledProxy | undefined, Partial<Record<IdentityMode, Way>>>()
  readonly #perWayMax: number
  readonly #sessions: LRUCache<string, PinnedIdentity>
  /** The identity a site keeps, for `until-failure`. */
  readonly #kept = new LRUCache<string, PinnedIdentity>({ max: SITES_MAX })
  /** By URL: the next attempt uses another proxy and another profile. */
  readonly #refused = new LRUCache<string, { proxies: Set<PooledProxy>; profiles: Set<Profile> }>({ max: REFUSED_MAX })
  #size = 0
  #born = 0

  constructor(options: IdentitiesOptions) {
    this.#options = options
    this.proxies = options.proxies
    this.#limits = { ...IDENTITY_LIMITS, ...options.limits }
    this.#now = options.now ?? Date.now
    this.#random = options.random ?? Math.random
    const identitiesMax = options.identitiesMax ?? 1000
    const ways = Math.max(1, options.proxies?.size ?? 1)
    this.#perWayMax = Math.max(1, Math.floor(identitiesMax / ways))
    this.#sessions = new LRUCache({ max: identitiesMax })
  }

  get size(): number {
    return this.#size + this.#sessions.size
  }

  take(request: IdentityRequest, signal: AbortSignal): Identity | Promise<Identity> {
    const host = hostOf(request.url)
    const { proxies, mode } = this.#waysTo(host)
    if (proxies === undefined) return this.#use(this.#of(undefined, mode, request, host))
    const proxy = this.#proxyFor(proxies, request, host)
    if (proxy !== undefined) return this.#use(this.#of(proxy, mode, request, host))
    return proxies.wait(host, signal).then((found) => this.#use(this.#of(found, mode, request, host)))
  }

  hasOthers(host: string): boolean {
    const { proxies, mode } = this.#waysTo(host)
    return mode !== 'honest' || (proxies?.countFor(host) ?? 0) > 1
  }

  onGood(identity: Identity, url: string): void {
    const one = identity as PinnedIdentity
    one.onGood()
    if (one.proxy !== undefined) this.proxies?.onGood(one.proxy, hostOf(url))
  }

  onError(identity: Identity, url: string, error: ScrapeError): void {
    const one = identity as PinnedIdentity
    if (error.verdict === 'rotate') this.#refuse(one, url)
    const isBlock = BLOCK_CODES.has(error.code)
    if (isBlock && one.proxy !== undefined) this.proxies?.onBlocked(one.proxy, hostOf(url), error.code)
    if (isBlock || error.code === 'E_UNAUTHORIZED') this.#retire(one, `${error.code} from ${hostOf(url)}`)
    else if (!NOBODYS_FAULT.has(error.verdict)) one.onBad()
    const exhaustion = one.exhaustion(this.#limits, this.#now())
    if (exhaustion !== undefined) this.#retire(one, exhaustion)
  }

  [Symbol.dispose](): void {
    this.#ways.clear()
    this.#sessions.clear()
    this.#kept.clear()
    if (this.#options.areProxiesShared !== true) this.proxies?.[Symbol.dispose]()
  }

  #waysTo(host: string): { proxies: ProxyPool | undefined; mode: IdentityMode } {
    const site = this.#options.siteOf?.(host)
    const proxies = site?.proxies === 'off' ? undefined : this.proxies
    return { proxies, mode: site?.identity ?? this.#options.mode }
  }

  #proxyFor(proxies: ProxyPool, { url, session, avoid }: IdentityRequest, host: string) {
    if (session !== undefined) {
      const pinned = this.#sessions.get(session)?.proxy
      return pinned !== undefined && proxies.isUp(pinned) ? pinned : proxies.pickFor(session)
    }
    const refused = this.#refusedFor(url, avoid)
    if (refused === undefined && this.#options.strategy === 'until-failure') {
      const kept = this.#kept.get(host)
      if (kept?.isRetired === false && kept.proxy !== undefined && proxies.isUp(kept.proxy)) return kept.proxy
    }
    return proxies.pick(host, refused?.proxies)
  }

  #of(
    proxy: PooledProxy | undefined,
    mode: IdentityMode,
    { url, session, avoid }: IdentityRequest,
    host: string,
  ): PinnedIdentity {
    if (session !== undefined) return this.#ofSession(session, proxy, mode)
    const { strategy = 'round-robin' } = this.#options
    const refused = this.#refusedFor(url, avoid)
    const kept = strategy === 'until-failure' ? this.#kept.get(host) : undefined
    if (kept?.isRetired === false && kept.proxy === proxy && refused === undefined) return kept
    const way = this.#wayOf(proxy, mode)
    this.#retireOld(way)
    // Identities are added one by one: a site that gets ten requests need not see eight strangers.
    const isGrowing =
      way.identities.length < Math.min(this.#perWayMax, PER_WAY_MAX[mode]) &&
      (strategy !== 'until-failure' || kept !== undefined)
    let found: PinnedIdentity | undefined
    if (!isGrowing && way.identities.length > 0) found = this.#choose(way, strategy, refused?.profiles)
    found ??= this.#bear(proxy, mode, way, refused?.profiles)
    if (strategy === 'until-failure') this.#kept.set(host, found)
    return found
  }

  /** What we remember, and what the request says. */
  #refusedFor(url: string, avoid: ReadonlySet<string> | undefined): Refused | undefined {
    const known = this.#refused.size === 0 ? undefined : this.#refused.get(url)
    if (avoid === undefined || avoid.size === 0) return known
    return {
      proxies: { has: (proxy) => avoid.has(proxy.name) || known?.proxies.has(proxy) === true },
      profiles: { has: (profile) => avoid.has(profile.name) || known?.profiles.has(profile) === true },
    }
  }

  /** The oldest comes first. */
  #retireOld({ identities }: Way): void {
    for (let one = identities[0]; one !== undefined; one = identities[0]) {
      const exhaustion = one.exhaustion(this.#limits, this.#now())
      if (exhaustion === undefined) return
      this.#retire(one, exhaustion)
    }
  }

  #choose(way: Way, strategy: IdentityStrategy, avoid: Avoided<Profile> | undefined): PinnedIdentity | undefined {
    const { identities } = way
    for (let looks = 0; looks < identities.length; looks++) {
      const at = strategy === 'random' ? Math.floor(this.#random() * identities.length) : way.next++ % identities.length
      const one = identities[at]!
      if (one.profile === undefined || avoid?.has(one.profile) !== true) return one
    }
    return identities[way.next++ % identities.length]
  }

  #bear(proxy: PooledProxy | undefined, mode: IdentityMode, way: Way, avoid: Avoided<Profile> | undefined) {
    const profile = this.#profile(mode, this.#random(), avoid)
    const one = new PinnedIdentity({ id: `i${++this.#born}`, profile, proxy, bornAtMs: this.#now() })
    way.identities.push(one)
    this.#size++
    return one
  }

  /** A user has the same profile and, as long as it is up, the same proxy in every worker. */
  #ofSession(session: string, proxy: PooledProxy | undefined, mode: IdentityMode): PinnedIdentity {
    const known = this.#sessions.get(session)
    if (known?.isRetired === false && known.proxy === proxy) return known
    const chance = hash32(`${known?.isRetired === true ? this.#born : ''} ${session}`) / 2 ** 32
    const profile = this.#profile(mode, chance, undefined)
    const one = new PinnedIdentity({ id: `u${++this.#born}`, profile, proxy, bornAtMs: this.#now(), session })
    this.#sessions.set(session, one)
    return one
  }

  #profile(mode: IdentityMode, chance: number, avoid: Avoided<Profile> | undefined): Profile | undefined {
    if (mode === 'honest') return undefined
    const all = mode === 'tls' ? (this.#options.tlsProfiles ?? []) : profiles
    const possible = all.filter((one) => one.isChromium || this.#options.needsChromium !== true)
    const others = possible.filter((one) => avoid?.has(one) !== true)
    const from = others.length > 0 ? others : possible
    return from[Math.min(from.length - 1, Math.floor(chance * from.length))]!
  }

  #wayOf(proxy: PooledProxy | undefined, mode: IdentityMode): Way {
    let modes = this.#ways.get(proxy)
    if (modes === undefined) {
      modes = {}
      this.#ways.set(proxy, modes)
    }
    modes[mode] ??= { identities: [], next: 0 }
    return modes[mode]
  }

  #use(identity: PinnedIdentity): PinnedIdentity {
    identity.uses++
    const exhaustion = identity.uses > 1 ? identity.exhaustion(this.#limits, this.#now()) : undefined
    if (exhaustion !== undefined) this.#retire(identity, exhaustion) // after this last use
    return identity
  }

  #refuse(one: PinnedIdentity, url: string): void {
    let refused = this.#refused.get(url)
    if (refused === undefined) {
      refused = { proxies: new Set(), profiles: new Set() }
      this.#refused.set(url, refused)
    }
    if (one.proxy !== undefined) refused.proxies.add(one.proxy)
    if (one.profile !== undefined) refused.profiles.add(one.profile)
  }

  #retire(one: PinnedIdentity, reason: string): void {
    if (one.isRetired) return
    one.isRetired = true
    for (const way of Object.values(this.#ways.get(one.proxy) ?? {})) {
      const at = way.identities.indexOf(one)
      if (at === -1) continue
      way.identities.splice(at, 1)
      this.#size--
    }
    this.#options.events?.emit({ type: 'identity.retired', id: one.id, reason })
  }
}
