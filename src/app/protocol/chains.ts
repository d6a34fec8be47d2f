/** The fetch chains of one worker instance: one for all its tasks, and a few more for tasks that name a way out of their own. */
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import type { Page } from '../../core/page.ts'
import type { CompiledScraper } from '../../crawl/compiled.ts'
import type { BrowserPool, Fetcher, FetchRequest, RateLimit } from '../../fetch/contract.ts'
import { type Fetching, openFetching, type RateSharing } from '../run/fetching.ts'
import type { ChainWish } from './task-args.ts'

export interface ChainsOptions {
  compiled: CompiledScraper
  concurrency: number
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  cacheStore: string
  proxy: string | undefined
  sharing: RateSharing
  browsers: BrowserPool | undefined
  bus: EventBus
}

export interface Chain {
  fetcher: Fetcher
  /** `host:port`. */
  proxy: string | null
  /** A view for one crawl: who waits for a free host there is forgotten with it. */
  rateLimit(): RateLimit & Disposable
}

/** Ways out of their own that are open at once; those that are out of use for longest are closed. */
const OTHERS_MAX = 16

export class Chains implements AsyncDisposable {
  readonly #options: ChainsOptions
  /** In order of use. */
  readonly #open = new Map<string, { chain: Promise<Chain>; fetching: Promise<Fetching>; users: number }>()
  /** Requests out, over all chains. */
  inFlight = 0
  /** Requests through proxies, by how they ended. */
  readonly #proxied = { ok: 0, failed: 0 }

  constructor(options: ChainsOptions) {
    this.#options = options
  }

  /** `release` when the task is over: a chain that nobody uses may be closed. */
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
      this.#open.delete(key)
      throw error
    }
  }

  #openOne(wish: ChainWish) {
    const fetching = this.#openFetching(wish)
    const proxy = wish.proxy ?? this.#options.proxy
    const place = proxy === undefined ? null : (URL.parse(proxy)?.host ?? null)
    const chain = fetching.then((opened) => chainOf(opened, place, this))
    chain.catch(() => {}) // whoever takes it hears of it
    return { chain, fetching, users: 0 }
  }

  async #openFetching({ proxy, userAgent, delayMs }: ChainWish): Promise<Fetching> {
    const { compiled, concurrency, ...rest } = this.#options
    if (proxy !== undefined && !/^(?:socks5h?|http):\/\/./.test(proxy))
      throw new ScrapeError('E_OPTION', 'the proxy of the task is neither user:password@host:port nor a URL of one')
    const { limits } = compiled
    return await openFetching({
      ...rest,
      limits: delayMs === undefined ? limits : { ...limits, perHost: { ...limits.perHost, delay: delayMs } },
      concurrency,
      perHostConcurrency: Math.min(concurrency, limits.perHost.concurrency),
      ...(proxy === undefined ? {} : { proxy }),
      ...(userAgent === undefined ? {} : { userAgent }),
    })
  }

  count(change: 1 | -1, isOk: boolean, proxy: string | null): void {
    this.inFlight += change
    if (change < 0 && proxy !== null) this.#proxied[isOk ? 'ok' : 'failed']++
  }

  proxies(): { size: number; successRate: number } {
    const ways = [...this.#open.keys()].map((key) => (JSON.parse(key) as ChainWish).proxy ?? this.#options.proxy)
    const { ok, failed } = this.#proxied
    const size = new Set(ways.filter((proxy) => proxy !== undefined)).size
    return { size, successRate: ok + failed === 0 ? 1 : ok / (ok + failed) }
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

function chainOf({ fetcher, rateLimit }: Fetching, proxy: string | null, chains: Pick<Chains, 'count'>): Chain {
  const listeners = new Set<() => void>()
  rateLimit.onFree(() => {
    for (const listener of listeners) listener()
  })
  return {
    proxy,
    fetcher: {
      async fetch(request: FetchRequest, signal: AbortSignal): Promise<Page> {
        let isOk = false
        chains.count(1, isOk, proxy)
        try {
          const page = await fetcher.fetch(request, signal)
          isOk = true
          return page
        } finally {
          chains.count(-1, isOk, proxy)
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
