/** Assembles the fetch chain of one worker. */
import { parseEngineUrl } from '../../core/engine-url.ts'
import type { EventBus } from '../../core/events.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import { createJudge } from '../../fetch/block/to-error.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import { createMemoryCache, type RemoteCache, type ResponseCache } from '../../fetch/cache/cache.ts'
import { type Circuit, type CircuitOptions, createCircuit } from '../../fetch/circuit/circuit.ts'
import type { RateLimit } from '../../fetch/contract.ts'
import { type ChainFetcher, createFetcher } from '../../fetch/fetcher.ts'
import { openHttp } from '../../fetch/http/http.ts'
import type { PoolsOptions } from '../../fetch/http/pools.ts'
import type { ProxyPool } from '../../fetch/identity/proxy-pool.ts'
import type { PerHostOptions } from '../../fetch/rate/known-hosts.ts'
import { createRateLimit } from '../../fetch/rate/rate-limit.ts'
import type { FleetSlots, SharedSlots } from '../../fetch/rate/spacing.ts'
import { DIRECT, type EgressSpec, isAnywhereAs, openIdentities, type SiteFinder, siteFinder } from './egress-options.ts'

interface FetchingOptions {
  limits: ResolvedLimits
  concurrency: number
  perHostConcurrency: number
  userAgent: string
  allowPrivate: boolean
  /** `host` or `host:port` as in the URL: private addresses that may be fetched anyway. */
  allowAddresses: readonly string[]
  /** Shares rate limits and pauses with the other processes on this machine, or with a fleet. */
  sharing: RateSharing
  /** `socks5://` or `http://`: an exit that can be replaced at run time (`rotate`). All pages are fetched through it. */
  proxy?: string | undefined
  /** Proxies and identities. Undefined: directly or through `proxy`, under our own identity. */
  ways?: EgressSpec | undefined
  /** Proxies shared with other chains, used instead of those of `ways`; closed by the code that opened them. */
  pool?: ProxyPool | undefined
  /** Pages wait if no proxy answers at the start. Undefined: that is an error. */
  waitsForProxies?: boolean | undefined
  /** For routes that need a browser. */
  browsers?: BrowserPool | undefined
  /** `memory:`, `sqlite:FILE` or `redis://…`; used when `limits.cache` is above 0. */
  cacheStore: string
  bus: EventBus
}

export interface RateSharing {
  slots?: SharedSlots
  fleet?: FleetSlots
}

export interface Fetching extends AsyncDisposable {
  fetcher: ChainFetcher
  rateLimit: RateLimit
  /** Undefined without any. */
  proxies: ProxyPool | undefined
  /** Uses this proxy from now on, over new connections; see `HttpClient`. */
  rotate(proxyUrl: string): void
}

/** Throws `E_PROXY` if none of the proxies can be reached, unless it waits for them. */
export async function openFetching(options: FetchingOptions): Promise<Fetching> {
  const { limits, bus, ways = DIRECT } = options
  await using parts = new AsyncDisposableStack()
  const siteOf = siteFinder(ways.sites)
  const addresses = {
    connectTimeoutMs: limits.connectTimeout,
    allowPrivate: options.allowPrivate,
    allowAddresses: options.allowAddresses,
  }
  const needsChromium = options.browsers !== undefined
  const tls = isAnywhereAs(ways, 'tls') ? await openTls() : undefined
  const tlsProfiles = tls?.profiles
  const identities = await openIdentities({
    ways,
    addresses,
    siteOf,
    needsChromium,
    pool: options.pool,
    tlsProfiles,
    waitMs: limits.wait,
    waitsForProxies: options.waitsForProxies,
    bus,
  })
  if (identities !== undefined) parts.use(identities)
  const rateLimit = parts.use(
    createRateLimit({
      perHost: {
        concurrency: options.perHostConcurrency,
        rps: limits.perHost.rps,
        delayMs: limits.perHost.delay,
        perMinute: limits.perHost.perMinute,
      },
      concurrency: options.concurrency,
      crawlDelayMsMax: limits.crawlDelayMax,
      siteOf: siteOf && perHostOf(siteOf),
      ...options.sharing,
    }),
  )
  const httpOptions = {
    userAgent: options.userAgent,
    timeoutMs: limits.timeout,
    ...addresses,
    bodyBytesMax: limits.bodyMax,
    redirectsMax: limits.redirects,
    connectionsPerHost: options.perHostConcurrency,
    retryAfterMsMax: limits.retryAfterMax,
    isOnlyProxied: identities?.proxies !== undefined,
    proxy: options.proxy,
  }
  const http = parts.use(openHttp(httpOptions, tls?.openWire(httpOptions)))
  const cache = limits.cache === 0 ? undefined : parts.use(await openCache(options.cacheStore, limits))
  const fetcher = parts.use(
    createFetcher({
      http,
      rateLimit,
      browsers: options.browsers,
      robots: limits.robots === 'ignore' ? undefined : { userAgent: options.userAgent },
      cache,
      identities,
      ...circuitOf(limits, siteOf, { rateLimit, events: bus }),
      judge: createJudge({ retryAfterMsMax: limits.retryAfterMax, events: bus }),
      events: bus,
      retryAfterMsMax: limits.retryAfterMax,
    }),
  )
  const opened = parts.move()
  return {
    fetcher,
    rateLimit,
    proxies: identities?.proxies,
    rotate: http.rotate,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Undefined if it is off everywhere. */
function circuitOf(
  { perHost }: ResolvedLimits,
  siteOf: SiteFinder | undefined,
  parts: Pick<CircuitOptions, 'rateLimit' | 'events'>,
): { circuit?: Circuit } {
  if (perHost.circuit === 'off' && siteOf === undefined) return {}
  const openAfterOf = (host: string) => siteOf?.(host)?.circuit ?? perHost.circuit
  return { circuit: createCircuit({ openAfterOf, coolDownMs: perHost.circuitCoolDown, ...parts }) }
}

/** Throws `E_OPTION` if its package is not installed. */
async function openTls() {
  const [{ loadTlsLibrary }, { tlsProfiles }, { openTlsWire }] = await Promise.all([
    import('../../fetch/http/tls-library.ts'),
    import('../../fetch/http/tls-profiles.ts'),
    import('../../fetch/http/tls-wire.ts'),
  ])
  const library = await loadTlsLibrary()
  return {
    profiles: tlsProfiles(library.getProfiles()),
    openWire: (options: PoolsOptions) => openTlsWire(library, options),
  }
}

function perHostOf(siteOf: SiteFinder): (host: string) => Partial<PerHostOptions> | undefined {
  return (host) => {
    const site = siteOf(host)
    if (site === undefined) return undefined
    const { delay, rps, perMinute, concurrency } = site
    const given = { delayMs: delay, rps, perMinute, concurrency }
    return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  }
}

async function openCache(
  store: string,
  { cache: freshMs, bodyMax }: ResolvedLimits,
): Promise<(ResponseCache & Disposable) | RemoteCache> {
  const { engine, path, url } = parseEngineUrl(store)
  if (engine === 'redis') {
    const { openRedisCache } = await import('../../fetch/cache/redis-cache.ts')
    return await openRedisCache({ url, freshMs, bodyBytesMax: bodyMax })
  }
  if (path === undefined) return createMemoryCache({ freshMs })
  const { openSqliteCache } = await import('../../fetch/cache/sqlite-cache.ts')
  return openSqliteCache(path, { freshMs })
}
