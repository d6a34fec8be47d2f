/**
 * A URL as a stream of bytes, for files: over the same pools, guards and redirect rules as pages, never held as a whole.
 *
 *   open ──▶ hop ──redirect──▶ hop … ──▶ 200 · 206 · 416 ──▶ body, chunk by chunk; a slow reader stops the socket
 *
 * Three clocks: until the headers of each hop, between two chunks (only while we are willing to read), and for the whole.
 */
import { pipeline, Readable } from 'node:stream'
import { ScrapeError } from '../../core/errors.ts'
import { URL_BYTES_MAX } from '../../core/url.ts'
import type { ByteAnswer, ByteRequest, ByteSource } from '../contract.ts'
import { ChainCookies } from '../identity/redirect-cookies.ts'
import { transportError } from '../net/transport-error.ts'
import { ByteExchange, Clock, timeout } from './byte-exchange.ts'
import { parseContentEncoding } from './decode.ts'
import { headerOf, type RawHeaders } from './http-page.ts'
import { openPools, type PoolsOptions } from './pools.ts'
import { redirectTarget } from './redirect.ts'
import { outcomeOf, statusError } from './status.ts'

export interface ByteStreamOptions extends PoolsOptions {
  /** Honest: who we are and where to complain. */
  userAgent: string
  /** From the request to the headers of its answer, connecting included. */
  headersMsMax: number
  /** Longest silence in the middle of a body. */
  idleMsMax: number
  /** Of one exchange, redirects included. */
  totalMsMax: number
  redirectsMax: number
  /** A longer Retry-After is cut to this. */
  retryAfterMsMax: number
  /** Epoch milliseconds. */
  now?: () => number
}

/** What frames the message, or asks for a part of it, is ours to say. */
const OURS =
  /^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|te|trailer|proxy-.*|range|if-range|accept-encoding)$/i

