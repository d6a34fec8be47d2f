/**
 * The identities of a worker: whom the next request is made as. The proxy is chosen first (by health, tier and what the site
 * has blocked), then an identity that lives behind it. There is none of this in a run without proxies and as ourselves.
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
/** tls: as a browser, down to its handshake. */
export type IdentityMode = 'honest' | 'browser' | 'tls'

export interface IdentitiesOptions {
  mode: IdentityMode
  /** Undefined: there are none, and every identity goes out as the run does. */
  proxies?: ProxyPool
  /** Others use them, too: they are not closed with the identities. */
  areProxiesShared?: boolean
  /** Pages of this run may be opened in our own browser, which can only pass for its own kind. */
  needsChromium?: boolean
  /** For the mode `tls`: those the TLS library can pass for. */
  tlsProfiles?: readonly Profile[]
  /** Default `round-robin`. */
  strategy?: IdentityStrategy
  /** What one site wants otherwise. */
  siteOf?: (host: string) => { proxies?: 'off'; identity?: IdentityMode } | undefined
  limits?: Partial<IdentityLimits>
  /** At once. Default 1000. */
  identitiesMax?: number
  events?: Pick<EventBus, 'emit'>
  now?: () => number
  random?: () => number
}

type IdentityRequest = Pick<FetchRequest, 'url' | 'session' | 'avoid'>

export interface Identities extends Disposable {
  readonly proxies: ProxyPool | undefined
  readonly size: number
  /** Whom to make this request as. A promise only while no proxy is up. Throws `E_PROXIES_DOWN`. */
  take(request: IdentityRequest, signal: AbortSignal): Identity | Promise<Identity>
  /** The next try at a site could be made as somebody else. */
  hasOthers(host: string): boolean
  /** A page came. */
  onGood(identity: Identity, url: string): void
  /** It failed. What was a block retires the identity, and its proxy rests for that site. */
  onError(identity: Identity, url: string, error: ScrapeError): void
}

/** Behind one proxy, or without any: more would only be strangers at one address. As ourselves we are one. */
const PER_WAY_MAX: Readonly<Record<IdentityMode, number>> = { browser: 8, tls: 8, honest: 1 }
/** Pages whose next try is made as somebody else. */
const REFUSED_MAX = 10_000
const SITES_MAX = 10_000

/** What the page or we ourselves did says nothing about whom it was asked as. */
const NOBODYS_FAULT: ReadonlySet<string> = new Set(['drop', 'halt', 'later'])

export function createIdentities(options: IdentitiesOptions): Identities {
  return new IdentityPool(options)
}

/** By whom a page was turned away. */
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
  /** By proxy and mode; those of a proxy that is gone for good go with the bound of the pool. */
  readonly #ways = new Map<PooledProxy | undefined, Partial<Record<IdentityMode, Way>>>()
  readonly #perWayMax: number
  readonly #sessions: LRUCache<string, PinnedIdentity>
  /** Whom a site goes on with, for `until-failure`. */
  readonly #kept = new LRUCache<string, PinnedIdentity>({ max: SITES_MAX })
  /** By URL: the next try is made through another proxy, as somebody else. */
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
    // Grown one by one: a site that is asked ten times does not need to meet eight strangers.
    const isGrowing =
      way.identities.length < Math.min(this.#perWayMax, PER_WAY_MAX[mode]) &&
      (strategy !== 'until-failure' || kept !== undefined)
    let found: PinnedIdentity | undefined
    if (!isGrowing && way.identities.length > 0) found = this.#choose(way, strategy, refused?.profiles)
    found ??= this.#bear(proxy, mode, way, refused?.profiles)
    if (strategy === 'until-failure') this.#kept.set(host, found)
    return found
  }

  /** What is known here, and what the request was told. */
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

  /** The same profile and, as long as it is up, the same proxy for a user in every worker. */
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
    if (exhaustion !== undefined) this.#retire(identity, exhaustion) // after this one last use
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
