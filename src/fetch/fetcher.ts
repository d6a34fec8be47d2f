/**
 * The fetch chain: robots → circuit → rate limit → cache → identity → http or browser → block check. Each link does its part or
 * throws a `ScrapeError`. The throttle, the circuit and the identity of a request are notified of how it ended.
 */
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Page } from '../core/page.ts'
import { hostOf } from '../core/url.ts'
import { checkSuspect } from './block/suspect.ts'
import type { Judge } from './block/to-error.ts'
import type { BrowserPool } from './browser/pool.ts'
import type { RemoteCache, ResponseCache } from './cache/cache.ts'
import type { Circuit, CircuitPage, Pass } from './circuit/circuit.ts'
import type { BrowserRequest, Fetcher, FetchRequest, RateLimit, Slot } from './contract.ts'
import { ANY_CONTENT } from './http/accept.ts'
import { checkContent } from './http/content-check.ts'
import type { HttpClient } from './http/http.ts'
import { HttpPage } from './http/http-page.ts'
import type { Identities } from './identity/identities.ts'
import type { Identity } from './identity/identity.ts'
import { withIdentity } from './identity/with-identity.ts'
import { createThrottle } from './rate/throttle.ts'
import { createRobots, type Robots } from './robots/robots.ts'

export interface FetcherParts {
  http: Pick<HttpClient, 'exchange'>
  rateLimit: RateLimit
  /** If omitted, requests for a browser are refused. */
  browsers?: Pick<BrowserPool, 'visit'>
  /** If omitted, robots.txt is ignored. */
  robots?: { userAgent: string }
  /** If omitted, every page is requested. */
  cache?: ResponseCache | RemoteCache
  /** If omitted, requests to a failing host continue. */
  circuit?: Circuit
  /** If omitted, every response counts as a page. */
  judge?: Judge
  /** If omitted, requests are made without an identity. */
  identities?: Identities
  events?: Pick<EventBus, 'emit'>
  /** A longer Retry-After is cut to this. */
  retryAfterMsMax: number
  now?: () => number
}

export interface ChainFetcher extends Fetcher {
  /** For `sluice robots` and `sluice map`; undefined when robots.txt is ignored. */
  readonly robots: Robots | undefined
}

export function createFetcher(parts: FetcherParts): ChainFetcher {
  return new FetchChain(parts)
}

class FetchChain implements ChainFetcher {
  readonly robots: Robots | undefined
  readonly #parts: FetcherParts
  readonly #http: FetcherParts['http']
  readonly #rateLimit: RateLimit
  readonly #identities: Identities | undefined
  readonly #circuit: Circuit | undefined
  readonly #judge: Judge | undefined
  readonly #throttle: ReturnType<typeof createThrottle>
  readonly #now: () => number

  constructor(parts: FetcherParts) {
    this.#parts = parts
    this.#http = parts.http
    this.#rateLimit = parts.rateLimit
    this.#identities = parts.identities
    this.#circuit = parts.circuit
    this.#judge = parts.judge
    this.#throttle = createThrottle(parts)
    this.#now = parts.now ?? Date.now
    if (parts.robots !== undefined)
      this.robots = createRobots({
        ...parts,
        userAgent: parts.robots.userAgent,
        fetchRobots: (url, signal) => this.#fetchRobots(url, signal),
        now: this.#now,
      })
  }

  async fetch(request: FetchRequest, signal: AbortSignal): Promise<Page> {
    try {
      const check = this.robots?.check(request.url, signal)
      if (check !== undefined) await check
      this.#circuit?.check(circuitPage(request, hostOf(request.url)))
      if (request.browser !== undefined) return await this.#visit({ ...request, browser: request.browser }, signal)
      using turn = await this.#takeTurn(request.url, signal)
      const cache = request.post === undefined ? this.#parts.cache : undefined
      const fresh = cache === undefined ? undefined : await cache.get(request)
      if (fresh !== undefined) {
        await checkContent(fresh, request.accept) // it may have been cached for a route that accepts more
        return fresh
      }
      const page = await this.#exchange(request, signal, turn, (url) => this.robots?.check(url, signal))
      cache?.set(request, page)
      return page
    } catch (error) {
      if (error instanceof ScrapeError || !signal.aborted) throw error
      throw new ScrapeError('E_STOPPED', `stopped while fetching ${request.url}`, { url: request.url, cause: error })
    }
  }

