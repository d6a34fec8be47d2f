/** The fetch chain: robots → rate limit → cache → http, or → browser. Each link does its part or throws a `ScrapeError`. */
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Page } from '../core/page.ts'
import { hostOf } from '../core/url.ts'
import type { RemoteCache, ResponseCache } from './cache.ts'
import type { BrowserPool, BrowserRequest, Fetcher, FetchRequest, RateLimit, Slot } from './contract.ts'
import type { HttpClient } from './http.ts'
import { createRobots, type Robots } from './robots.ts'
import { createThrottle } from './throttle.ts'

export interface FetcherParts {
  http: Pick<HttpClient, 'exchange'>
  rateLimit: RateLimit
  /** Left out: requests for a browser are refused. */
  browsers?: Pick<BrowserPool, 'visit'>
  /** Left out: robots.txt is ignored. */
  robots?: { userAgent: string }
  /** Left out: every page is asked for. */
  cache?: ResponseCache | RemoteCache
  events?: Pick<EventBus, 'emit'>
  /** Longest Retry-After that is obeyed. */
  retryAfterMsMax: number
  now?: () => number
}

export interface ChainFetcher extends Fetcher {
  /** For `sluice robots` and `sluice map`; undefined when robots.txt is ignored. */
  readonly robots: Robots | undefined
}

export function createFetcher(parts: FetcherParts): ChainFetcher {
  const { http, rateLimit, cache } = parts
  const now = parts.now ?? Date.now
  const throttle = createThrottle(parts)
  const robots =
    parts.robots === undefined
      ? undefined
      : createRobots({ userAgent: parts.robots.userAgent, rateLimit, fetchRobots, now })

  async function fetch(request: FetchRequest, signal: AbortSignal): Promise<Page> {
    try {
      const check = robots?.check(request.url, signal)
      if (check !== undefined) await check
      if (request.browser !== undefined) return await visit({ ...request, browser: request.browser }, signal)
      using turn = await takeTurn(request.url, signal)
      const fresh = cache === undefined ? undefined : await cache.get(request)
      if (fresh !== undefined) return fresh
      const page = await exchange(request, signal, turn, (url) => robots?.check(url, signal))
      cache?.set(request, page)
      return page
    } catch (error) {
      if (error instanceof ScrapeError || !signal.aborted) throw error
      throw new ScrapeError('E_STOPPED', `stopped while fetching ${request.url}`, { url: request.url, cause: error })
    }
  }

  /** A browser follows redirects by itself: where it was led to is judged when it is there. Its pages are never cached. */
  async function visit(request: FetchRequest & { browser: BrowserRequest }, signal: AbortSignal): Promise<Page> {
    if (parts.browsers === undefined) throw new ScrapeError('E_BROWSER_MISSING', 'this command opens no browser')
    using turn = await takeTurn(request.url, signal)
    const startedMs = now()
    try {
      const page = await parts.browsers.visit(request, signal)
      throttle.onAnswer(turn.host)
      try {
        if (page.url !== request.url) await robots?.check(page.url, signal)
      } catch (error) {
        page.release()
        throw error
      }
      return page
    } catch (error) {
      if (error instanceof ScrapeError) throttle.onError(turn.host, error, startedMs)
      throw error
    }
  }

  /** robots.txt itself keeps to the limits of its host, but asks nobody for leave. */
  async function fetchRobots(url: string, signal: AbortSignal): Promise<Page> {
    using turn = await takeTurn(url, signal)
    return await exchange({ url }, signal, turn)
  }

  async function takeTurn(url: string, signal: AbortSignal): Promise<Turn> {
    return new Turn(await rateLimit.acquire(hostOf(url), signal), rateLimit)
  }

  /** Every answer says whether its host is well; a redirect goes on under the limits of where it leads. */
  async function exchange(
    request: FetchRequest,
    signal: AbortSignal,
    turn: Turn,
    checkRedirect?: (url: string) => Promise<void> | undefined,
  ): Promise<Page> {
    let startedMs = now()
    try {
      const page = await http.exchange(request, signal, async (url, hopSignal) => {
        throttle.onAnswer(turn.host)
        turn.release() // before anything is waited for: two requests that lead to each other's hosts must not block both
        await checkRedirect?.(url)
        await turn.take(url, hopSignal)
        startedMs = now()
      })
      throttle.onAnswer(turn.host)
      return page
    } catch (error) {
      if (error instanceof ScrapeError) throttle.onError(turn.host, error, startedMs)
      throw error
    }
  }

  return {
    robots,
    fetch,
    async [Symbol.asyncDispose]() {
      await robots?.[Symbol.asyncDispose]()
    },
  }
}

/** The slot of a request, which moves with its redirects from host to host. */
class Turn implements Disposable {
  #slot: Slot
  readonly #rateLimit: RateLimit

  constructor(slot: Slot, rateLimit: RateLimit) {
    this.#slot = slot
    this.#rateLimit = rateLimit
  }

  get host(): string {
    return this.#slot.host
  }

  release(): void {
    this.#slot[Symbol.dispose]()
  }

  async take(url: string, signal: AbortSignal): Promise<void> {
    this.#slot = await this.#rateLimit.acquire(new URL(url).host, signal)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
