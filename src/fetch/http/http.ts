/** HTTP: turns a request into a page and follows redirects. Throws only `ScrapeError` and the signal's own reason. */
import { ScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import { URL_BYTES_MAX } from '../../core/url.ts'
import type { FetchRequest } from '../contract.ts'
import type { Identity } from '../identity/identity.ts'
import { profileHeaders } from '../identity/profile-headers.ts'
import type { AddressOptions } from '../net/address.ts'
import { transportError } from '../net/transport-error.ts'
import { type AnswerLimits, toFailure, toFile, toPage, type Way } from './answer.ts'
import { type BodyPlace, BodyRoom } from './body-room.ts'
import { Deadline } from './deadline.ts'
import { Exchange, type MakeRoom } from './exchange.ts'
import { openPools, type Wire } from './pools.ts'
import { redirectWalk, type Trail } from './redirect-walk.ts'
import { send, splitUrl } from './send.ts'

export interface HttpOptions extends AddressOptions, AnswerLimits {
  /** Honest: who we are and where to complain. */
  userAgent: string
  /** Deadline of one exchange, redirects included. */
  timeoutMs: number
  /** After decompression. */
  bodyBytesMax: number
  redirectsMax: number
  connectionsPerHost: number
  /** `socks5://[user:password@]host:port` or `http://…` (CONNECT). Carries all traffic, and resolves the names. */
  proxy?: string
  /** Every request must use an identity and its proxy; others are refused. Default false. */
  isOnlyProxied?: boolean
  /** Limits the large bodies of all pages; default: `ROOM_BYTES` for this client. */
  bodyRoom?: BodyRoom
  /** A longer Retry-After is reduced to this. */
  retryAfterMsMax: number
  /** Epoch milliseconds. */
  now?: () => number
}

/**
 * Awaited before a redirect is followed, whatever host it leads to: the place for robots.txt and the rate limit. If it throws,
 * the exchange ends. Its time does not count toward the deadline.
 */
type OnRedirect = (url: string, signal: AbortSignal) => Promise<void>

export interface HttpClient extends AsyncDisposable {
  /** With `identity`: over its connections, with its headers and cookies. If omitted, as ourselves. */
  exchange(request: FetchRequest, signal: AbortSignal, onRedirect?: OnRedirect, identity?: Identity): Promise<Page>
  /**
   * New requests go through this proxy and over new connections; requests in flight keep their connection, but the next hop of a
   * redirect uses the new proxy. Throws `E_OPTION` if this is not a proxy URL; in that case nothing changes.
   */
  rotate(proxyUrl: string): void
}

type Chain = Way & Trail & { identity: Identity | undefined }

/** The client takes ownership of `wire` and closes it. */
export function openHttp(options: HttpOptions, wire: Wire = openPools(options)): HttpClient {
  const now = options.now ?? Date.now
  const room = options.bodyRoom ?? new BodyRoom()
  const ownHeaders: Readonly<Record<string, string>> = {
    'user-agent': options.userAgent,
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'accept-language': 'en,*;q=0.5',
    'accept-encoding': 'gzip, deflate, br, zstd',
  }
  const ownHeaderList = Object.entries(ownHeaders).flat()

  /** All headers of every hop are created here. */
  function headersFor(chain: Chain): string[] {
    const { request } = chain
    const cookies = chain.cookies?.headerFor(new URL(chain.url)) ?? ''
    const given = chain.isHome ? request.headers : undefined
    const profile = chain.identity?.profile
    if (profile !== undefined) {
      for (const name in given) if (FRAMING.test(name)) throw badHeader(name, request.url)
      return profileHeaders(profile, { url: new URL(chain.url), given, cookies, isPost: chain.body !== undefined })
    }
    if (given === undefined && cookies === '' && chain.body === undefined) return ownHeaderList
    const headers: Record<string, string> = { ...ownHeaders, ...given }
    if (chain.body !== undefined) headers['content-type'] ??= 'application/json'
    for (const name in given) if (FRAMING.test(name)) throw badHeader(name, request.url)
    // The cookies the server has just set come last: if a name occurs twice, servers take the last more often than the first.
    if (cookies !== '') headers['cookie'] = [given?.['cookie'], cookies].filter(Boolean).join('; ')
    return Object.entries(headers).flat()
  }

  function sendHop(chain: Chain, deadline: Deadline): Promise<Exchange> {
    const { origin, path } = splitUrl(chain.url)
    const headers = headersFor(chain)
    const message =
      chain.body === undefined
        ? { path, method: 'GET' as const, headers }
        : { path, method: 'POST' as const, headers, body: chain.body }
    const dispatch = () => {
      const hop = new Exchange(chain.request, options.bodyBytesMax, chain.makeRoom)
      wire.get(origin, chain.identity).dispatch(message, hop)
      return hop
    }
    return send(dispatch, chain.url, deadline)
  }

  /** Follows redirects until a response is not one. */
  async function follow(
    first: Exchange,
    chain: Chain,
    deadline: Deadline,
    signal: AbortSignal,
    onRedirect: OnRedirect | undefined,
  ): Promise<Exchange> {
    const step = redirectWalk(chain, options.redirectsMax)
    let hop = first
    while (hop.outcome === 'redirect') {
      hop.dropBody()
      step(hop)
      if (onRedirect !== undefined) await deadline.exclude(onRedirect(chain.url, signal))
      if (deadline.failure !== undefined) throw deadline.failure.reason
      hop = await sendHop(chain, deadline)
    }
    return hop
  }

  return {
    async exchange(request, signal, onRedirect, identity) {
      if (signal.aborted) throw signal.reason
      const { url } = request
      if (url.length > URL_BYTES_MAX) throw new ScrapeError('E_URL_INVALID', `a URL of ${url.length} bytes`, { url })
      const deadline = new Deadline(url, options.timeoutMs, signal)
      const { startedAtMs } = deadline
      const body = request.post === undefined ? undefined : JSON.stringify(request.post)
      const cookies = identity?.cookies
      // Only pages of a crawl: those are released once they have been read.
      const place = request.task === undefined ? undefined : room.newPlace()
      const makeRoom = roomMaker(place, deadline)
      const chain: Chain = {
        request, url, redirects: [], cookies, identity, body, isHome: true, startedAtMs, place, makeRoom,
      } // biome-ignore format: one line reads better
      let isPage = false
      try {
        let answer = await sendHop(chain, deadline)
        if (answer.outcome === 'redirect') answer = await follow(answer, chain, deadline, signal, onRedirect)
        if (signal.aborted) throw signal.reason
        const setCookie = cookies === undefined ? undefined : answer.headers['set-cookie']
        if (setCookie !== undefined) cookies!.store(setCookie, new URL(chain.url))
        if (answer.outcome === 'failed') throw toFailure(answer, chain, options, now())
        if (answer.outcome === 'file') {
          answer.dropBody()
          throw toFile(answer, chain, now())
        }
        const page = toPage(answer, chain, options, now())
        const whole = page instanceof Promise ? await deadline.race(page) : page
        isPage = true
        return whole
      } catch (error) {
        if (error === deadline.failure?.reason || error === signal.reason) throw error
        throw transportError(error, { url: chain.url, hasResponse: true })
      } finally {
        deadline.end()
        if (!isPage) place?.[Symbol.dispose]()
      }
    },
    rotate: (proxyUrl) => wire.rotate(proxyUrl),
    [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose](),
  }
}

/** The time spent waiting for room does not count against the server. */
function roomMaker(place: BodyPlace | undefined, deadline: Deadline): MakeRoom | undefined {
  if (place === undefined) return undefined
  return (bytes) => {
    const waiting = place.take(bytes)
    return waiting === undefined ? undefined : deadline.exclude(waiting)
  }
}

/** Headers about message framing, which only we may set. */
const FRAMING = /^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|te|trailer|proxy-.*)$/i

function badHeader(name: string, url: string): ScrapeError {
  return new ScrapeError('E_DEFINITION', `the request header ${JSON.stringify(name)} cannot be set`, { url })
}