  async #exchange(
    request: FetchRequest,
    signal: AbortSignal,
    turn: Turn,
    checkRedirect?: CheckRedirect,
  ): Promise<Page> {
    if (this.#identities === undefined) return await this.#exchangeAs(undefined, request, signal, turn, checkRedirect)
    return await withIdentity(this.#identities, request, signal, async (identity) => {
      const host = hostOf(request.url)
      if (turn.host !== host) await turn.move(request.url, signal) // an earlier proxy failed after a redirect
      return await this.#exchangeAs(identity, request, signal, turn, checkRedirect)
    })
  }

  /** Every response tells whether its host is healthy; a redirect continues under the limits of its target host. */
  async #exchangeAs(
    identity: Identity | undefined,
    request: FetchRequest,
    signal: AbortSignal,
    turn: Turn,
    checkRedirect?: CheckRedirect,
  ): Promise<Page> {
    let startedMs = this.#now()
    // robots.txt is fetched without this check, and interprets its response itself.
    const isPage = checkRedirect !== undefined
    let pass = isPage ? this.#circuit?.enter(circuitPage(request, turn.host)) : undefined
    const onRedirect = async (url: string, hopSignal: AbortSignal) => {
      this.#throttle.onAnswer(turn.host)
      pass?.end()
      turn.release() // before waiting for anything: two requests that redirect to each other's hosts must not deadlock
      await checkRedirect?.(url)
      await turn.take(url, hopSignal)
      pass = isPage ? this.#circuit?.enter(circuitPage(request, turn.host)) : undefined
      startedMs = this.#now()
    }
    let page: Page | undefined
    try {
      page = await this.#http.exchange(request, signal, onRedirect, identity)
      if (isPage) {
        const checking = this.#onPage(page, request, turn.host, pass)
        if (checking !== undefined) await checking
      } else this.#throttle.onAnswer(turn.host)
      return page
    } catch (error) {
      const isJudged = page !== undefined
      if (page instanceof HttpPage) page.giveRoom()
      if (isPage) throw this.#onFailure(error, { request, host: turn.host, startedMs, pass, isJudged })
      // A robots.txt that is forbidden does not mean that we are blocked: many sites deny it to everyone.
      if (error instanceof ScrapeError && error.code !== 'E_FORBIDDEN') {
        this.#throttle.onError(turn.host, error, { url: request.url, startedMs, isAlone: false })
      }
      throw error
    }
  }

  /** A browser follows redirects by itself, so their target is checked on arrival. Its pages are never cached. */
  async #visit(request: FetchRequest & { browser: BrowserRequest }, signal: AbortSignal): Promise<Page> {
    if (this.#parts.browsers === undefined) throw new ScrapeError('E_BROWSER_MISSING', 'this command opens no browser')
    const { browsers } = this.#parts
    using turn = await this.#takeTurn(request.url, signal)
    if (this.#identities === undefined) return await this.#visitAs(browsers, request, signal, turn)
    return await withIdentity(this.#identities, request, signal, (identity) =>
      this.#visitAs(browsers, request, signal, turn, identity),
    )
  }

  async #visitAs(
    browsers: Pick<BrowserPool, 'visit'>,
    request: FetchRequest & { browser: BrowserRequest },
    signal: AbortSignal,
    turn: Turn,
    identity?: Identity,
  ): Promise<Page> {
    const startedMs = this.#now()
    const pass = this.#circuit?.enter(circuitPage(request, turn.host))
    let page: Page | undefined
    try {
      page = await browsers.visit(request, signal, identity)
      if (page.url !== request.url) await this.robots?.check(page.url, signal)
      await this.#onPage(page, request, turn.host, pass)
      return page
    } catch (error) {
      page?.release()
      throw this.#onFailure(error, { request, host: turn.host, startedMs, pass, isJudged: page !== undefined })
    }
  }

  /** Throws if the response is a block page, or not a page at all. Returns a promise only if the bytes need a closer look. */
  #onPage(page: Page, request: FetchRequest, host: string, pass: Pass | undefined): undefined | Promise<void> {
    const judged = this.#judge?.page(page, request.accept)
    if (judged?.error !== undefined) throw judged.error
    const onGood = () => {
      if (judged !== undefined) checkSuspect(page, judged.verdict, request)
      this.#throttle.onAnswer(host)
      pass?.end()
    }
    const checking = checkContent(page, request.accept)
    if (checking !== undefined) return checking.then(onGood)
    onGood()
    return undefined
  }

  /** The error to throw: the same one, or one that names the bot protection behind it. */
  #onFailure(thrown: unknown, { request, host, startedMs, pass, isJudged }: Failure): unknown {
    let error = thrown
    if (error instanceof ScrapeError) {
      if (!isJudged && this.#judge !== undefined) error = this.#judge.failure(error).error
      const { url, hasFallback } = request
      const isAlone = hasFallback !== true && this.#identities?.hasOthers(host) !== true
      this.#throttle.onError(host, error as ScrapeError, { url, startedMs, isAlone })
    }
    pass?.end(error)
    return error
  }

  /** robots.txt itself obeys the rate limit of its host, but is not checked against robots.txt. */
  async #fetchRobots(url: string, signal: AbortSignal): Promise<Page> {
    using turn = await this.#takeTurn(url, signal)
    return await this.#exchange({ url, accept: ANY_CONTENT }, signal, turn)
  }

  async #takeTurn(url: string, signal: AbortSignal): Promise<Turn> {
    return new Turn(await this.#rateLimit.acquire(hostOf(url), signal), this.#rateLimit)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.robots?.[Symbol.asyncDispose]()
  }
}

interface Failure {
  request: FetchRequest
  host: string
  startedMs: number
  pass: Pass | undefined
  /** A page arrived and was rejected. */
  isJudged: boolean
}

/** A page is the same page wherever its redirects lead. */
function circuitPage({ url, task }: FetchRequest, host: string): CircuitPage {
  return { host, id: task?.id ?? url, isRetry: task !== undefined && task.attempt > 1 }
}

type CheckRedirect = (url: string) => Promise<void> | undefined

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

  async move(url: string, signal: AbortSignal): Promise<void> {
    this.release()
    await this.take(url, signal)
  }

  async take(url: string, signal: AbortSignal): Promise<void> {
    this.#slot = await this.#rateLimit.acquire(new URL(url).host, signal)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
