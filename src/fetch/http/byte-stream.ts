/**
 * A URL as a stream of bytes, for files: it uses the same pools, guards and redirect rules as pages, and is never held in full.
 *
 *   open ──▶ hop ──redirect──▶ hop … ──▶ 200 · 206 · 416 ──▶ body, chunk by chunk; a slow reader stops the socket
 *
 * Three timeouts: for the headers of each hop, between two chunks (only while we are willing to read), and for the whole.
 */
import { pipeline, Readable } from 'node:stream'
import { ScrapeError } from '../../core/errors.ts'
import { URL_BYTES_MAX } from '../../core/url.ts'
import type { ByteAnswer, ByteRequest, ByteSource } from '../contract.ts'
import { transportError } from '../net/transport-error.ts'
import { ByteExchange, type ByteTimes, timeout } from './byte-exchange.ts'
import { Deadline } from './deadline.ts'
import { parseContentEncoding } from './decode.ts'
import { headerOf, type RawHeaders } from './http-page.ts'
import { openPools, type PoolsOptions } from './pools.ts'
import { redirectWalk, type Trail } from './redirect-walk.ts'
import { checkLength, send, splitUrl } from './send.ts'
import { outcomeOf, statusError } from './status.ts'

export interface ByteStreamOptions extends PoolsOptions, ByteTimes {
  /** Honest: who we are and where to complain. */
  userAgent: string
  /** Timeout of one exchange, redirects included. */
  totalMsMax: number
  redirectsMax: number
  /** A longer Retry-After is reduced to this. */
  retryAfterMsMax: number
  /** Epoch milliseconds. */
  now?: () => number
}

/** Headers about message framing or ranges, which only we may set. */
const OURS =
  /^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|te|trailer|proxy-.*|range|if-range|accept-encoding)$/i

export function openByteStream(options: ByteStreamOptions): ByteSource {
  const pools = openPools(options)
  const now = options.now ?? Date.now

  /** All headers of every hop are created here. The caller's are for the first origin only. */
  function headersFor({ headers, range }: ByteRequest, isHome: boolean, cookies: string): string[] {
    const given = isHome ? Object.entries(headers).filter(([name]) => !OURS.test(name)) : []
    const all: Record<string, string> = { 'user-agent': options.userAgent, accept: '*/*', ...Object.fromEntries(given) }
    all['accept-encoding'] = 'identity' // ranges count encoded bytes, so the encoding must be that of the file itself
    if (range !== undefined) {
      all['range'] = `bytes=${range.from}-`
      all['if-range'] = range.validator
    }
    if (cookies !== '') all['cookie'] = [all['cookie'], cookies].filter(Boolean).join('; ')
    return Object.entries(all).flat()
  }

  function sendHop(request: ByteRequest, { url, isHome, cookies }: Trail, deadline: Deadline): Promise<ByteExchange> {
    const { origin, path } = splitUrl(url)
    const headers = headersFor(request, isHome, cookies?.headerFor(new URL(url)) ?? '')
    const dispatch = () => {
      const hop = new ByteExchange(url, options)
      pools.get(origin).dispatch({ path, method: 'GET', headers }, hop)
      return hop
    }
    return send(dispatch, url, deadline)
  }

  async function follow(request: ByteRequest, deadline: Deadline): Promise<{ hop: ByteExchange; url: string }> {
    const { url, range, onRedirect } = request
    const asked = range === undefined ? { url } : { url, headers: { range: 'bytes' }, accept: [416] }
    const trail: Trail = { request, url, redirects: [], cookies: undefined, body: undefined, isHome: true }
    const step = redirectWalk(trail, options.redirectsMax)
    for (;;) {
      const hop = await sendHop(request, trail, deadline)
      if (outcomeOf(hop.status, hop.headers, asked) !== 'redirect') return { hop, url: trail.url }
      hop.cancel(new Error('body dropped'))
      step(hop)
      await onRedirect?.(trail.url)
      if (deadline.failure !== undefined) throw deadline.failure.reason
    }
  }

  function answerOf(hop: ByteExchange, url: string, hasRange: boolean, deadline: Deadline): ByteAnswer {
    const { status, headers } = hop
    const isWanted = status === 200 || status === 203 || (hasRange && (status === 206 || status === 416))
    if (!isWanted) throw statusError(status, headers, { url, nowMs: now(), retryAfterMsMax: options.retryAfterMsMax })
    const codings = parseContentEncoding(headerOf(headers, 'content-encoding') ?? '')
    checkLength(headers)
    const length = headerOf(headers, 'content-length')
    const isEncoded = codings.length > 0
    const wire = hop.body(deadline)
    return {
      status,
      url,
      headers: plain(headers),
      isEncoded,
      length: isEncoded || length === undefined ? undefined : Number(length),
      body: isEncoded ? decoded(wire, codings, url) : wire,
      close: () => {
        deadline.end()
        hop.cancel(new Error('the body is not wanted any more'))
      },
    }
  }

  return {
    async open(request, signal) {
      if (signal.aborted) throw signal.reason
      const { url } = request
      if (url.length > URL_BYTES_MAX) throw new ScrapeError('E_URL_INVALID', `a URL of ${url.length} bytes`, { url })
      const { totalMsMax } = options
      const deadline = new Deadline(url, totalMsMax, signal, () => timeout(url, 'E_TIMEOUT_TOTAL', totalMsMax))
      let hop: ByteExchange | undefined
      try {
        const found = await follow(request, deadline)
        hop = found.hop
        return answerOf(hop, found.url, request.range !== undefined, deadline)
      } catch (error) {
        deadline.end()
        hop?.cancel(new Error('body dropped'))
        if (error === deadline.failure?.reason || error === signal.reason) throw error
        throw transportError(error, { url, hasResponse: hop !== undefined })
      }
    },
    [Symbol.asyncDispose]: () => pools[Symbol.asyncDispose](),
  }
}

/** A damaged body is an error, never a file. The reader counts the decoded bytes, chunk by chunk. */
async function* decoded(wire: AsyncIterable<Buffer>, codings: readonly string[], url: string): AsyncGenerator<Buffer> {
  const zlib = process.getBuiltinModule('node:zlib')
  const layers = codings.toReversed().map((coding) => {
    if (coding === 'br') return zlib.createBrotliDecompress()
    if (coding === 'zstd') return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } })
    return zlib.createUnzip() // gzip or zlib, whatever the header says
  })
  const out = layers.at(-1)!
  pipeline([Readable.from(wire), ...layers], () => {}) // `out` reports its errors as well
  try {
    for await (const chunk of out) yield chunk as Buffer
  } catch (cause) {
    if (cause instanceof ScrapeError) throw cause
    const message = `the body is not valid ${codings.join(', ')} data: ${(cause as Error).message} (${url})`
    throw new ScrapeError('E_ENCODING', message, { url, cause })
  } finally {
    out.destroy()
  }
}

/** Null prototype: a header may be named `__proto__` or `constructor`. */
function plain(raw: RawHeaders): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const name of Object.keys(raw)) headers[name] = headerOf(raw, name) ?? ''
  return headers
}
