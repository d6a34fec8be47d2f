/** Puts the fetch chain of one worker together. */
import type { EventBus } from '../../core/events.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import { createMemoryCache, type RemoteCache, type ResponseCache } from '../../fetch/cache.ts'
import type { BrowserPool, RateLimit } from '../../fetch/contract.ts'
import { type ChainFetcher, createFetcher } from '../../fetch/fetcher.ts'
import { openHttp } from '../../fetch/http.ts'
import { createRateLimit } from '../../fetch/rate-limit.ts'
import type { FleetSlots, SharedSlots } from '../../fetch/spacing.ts'

export interface FetchingOptions {
  limits: ResolvedLimits
  concurrency: number
  perHostConcurrency: number
  userAgent: string
  allowPrivate: boolean
  /** `host` or `host:port` as in the URL: private addresses that may be fetched all the same. */
  allowAddresses: readonly string[]
  /** Shares rates and pauses with the other processes of this machine, or with a fleet. */
  sharing: RateSharing
  /** `socks5://` or `http://`: all pages are fetched through it. */
  proxy: string | undefined
  /** For routes that need one. */
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
  /** From now on through this proxy, over new connections; see `HttpClient`. */
  rotate(proxyUrl: string): void
}

export async function openFetching(options: FetchingOptions): Promise<Fetching> {
  const { limits, bus } = options
  const parts = new AsyncDisposableStack()
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
      ...options.sharing,
    }),
  )
  const http = parts.use(
    openHttp({
      userAgent: options.userAgent,
      timeoutMs: limits.timeout,
      connectTimeoutMs: limits.connectTimeout,
      bodyBytesMax: limits.bodyMax,
      redirectsMax: limits.redirects,
      connectionsPerHost: options.perHostConcurrency,
      retryAfterMsMax: limits.retryAfterMax,
      allowPrivate: options.allowPrivate,
      allowAddresses: options.allowAddresses,
      ...(options.proxy === undefined ? {} : { proxy: options.proxy }),
    }),
  )
  const cache = limits.cache === 0 ? undefined : parts.use(await openCache(options.cacheStore, limits))
  const fetcher = parts.use(
    createFetcher({
      http,
      rateLimit,
      ...(options.browsers === undefined ? {} : { browsers: options.browsers }),
      ...(limits.robots === 'ignore' ? {} : { robots: { userAgent: options.userAgent } }),
      ...(cache === undefined ? {} : { cache }),
      events: bus,
      retryAfterMsMax: limits.retryAfterMax,
    }),
  )
  return { fetcher, rateLimit, rotate: http.rotate, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

async function openCache(
  store: string,
  { cache: freshMs, bodyMax }: ResolvedLimits,
): Promise<(ResponseCache & Disposable) | RemoteCache> {
  if (/^rediss?:/.test(store)) {
    const { openRedisCache } = await import('../../fetch/redis-cache.ts')
    return await openRedisCache({ url: store, freshMs, bodyBytesMax: bodyMax })
  }
  if (!store.startsWith('sqlite:')) return createMemoryCache({ freshMs })
  const { openSqliteCache } = await import('../../fetch/sqlite-cache.ts')
  return openSqliteCache(store.slice('sqlite:'.length), { freshMs })
}
