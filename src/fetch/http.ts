/** HTTP: from a request to a page, over redirects. Nothing but `ScrapeError` and the signal's own reason comes out. */
import { ScrapeError } from '../core/errors.ts'
import type { Page } from '../core/page.ts'
import { URL_BYTES_MAX } from '../core/url.ts'
import type { AddressOptions } from './address.ts'
import { detectCharset, parseContentType } from './charset.ts'
import type { FetchRequest } from './contract.ts'
import { ChainCookies } from './cookies.ts'
import { Deadline } from './deadline.ts'
import { decodeBody, parseContentEncoding } from './decode.ts'
import { Exchange, FAILED_BODY_BYTES_MAX } from './exchange.ts'
import { HttpPage, headerOf } from './http-page.ts'
import { openPools } from './pools.ts'
import { redirectTarget } from './redirect.ts'
import { statusError, transportError, withPage } from './status.ts'

export interface HttpOptions extends AddressOptions {
  /** Honest: who we are and where to complain. */
  userAgent: string
  /** Deadline of one exchange, redirects included. */
  timeoutMs: number
  /** After decompression. */
  bodyBytesMax: number
  redirectsMax: number
  connectionsPerHost: number
  /** A longer Retry-After is cut to this. */
  retryAfterMsMax: number
  /** Epoch milliseconds. */
  now?: () => number
  /**
   * Called before a redirect is followed to another host than the request's: waits for its rate-limit slot, or throws where it
   * must not be fetched. What it gives is disposed when that host has answered. The wait is outside the deadline.
   */
  onRedirectHost?: (host: string, signal: AbortSignal, url: string) => Promise<Disposable | undefined>
}

export interface HttpClient extends AsyncDisposable {
  /** `onRedirect` is awaited, outside the deadline, before a redirect is followed; it may refuse by throwing. */
  exchange(request: FetchRequest, signal: AbortSignal, onRedirect?: OnRedirect): Promise<Page>
}

export type OnRedirect = (url: string, signal: AbortSignal) => Promise<void>

/** What the chain of redirects has come to. */
interface Chain {
  url: string
  redirects: string[]
  cookies: ChainCookies | undefined
  /** Still at the origin the caller's headers are meant for; once left, they are not sent again. */
  isHome: boolean
}

