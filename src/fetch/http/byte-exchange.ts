/** One request for bytes. See byte-stream.ts. */
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { transportError } from '../net/transport-error.ts'
import type { Deadline } from './deadline.ts'
import type { RawHeaders } from './http-page.ts'
import type { ConnectedHandler, Connection } from './pools.ts'
import { checkInformational, isLostConnection } from './send.ts'

/** This much of a body may wait for its reader; beyond that, the socket is paused. */
const QUEUED_BYTES_MAX = 524_288

export interface ByteTimes {
  /** From the request to the response headers, including the connection. */
  headersMsMax: number
  /** Longest pause in the middle of a body. */
  idleMsMax: number
}

/** One request: a handler for undici's low-level dispatch whose body is read at the reader's pace. */
export class ByteExchange implements ConnectedHandler {
  /** Resolves with the headers; `status` and `headers` are set by then. Rejects with the original error, unmapped. */
  readonly done: Promise<void>
  status = 0
  headers: RawHeaders = {}
  isSent = false
  lastByteAtMs = 0
  isStale = false
  connection: Connection | undefined
  readonly #url: string
  readonly #headersTimer: NodeJS.Timeout
  readonly #idle: NodeJS.Timeout
  #isIdleCounted = false
  #socket: Socket | undefined
  #isOnUsedSocket = false
  #informational = 0
  #controller: Dispatcher.DispatchController | undefined
  #chunks: Buffer[] = []
  #queuedBytes = 0
  #isEnded = false
  #failure: { reason: unknown } | undefined
  #wake: (() => void) | undefined
  #resolve!: () => void
  #reject!: (error: unknown) => void

  constructor(url: string, { headersMsMax, idleMsMax }: ByteTimes) {
    this.#url = url
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#headersTimer = setTimeout(() => {
      this.cancel(timeout(url, this.isSent ? 'E_TIMEOUT_HEADERS' : 'E_TIMEOUT_CONNECT', headersMsMax))
    }, headersMsMax)
    this.#idle = setTimeout(() => {
      if (this.#isIdleCounted) this.cancel(timeout(url, 'E_TIMEOUT_BODY', idleMsMax))
    }, idleMsMax)
  }

  cancel(reason: unknown): void {
    this.#fail(reason)
    if (!this.#isEnded) this.#controller?.abort(reason instanceof Error ? reason : new Error(String(reason)))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#failure !== undefined) throw new Error('cancelled before it was sent')
    this.#controller = controller
    this.isSent = true
    if (this.connection === undefined) return
    this.#isOnUsedSocket = this.connection.sent++ > 0
    this.#socket = this.connection.socket
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: RawHeaders): void {
    if (status < 200) {
      checkInformational(++this.#informational)
      return
    }
    clearTimeout(this.#headersTimer)
    this.status = status
    this.headers = headers
    this.#isIdleCounted = true
    this.#idle.refresh()
    this.#resolve()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#queuedBytes += chunk.length
    if (this.#queuedBytes >= QUEUED_BYTES_MAX) {
      this.#isIdleCounted = false
      controller.pause()
    } else this.#idle.refresh()
    this.#wake?.()
  }

  onResponseEnd(): void {
    this.#isEnded = true
    // A body that ends with its connection is complete only if the connection was closed properly; see `Exchange`.
    const error = this.#socket?.errored
    if (error != null) this.#fail(error)
    this.#settle()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: unknown): void {
    this.#isEnded = true
    this.isStale = this.#isOnUsedSocket && this.status === 0 && this.#informational === 0 && isLostConnection(error)
    this.#fail(error)
  }

  /** The exchange ends when the reader stops, for whatever reason. */
  async *body(deadline: Deadline): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        while (this.#chunks.length > 0) {
          const chunks = this.#chunks
          this.#chunks = []
          this.#queuedBytes = 0
          for (const chunk of chunks) yield chunk
          this.#isIdleCounted = true
          this.#idle.refresh()
          if (!this.#isEnded) this.#controller?.resume()
        }
        if (this.#failure !== undefined) throw this.#failure.reason
        if (this.#isEnded) break
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
      if (this.#hasExcess)
        throw new ScrapeError('E_PROTOCOL', `the server sent more than it announced (${this.#url})`, { url: this.#url })
    } catch (error) {
      if (error === deadline.failure?.reason) throw error
      throw transportError(error, { url: this.#url, hasResponse: true })
    } finally {
      deadline.end()
      this.cancel(new Error('the body is not wanted any more'))
    }
  }

  /** The parser notices right after the end of the response, in the same turn of the event loop; see `Exchange`. */
  get #hasExcess(): boolean {
    if (this.#socket?.destroyed !== true) return false
    return this.connection!.unreadBytes > 0 || (this.#socket.errored as Error | null)?.message === 'bad response'
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason }
    this.#settle()
    this.#reject(reason)
  }

  #settle(): void {
    clearTimeout(this.#headersTimer)
    clearTimeout(this.#idle)
    this.#wake?.()
  }
}

export function timeout(url: string, code: ErrorCode, ms: number): ScrapeError {
  return new ScrapeError(code, `nothing within ${ms} ms (${url})`, { url })
}