export function openByteStream(options: ByteStreamOptions): ByteSource {
  const pools = openPools(options)
  const now = options.now ?? Date.now

  /** The headers of every hop come from here and nowhere else. The caller's are for the first origin only. */
  function headersFor({ headers, range }: ByteRequest, isHome: boolean, cookies: string): string[] {
    const given = isHome ? Object.entries(headers).filter(([name]) => !OURS.test(name)) : []
    const all: Record<string, string> = { 'user-agent': options.userAgent, accept: '*/*', ...Object.fromEntries(given) }
    all['accept-encoding'] = 'identity' // a range counts the bytes of whatever encoding was sent: ours must be the file's own
    if (range !== undefined) {
      all['range'] = `bytes=${range.from}-`
      all['if-range'] = range.validator
    }
    if (cookies !== '') all['cookie'] = [all['cookie'], cookies].filter(Boolean).join('; ')
    return Object.entries(all).flat()
  }

  async function send(url: string, headers: string[], clock: Clock): Promise<ByteExchange> {
    const { origin } = new URL(url)
    const path = url.slice(origin.length) || '/'
    for (let isSecondTry = false; ; isSecondTry = true) {
      const hop = new ByteExchange(url, options.idleMsMax)
      clock.watch(hop)
      pools.get(origin).dispatch({ path: path.startsWith('/') ? path : `/${path}`, method: 'GET', headers }, hop)
      const silence = setTimeout(() => hop.cancel(timeout(url, hop.isSent ? 'E_TIMEOUT_HEADERS' : 'E_TIMEOUT_CONNECT', options.headersMsMax)), options.headersMsMax) // biome-ignore format: one line reads better
      try {
        await hop.head
        return hop
      } catch (error) {
        if (clock.failure !== undefined) throw clock.failure.reason
        if (!hop.isStale || isSecondTry) throw transportError(error, { url, hasResponse: hop.status !== 0 })
      } finally {
        clearTimeout(silence)
      }
    }
  }

  async function follow(request: ByteRequest, clock: Clock): Promise<{ hop: ByteExchange; url: string }> {
    const cookies = new ChainCookies()
    const seen = new Set<string>()
    const hasRange = request.range !== undefined
    const asked = { url: request.url, ...(hasRange ? { headers: { range: 'bytes' }, accept: [416] } : {}) }
    let { url } = request
    let isHome = true
    for (let redirects = 0; ; redirects++) {
      const jar = cookies.headerFor(new URL(url))
      if (seen.has(`${url}\n${jar}`)) throw tooManyRedirects(request.url, redirects, 'a loop')
      if (redirects > options.redirectsMax) throw tooManyRedirects(request.url, redirects, 'the limit')
      seen.add(`${url}\n${jar}`)
      const hop = await send(url, headersFor(request, isHome, jar), clock)
      if (outcomeOf(hop.status, hop.headers, asked) !== 'redirect') return { hop, url }
      hop.cancel(new Error('body dropped'))
      const from = new URL(url)
      const setCookie = hop.headers['set-cookie']
      if (setCookie !== undefined) cookies.store(setCookie, from)
      const target = redirectTarget(hop.headers, from)
      isHome &&= target.origin === from.origin
      url = target.href
      await request.onRedirect?.(url)
      if (clock.failure !== undefined) throw clock.failure.reason
    }
  }

  function answerOf(hop: ByteExchange, url: string, hasRange: boolean, clock: Clock): ByteAnswer {
    const { status, headers } = hop
    const isWanted = status === 200 || status === 203 || (hasRange && (status === 206 || status === 416))
    if (!isWanted) throw statusError(status, headers, { url, nowMs: now(), retryAfterMsMax: options.retryAfterMsMax })
    const codings = parseContentEncoding(headerOf(headers, 'content-encoding') ?? '')
    const length = headerOf(headers, 'content-length')
    if (length !== undefined && (!/^\d{1,15}$/.test(length) || headers['transfer-encoding'] !== undefined))
      throw new ScrapeError('E_PROTOCOL', `it is unclear where the body of ${url} ends`, { url })
    const isEncoded = codings.length > 0
    const wire = hop.body(clock)
    return {
      status,
      url,
      headers: plain(headers),
      isEncoded,
      length: isEncoded || length === undefined ? undefined : Number(length),
      body: isEncoded ? decoded(wire, codings, url) : wire,
      close: () => {
        clock.end()
        hop.cancel(new Error('the body is not wanted any more'))
      },
    }
  }

  return {
    async open(request, signal) {
      if (signal.aborted) throw signal.reason
      const { url } = request
      if (url.length > URL_BYTES_MAX) throw new ScrapeError('E_URL_INVALID', `a URL of ${url.length} bytes`, { url })
      const clock = new Clock(url, options.totalMsMax, signal)
      let hop: ByteExchange | undefined
      try {
        const found = await follow(request, clock)
        hop = found.hop
        return answerOf(hop, found.url, request.range !== undefined, clock)
      } catch (error) {
        clock.end()
        hop?.cancel(new Error('body dropped'))
        if (error === clock.failure?.reason || error === signal.reason) throw error
        throw transportError(error, { url, hasResponse: hop !== undefined })
      }
    },
    [Symbol.asyncDispose]: () => pools[Symbol.asyncDispose](),
  }
}

/** A damaged body is an error, never a file. What comes out is counted by the reader, chunk by chunk. */
async function* decoded(wire: AsyncIterable<Buffer>, codings: readonly string[], url: string): AsyncGenerator<Buffer> {
  const zlib = process.getBuiltinModule('node:zlib')
  const layers = codings.toReversed().map((coding) => {
    if (coding === 'br') return zlib.createBrotliDecompress()
    if (coding === 'zstd') return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } })
    return zlib.createUnzip() // gzip or zlib, whatever the header says
  })
  const out = layers.at(-1)!
  pipeline([Readable.from(wire), ...layers], () => {}) // its error comes out of `out`, too
  try {
    for await (const chunk of out) yield chunk as Buffer
  } catch (cause) {
    if (cause instanceof ScrapeError) throw cause
    const message = `the body is no valid ${codings.join(', ')} data: ${(cause as Error).message} (${url})`
    throw new ScrapeError('E_ENCODING', message, { url, cause })
  } finally {
    out.destroy()
  }
}

/** Null prototype: a header may be called `__proto__` or `constructor`. */
function plain(raw: RawHeaders): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const name of Object.keys(raw)) headers[name] = headerOf(raw, name) ?? ''
  return headers
}

function tooManyRedirects(url: string, count: number, why: string): ScrapeError {
  return new ScrapeError('E_REDIRECT_LIMIT', `${count} redirects from ${url}: ${why}`, { url })
}
