/**
 * One request by the TLS library, reported to a handler the way undici does: so limits, deadline, redirects, cookies and decoding
 * use the same code with both.
 */
import type { Dispatcher } from 'undici'
import { ScrapeError } from '../../core/errors.ts'
import type { Profile } from '../identity/profiles.ts'
import type { RawHeaders } from './http-page.ts'
import { type ConnectedHandler, HEAD_BYTES_MAX } from './pools.ts'
import type { OpenWay } from './tls-connections.ts'
import { isFromDoor, isLostInSending, readTlsError, type TlsLibrary } from './tls-library.ts'

type Answer = Awaited<ReturnType<TlsLibrary['fetch']>>
type Reader = ReadableStreamDefaultReader<Uint8Array>

export interface TlsMessage {
  url: URL
  /** As requested: a parsed URL may be spelled differently. */
  href: string
  method: string
  /** Alternating names and values. */
  headers: readonly string[]
  body: string | undefined
  profile: Profile
}

export class TlsRequest implements Dispatcher.DispatchController {
  aborted = false
  paused = false
  reason: Error | null = null
  readonly #message: TlsMessage
  readonly #handler: Dispatcher.DispatchHandler
  readonly #abort = new AbortController()
  #reader: Reader | undefined
  #hasResponse = false
  #onResume: (() => void) | undefined

  constructor(message: TlsMessage, handler: Dispatcher.DispatchHandler) {
    this.#message = message
    this.#handler = handler
  }

  abort(reason: Error): void {
    if (this.aborted) return
    this.#fail(reason)
    this.#abort.abort()
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
    this.#onResume?.()
  }

  /** Never rejects: errors go to the handler. */
  async run(use: <T>(send: (way: OpenWay) => Promise<T>) => Promise<T>, library: TlsLibrary): Promise<void> {
    try {
      // Only the library knows which connection it uses: the error tells whether it was a reused one.
      ;(this.#handler as ConnectedHandler).connection = { socket: undefined, sent: 1, unreadBytes: 0 }
      this.#handler.onRequestStart?.(this, {})
      await use((way) => this.#send(way, library))
    } catch (error) {
      this.#fail(error)
    }
  }

  async #send(way: OpenWay, library: TlsLibrary): Promise<void> {
    const { door, transport, connections } = way
    const { url, href, method, headers, body, profile } = this.#message
    const { hostname } = url
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    const cuts = door.cutsOf(hostname, port)
    try {
      const answer = await library.fetch(href, {
        transport,
        method,
        headers: withConnection(headers, profile),
        ...(body === undefined ? {} : { body }),
        redirect: 'manual',
        compress: false,
        disableDefaultHeaders: true,
        timeout: 0, // the exchange has the only deadline
        signal: this.#abort.signal,
      })
      await this.#receive(answer, () => door.cutsOf(hostname, port) > cuts)
    } catch (error) {
      if (this.aborted || error instanceof ScrapeError) throw error
      const refusal = isFromDoor(error) ? door.failureOf(hostname, port) : undefined
      if (refusal !== undefined) throw new ScrapeError(refusal.code, refusal.message, { ...refusal.details, url: href })
      const isOnUsed = !this.#hasResponse && way.connections === connections
      if (isOnUsed && isLostInSending(error)) throw Object.assign(error as Error, { code: 'ECONNRESET' })
      throw readTlsError(error, this.#hasResponse)
    } finally {
      // Cancelling a body that is not read to the end also closes its connection or stream.
      await this.#reader?.cancel().catch(() => {})
    }
  }

  async #receive(answer: Answer, wasCut: () => boolean): Promise<void> {
    const reader = answer.body?.getReader() as Reader | undefined
    this.#reader = reader
    this.#hasResponse = true
    const headers = readHeaders(answer.headers)
    if (this.aborted) return
    this.#handler.onResponseStart?.(this, answer.status, headers as never, '')
    while (reader !== undefined) {
      if (this.paused) await this.#untilResumed()
      const { done, value } = await reader.read()
      if (this.aborted) return
      if (done) break
      const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      this.#handler.onResponseData?.(this, chunk)
    }
    // A body without a length ends with its connection, and the connection may have been cut.
    const isFramed = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    if (!isFramed && wasCut()) throw new ScrapeError('E_BODY_SHORT', 'the connection was reset in the body')
    this.#handler.onResponseEnd?.(this, {})
  }

  #untilResumed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onResume = resolve
    })
  }

  #fail(error: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.#onResume?.()
    this.reason = error as Error
    this.#handler.onResponseError?.(this, error as Error)
    this.#reader?.cancel().catch(() => {})
  }
}

/** Null prototype: a header may be named `__proto__` or `constructor`. */
function readHeaders(pairs: Iterable<[string, string]>): RawHeaders {
  const headers: Record<string, string | string[]> = Object.create(null)
  let bytes = 0
  for (const [name, value] of pairs) {
    bytes += name.length + value.length + 4
    const known = headers[name]
    headers[name] = known === undefined ? value : [...(typeof known === 'string' ? [known] : known), value]
  }
  if (bytes <= HEAD_BYTES_MAX) return headers
  throw new ScrapeError('E_HEADERS_TOO_LARGE', `${bytes} bytes of response headers`)
}

/** Puts `Connection` where the browser has it in HTTP/1.1; over HTTP/2 the library omits it. */
function withConnection(list: readonly string[], { connectionBefore }: Profile): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < list.length; i += 2) {
    const [name, value] = [list[i]!, list[i + 1]!]
    if (/[^\t\x20-\x7e\x80-\xff]/.test(name + value))
      throw new ScrapeError('E_DEFINITION', `the request header ${JSON.stringify(name)} cannot be sent as it is`)
    pairs.push([name, value])
  }
  const before = pairs.findIndex(([name]) => connectionBefore?.includes(name) ?? true)
  pairs.splice(before === -1 ? pairs.length : before, 0, ['Connection', 'keep-alive'])
  return pairs
}