export function openHttp(options: HttpOptions): HttpClient {
  const pools = openPools(options)
  const now = options.now ?? Date.now
  const ownHeaders: Readonly<Record<string, string>> = {
    'user-agent': options.userAgent,
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'accept-language': 'en,*;q=0.5',
    'accept-encoding': 'gzip, deflate, br, zstd',
  }
  const ownHeaderList = Object.entries(ownHeaders).flat()

  /** The headers of every hop come from here and nowhere else. */
  function headersFor(request: FetchRequest, chain: Chain): string[] {
    const cookies = chain.cookies?.headerFor(new URL(chain.url)) ?? ''
    const given = chain.isHome ? request.headers : undefined
    if (given === undefined && cookies === '') return ownHeaderList
    const headers: Record<string, string> = { ...ownHeaders, ...given }
    for (const name in given) if (FRAMING.test(name)) throw badHeader(name, request.url)
    // The server's cookies of a moment ago come last: of two with one name, servers take the last more often than the first.
    if (cookies !== '') headers['cookie'] = [given?.['cookie'], cookies].filter(Boolean).join('; ')
    return Object.entries(headers).flat()
  }

  async function send(request: FetchRequest, chain: Chain, deadline: Deadline): Promise<Exchange> {
    const { url } = chain
    const pathStart = url.indexOf('/', url.indexOf('//') + 2)
    const pool = pools.get(pathStart === -1 ? url : url.slice(0, pathStart))
    const path = pathStart === -1 ? '/' : url.slice(pathStart)
    const headers = headersFor(request, chain)
    for (let isSecondTry = false; ; isSecondTry = true) {
      const hop = new Exchange(request, options.bodyBytesMax)
      pool.dispatch({ path, method: 'GET', headers }, hop)
      deadline.watch(hop)
      try {
        await hop.done
        return hop
      } catch (error) {
        if (deadline.failure !== undefined) throw deadline.failure.reason
        if (!hop.isStale || isSecondTry) throw transportError(error, { url, hasResponse: hop.status !== 0 })
      }
    }
  }

  /** Follows redirects until something else answers. */
  async function follow(
    request: FetchRequest,
    first: Exchange,
    chain: Chain,
    deadline: Deadline,
    signal: AbortSignal,
    onRedirect?: OnRedirect,
  ) {
    const seen = new Set<string>([request.url])
    const homeHost = new URL(request.url).host
    let slot: Disposable | undefined
    let hop = first
    try {
      while (hop.outcome === 'redirect') {
        hop.dropBody()
        const from = new URL(chain.url)
        const setCookie = hop.headers['set-cookie']
        if (setCookie !== undefined) {
          chain.cookies ??= new ChainCookies()
          chain.cookies.store(setCookie, from)
        }
        const target = redirectTarget(hop.headers, from)
        chain.redirects.push(chain.url)
        chain.url = target.href
        chain.isHome &&= target.origin === from.origin
        // The same URL with another cookie is no loop: that is how cookie walls let one in.
        const visit = `${target.href}\n${chain.cookies?.headerFor(target) ?? ''}`.trimEnd()
        if (seen.has(visit)) throw tooManyRedirects(request, chain, 'a loop')
        if (chain.redirects.length > options.redirectsMax) throw tooManyRedirects(request, chain, 'the limit')
        seen.add(visit)
        if (target.host !== from.host) {
          slot?.[Symbol.dispose]()
          slot = undefined
          if (target.host !== homeHost && options.onRedirectHost !== undefined) {
            slot = await deadline.exclude(options.onRedirectHost(target.host, signal, target.href))
            if (deadline.failure !== undefined) throw deadline.failure.reason
          }
        }
        if (onRedirect !== undefined) {
          await deadline.exclude(onRedirect(target.href, signal))
          if (deadline.failure !== undefined) throw deadline.failure.reason
        }
        hop = await send(request, chain, deadline)
      }
      return hop
    } finally {
      slot?.[Symbol.dispose]()
    }
  }

  async function toPage(request: FetchRequest, hop: Exchange, chain: Chain, deadline: Deadline): Promise<Page> {
    const { headers } = hop
    const endedAtMs = performance.now()
    const type = parseContentType(headerOf(headers, 'content-type') ?? '')
    let { body } = hop
    try {
      if (hop.hasExcess && hop.status !== 204)
        throw new ScrapeError('E_PROTOCOL', 'the server sent more than it announced')
      const encoding = headers['content-encoding']
      if (encoding !== undefined) {
        const decoded = decode(hop, body, String(encoding), options.bodyBytesMax)
        body = decoded instanceof Promise ? await decoded : decoded
        if (deadline.failure !== undefined) throw deadline.failure.reason
      }
      if (type.markup === 'html' && body[0] === 0x1f && body[1] === 0x8b) {
        throw new ScrapeError('E_ENCODING', 'gzip data in place of HTML, without a word about it in the headers')
      }
      const charset = detectCharset(body, type)
      return pageFrom(request, hop, chain, { deadline, body, charset, contentType: type.essence, endedAtMs })
    } catch (error) {
      if (error === deadline.failure?.reason) throw error
      throw transportError(error, { url: chain.url, hasResponse: true })
    }
  }

  /** The error of a status, with as much of its page as came. */
  function toFailure(request: FetchRequest, hop: Exchange, chain: Chain, deadline: Deadline): ScrapeError {
    const { status, headers } = hop
    const { url } = chain
    const error = statusError(status, headers, { url, nowMs: now(), retryAfterMsMax: options.retryAfterMsMax })
    const type = parseContentType(headerOf(headers, 'content-type') ?? '')
    let body = hop.body
    let charset = 'utf-8'
    try {
      const encoding = headers['content-encoding']
      if (encoding !== undefined) {
        const decoded = decode(hop, body, String(encoding), FAILED_BODY_BYTES_MAX * 16)
        body = Buffer.from((decoded as Buffer).subarray(0, FAILED_BODY_BYTES_MAX))
      }
      charset = detectCharset(body, type)
    } catch {
      // Best effort: the status is the news, its page only helps to understand it.
      if (charset === 'utf-8' && headers['content-encoding'] !== undefined) body = Buffer.alloc(0)
    }
    const endedAtMs = performance.now()
    return withPage(
      error,
      pageFrom(request, hop, chain, { deadline, body, charset, contentType: type.essence, endedAtMs }),
    )
  }

  function pageFrom(
    request: FetchRequest,
    hop: Exchange,
    chain: Chain,
    rest: { deadline: Deadline; body: Buffer; charset: string; contentType: string; endedAtMs: number },
  ): Page {
    const { startedAtMs } = rest.deadline
    return new HttpPage({
      requestedUrl: request.url,
      url: chain.url,
      redirects: chain.redirects,
      status: hop.status,
      headers: hop.headers,
      body: rest.body,
      contentType: rest.contentType,
      charset: rest.charset,
      wireBytes: hop.wireBytes,
      timings: { firstByteMs: hop.firstByteAtMs - startedAtMs, totalMs: rest.endedAtMs - startedAtMs },
      fetchedAtMs: now(),
    })
  }

  return {
    async exchange(request, signal, onRedirect) {
      if (signal.aborted) throw signal.reason
      const { url } = request
      if (url.length > URL_BYTES_MAX) throw new ScrapeError('E_URL_INVALID', `a URL of ${url.length} bytes`, { url })
      const chain: Chain = { url, redirects: [], cookies: undefined, isHome: true }
      const deadline = new Deadline(url, options.timeoutMs, signal)
      try {
        let hop = await send(request, chain, deadline)
        if (hop.outcome === 'redirect') hop = await follow(request, hop, chain, deadline, signal, onRedirect)
        if (signal.aborted) throw signal.reason
        if (hop.outcome === 'failed') throw toFailure(request, hop, chain, deadline)
        return await toPage(request, hop, chain, deadline)
      } finally {
        deadline.end()
      }
    },
    [Symbol.asyncDispose]: () => pools[Symbol.asyncDispose](),
  }
}

/** What frames the message is ours to say. */
const FRAMING = /^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|te|trailer|proxy-.*)$/i

function badHeader(name: string, url: string): ScrapeError {
  return new ScrapeError('E_DEFINITION', `the request header ${JSON.stringify(name)} cannot be set`, { url })
}

function tooManyRedirects(request: FetchRequest, chain: Chain, why: string): ScrapeError {
  const message = `${chain.redirects.length} redirects from ${request.url}: ${why}`
  return new ScrapeError('E_REDIRECT_LIMIT', message, { url: request.url, notes: [...chain.redirects, chain.url] })
}

function decode(hop: Exchange, body: Buffer, encoding: string, bytesMax: number): Buffer | Promise<Buffer> {
  const codings = parseContentEncoding(encoding)
  if (codings.length === 0) return body
  const { headers } = hop
  const isFramed = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  // No bytes at all are no valid gzip, but common for empty answers, where the server says itself that nothing comes.
  if (body.length === 0 && (isFramed || hop.status === 204)) return body
  return decodeBody(body, codings, bytesMax)
}
