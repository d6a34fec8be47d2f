/** One request for bytes on the wire, and the clock of the whole it belongs to. See byte-stream.ts. */
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { transportError } from '../net/transport-error.ts'
import type { RawHeaders } from './http-page.ts'
import type { ConnectedHandler, Connection } from './pools.ts'

/** So much of a body may wait for its reader; beyond, the socket is not read. */
const QUEUED_BYTES_MAX = 524_288
const INFORMATIONAL_MAX = 16

/** The deadline of the whole, and the caller's signal: whichever comes first ends the hop under way. */
export class Clock {
  failure: { reason: unknown } | undefined
  #hop: ByteExchange | undefined
  readonly #timer: NodeJS.Timeout
  readonly #signal: AbortSignal
  readonly #onAbort = () => this.#fail(this.#signal.reason)

  constructor(url: string, totalMsMax: number, signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort)
    this.#timer = setTimeout(() => this.#fail(timeout(url, 'E_TIMEOUT_TOTAL', totalMsMax)), totalMsMax)
  }

  watch(hop: ByteExchange): void {
    this.#hop = hop
  }

  #fail(reason: unknown): void {
    this.failure ??= { reason }
    this.#hop?.cancel(reason)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

/** One request on the wire: a handler of undici's low-level dispatch whose body is read at the reader's pace. */
export class ByteExchange implements ConnectedHandler {
  /** Resolves with the headers; `status` and `headers` are there then. Rejects with whatever went wrong, unmapped. */
  readonly head: Promise<void>
  status = 0
  headers: RawHeaders = {}
  isSent = false
  /** The server may have closed this connection just as we wrote: nobody's failure, and worth another go. */
  isStale = false
  connection: Connection | undefined
  readonly #url: string
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

  constructor(url: string, idleMsMax: number) {
    this.#url = url
    this.head = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
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
      if (++this.#informational <= INFORMATIONAL_MAX) return
      throw new ScrapeError('E_PROTOCOL', `more than ${INFORMATIONAL_MAX} informational responses`)
    }
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
    // A body that ends with its connection is whole only if the connection was closed in order; see `Exchange`.
    const error = this.#socket?.errored
    if (error != null) this.#fail(error)
    this.#settle()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: unknown): void {
    this.#isEnded = true
    this.isStale = this.#isOnUsedSocket && this.status === 0 && this.#informational === 0 && isLostConnection(error)
    this.#fail(error)
  }

  /** Ends the exchange when it is left, however that happens. */
  async *body(clock: Clock): AsyncGenerator<Buffer> {
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
      if (error === clock.failure?.reason) throw error
      throw transportError(error, { url: this.#url, hasResponse: true })
    } finally {
      clock.end()
      this.cancel(new Error('the body is not wanted any more'))
    }
  }

  /** The parser notices right after the end of the response, in the same turn; see `Exchange`. */
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
    clearTimeout(this.#idle)
    this.#wake?.()
  }
}

function isLostConnection(error: unknown): boolean {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'ECONNRESET' || code === 'EPIPE' || (code === 'UND_ERR_SOCKET' && !message?.startsWith('bad '))
}

export function timeout(url: string, code: ErrorCode, ms: number): ScrapeError {
  return new ScrapeError(code, `nothing within ${ms} ms (${url})`, { url })
}
