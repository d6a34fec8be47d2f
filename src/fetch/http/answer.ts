/** Turns a response into a page, or into the error for its status. */
import { ScrapeError } from '../../core/errors.ts'
import { withPage } from '../../core/failed-page.ts'
import type { Page } from '../../core/page.ts'
import type { FetchRequest } from '../contract.ts'
import type { BodyPlace } from './body-room.ts'
import { detectCharset, parseContentType } from './charset.ts'
import { contentTypeError } from './content-check.ts'
import { decodeBody, parseContentEncoding } from './decode.ts'
import { type Exchange, FAILED_BODY_BYTES_MAX, type MakeRoom } from './exchange.ts'
import { HttpPage, headerOf } from './http-page.ts'
import { statusError } from './status.ts'

/** How we got to the response. */
export interface Way {
  readonly request: FetchRequest
  /** The final URL, after redirects. */
  readonly url: string
  readonly redirects: readonly string[]
  /** `performance.now()` of the start. */
  readonly startedAtMs: number
  /** For large bodies; the page holds it until it is released. */
  readonly place?: BodyPlace | undefined
  readonly makeRoom?: MakeRoom | undefined
}

export interface AnswerLimits {
  bodyBytesMax: number
  retryAfterMsMax: number
}

/** Returns a promise only if decoding needs a thread. Throws `E_ENCODING`, `E_CHARSET`, `E_TOO_LARGE`, `E_PROTOCOL`. */
export function toPage(
  answer: Exchange,
  way: Way,
  { bodyBytesMax }: AnswerLimits,
  nowMs: number,
): Page | Promise<Page> {
  const endedAtMs = performance.now()
  const body = decode(answer, bodyBytesMax, way.makeRoom)
  if (body instanceof Promise) return body.then((decoded) => readPage(answer, way, decoded, endedAtMs, nowMs))
  return readPage(answer, way, body, endedAtMs, nowMs)
}

/** The error for a status, with as much of its page as arrived: the status is what matters, the page helps to understand it. */
export function toFailure(answer: Exchange, way: Way, { retryAfterMsMax }: AnswerLimits, nowMs: number): ScrapeError {
  const error = statusError(answer.status, answer.headers, { url: way.url, nowMs, retryAfterMsMax })
  const endedAtMs = performance.now()
  const type = parseContentType(headerOf(answer.headers, 'content-type') ?? '')
  let body = Buffer.alloc(0)
  let charset = 'utf-8'
  try {
    // At most 64 KiB were read and at most 1 MiB may come out, so this is never a promise.
    const decoded = decode(answer, FAILED_BODY_BYTES_MAX * 16) as Buffer
    body = Buffer.from(decoded.subarray(0, FAILED_BODY_BYTES_MAX))
    charset = detectCharset(body, type)
  } catch {
    // Damaged, or cut off where we stopped reading: then there is no page to show.
  }
  return withPage(error, makePage(answer, way, { body, charset, contentType: type.essence, endedAtMs, nowMs }))
}

/** The error for a response whose type is not a page's; its body was not read. */
export function toFile(answer: Exchange, way: Way, nowMs: number): ScrapeError {
  const contentType = parseContentType(headerOf(answer.headers, 'content-type') ?? '').essence
  const nothing = { body: Buffer.alloc(0), charset: 'utf-8' }
  return contentTypeError(makePage(answer, way, { ...nothing, contentType, endedAtMs: performance.now(), nowMs }))
}

function readPage(answer: Exchange, way: Way, body: Buffer, endedAtMs: number, nowMs: number): Page {
  way.place?.shrinkTo(body.length)
  const type = parseContentType(headerOf(answer.headers, 'content-type') ?? '')
  if (type.markup === 'html' && body[0] === 0x1f && body[1] === 0x8b) {
    throw new ScrapeError('E_ENCODING', 'gzip data instead of HTML, not declared in the headers')
  }
  return makePage(answer, way, {
    body,
    charset: detectCharset(body, type),
    contentType: type.essence,
    endedAtMs,
    nowMs,
  })
}

interface Reading {
  body: Buffer
  charset: string
  contentType: string
  endedAtMs: number
  nowMs: number
}

function makePage(answer: Exchange, way: Way, reading: Reading): Page {
  return new HttpPage({
    requestedUrl: way.request.url,
    url: way.url,
    redirects: way.redirects,
    status: answer.status,
    headers: answer.headers,
    body: reading.body,
    contentType: reading.contentType,
    charset: reading.charset,
    wireBytes: answer.wireBytes,
    place: way.place,
    timings: {
      firstByteMs: answer.firstByteAtMs - way.startedAtMs,
      totalMs: reading.endedAtMs - way.startedAtMs,
    },
    fetchedAtMs: reading.nowMs,
  })
}

function decode(answer: Exchange, bytesMax: number, makeRoom?: MakeRoom): Buffer | Promise<Buffer> {
  const { headers, status } = answer
  const body = answer.takeBody()
  if (headers['content-encoding'] === undefined) return body
  const codings = parseContentEncoding(String(headers['content-encoding']))
  if (codings.length === 0) return body
  // An empty body is not valid gzip, but common for empty responses whose headers say that nothing follows.
  const isFramed = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  if (body.length === 0 && (isFramed || status === 204)) return body
  return decodeBody(body, codings, bytesMax, makeRoom)
}
