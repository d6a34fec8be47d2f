/**
 * The fetch chains of one worker instance: one for all its tasks, and a few more for tasks that name their own egress. All share
 * the proxies of the instance, except that a task's own proxy is a pool of one. If there are proxies, no request ever goes out
 * directly.
 */
import type { EventBus } from '../../core/events.ts'
import type { SiteOptions } from '../../core/options.ts'
import type { Page } from '../../core/page.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import type { Fetcher, FetchRequest, RateLimit } from '../../fetch/contract.ts'
import type { ProxyPool } from '../../fetch/identity/proxy-pool.ts'
import type { EgressSpec } from '../run/egress-options.ts'
import { type Fetching, openFetching, type RateSharing } from '../run/fetching.ts'
import { checkOwnProxy } from './own-proxy.ts'
import type { ChainWish } from './task-args.ts'

interface ChainsOptions {
  compiled: CompiledScraper
  concurrency: number
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  cacheStore: string
  ways: EgressSpec
  /** The open proxies of `ways`; undefined without any. Closed by the code that opened them. */
  pool: ProxyPool | undefined
  sharing: RateSharing
  browsers: BrowserPool | undefined
  bus: EventBus
}

interface Chain {
  fetcher: Fetcher
  /** There are proxies, but none is up: requests wait. */
  areProxiesDown(): boolean
  /** A view for one crawl: its waiting requests are dropped along with it. */
  rateLimit(): RateLimit & Disposable
}

/** Maximum number of extra chains open at once; the least recently used are closed. */
const OTHERS_MAX = 16

export class Chains implements AsyncDisposable {
  readonly #options: ChainsOptions
  /** In order of last use. */
  readonly #open = new Map<string, { chain: Promise<Chain>; fetching: Promise<Fetching>; users: number }>()
  /** Requests in flight, across all chains. */
  inFlight = 0

  constructor(options: ChainsOptions) {
    this.#options = options
  }

  /**
   * Call `release` when the task is over, so that an unused chain may be closed. Throws `E_PROXY` if the task's own proxy is
   * dead.
   */
  async take(wish: ChainWish): Promise<{ chain: Chain; release: () => void }> {
    const key = JSON.stringify(wish)
    const entry = this.#open.get(key) ?? this.#openOne(wish)
    this.#open.delete(key)
    this.#open.set(key, entry)
    entry.users++
    this.#closeUnused()
    try {
      return { chain: await entry.chain, release: () => void entry.users-- }
    } catch (error) {
      entry.users--
      if (this.#open.get(key) === entry) this.#open.delete(key)
      throw error
    }
  }

  /** The proxies of the instance and their success rate; a proxy that is down counts as 0. */
  proxies(): { size: number; successRate: number } {
    const all = this.#options.pool?.status() ?? []
    const successes = all.reduce((sum, { isUp, success }) => sum + (isUp ? success : 0), 0)
    return { size: all.length, successRate: all.length === 0 ? 1 : successes / all.length }
  }

  #openOne(wish: ChainWish) {
    const fetching = this.#openFetching(wish)
    const count = (change: 1 | -1) => {
      this.inFlight += change
    }
    const chain = fetching.then((opened) => chainOf(opened, count))
    chain.catch(() => {}) // reported to the task that takes it
    return { chain, fetching, users: 0 }
  }

  async #openFetching({ proxy, userAgent, delayMs }: ChainWish): Promise<Fetching> {
    const { compiled, concurrency, ways, pool, ...rest } = this.#options
    const limits = { ...compiled.limits, wait: Number.POSITIVE_INFINITY } // a task is ended by its own timeout
    // A task that sets its own user agent does not want to imitate a browser.
    const identity = userAgent === undefined ? ways.identity : 'honest'
    return await openFetching({
      ...rest,
      limits: delayMs === undefined ? limits : { ...limits, perHost: { ...limits.perHost, delay: delayMs } },
      concurrency,
      perHostConcurrency: Math.min(concurrency, limits.perHost.concurrency),
      ...(proxy === undefined
        ? { pool, ways: { ...ways, identity } }
        : {
            ways: { ...ways, identity, proxies: [[await checkOwnProxy(proxy, rest)]], sites: allProxied(ways.sites) },
          }),
      userAgent: userAgent ?? rest.userAgent,
    })
  }

  #closeUnused(): void {
    for (const [key, { fetching, users }] of this.#open) {
      if (this.#open.size <= OTHERS_MAX) return
      if (users > 0 || key === '{}') continue
      this.#open.delete(key)
      void fetching.then((opened) => opened[Symbol.asyncDispose]()).catch(() => {})
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { fetching } of this.#open.values())
      await (await fetching.catch(() => undefined))?.[Symbol.asyncDispose]()
    this.#open.clear()
  }
}

/** A task that names a proxy must stay behind it, even for sites that the worker would fetch directly. */
function allProxied(sites: EgressSpec['sites']): Record<string, SiteOptions> {
  return Object.fromEntries(Object.entries(sites).map(([host, { proxies: _, ...site }]) => [host, site]))
}

function chainOf({ fetcher, rateLimit, proxies }: Fetching, count: (change: 1 | -1) => void): Chain {
  const listeners = new Set<() => void>()
  rateLimit.onFree(() => {
    for (const listener of listeners) listener()
  })
  return {
    areProxiesDown: () => proxies?.status().every(({ isUp }) => !isUp) === true,
    fetcher: {
      async fetch(request: FetchRequest, signal: AbortSignal): Promise<Page> {
        count(1)
        try {
          return await fetcher.fetch(request, signal)
        } finally {
          count(-1)
        }
      },
      [Symbol.asyncDispose]: async () => {},
    },
    rateLimit() {
      const own = new Set<() => void>()
      return {
        waitMs: (host, use) => rateLimit.waitMs(host, use),
        acquire: (host, signal, use) => rateLimit.acquire(host, signal, use),
        pause: (host, untilMs, reason) => rateLimit.pause(host, untilMs, reason),
        setDelay: (host, delayMs) => rateLimit.setDelay(host, delayMs),
        busyHosts: () => rateLimit.busyHosts(),
        pauses: () => rateLimit.pauses(),
        onFree(listener) {
          own.add(listener)
          listeners.add(listener)
        },
        [Symbol.dispose]: () => {
          for (const listener of own) listeners.delete(listener)
        },
      }
    },
  }
}
