/**
 * One request: a handler for undici's low-level dispatch that collects one bounded body.
 *
 *   queued ──onRequestStart──► sent ──onResponseStart──► body ──onResponseEnd──► done
 *      └───────────── cancel(), any error ─────────┴──────────────► failed
 *
 * Redirects and files are done with their headers: the body is dropped unread. An error page is done whatever happens to its
 * body: the status is what matters. Errors are thrown out of the callbacks, not passed to `controller.abort`: throwing also
 * stops the parser, which otherwise continues with the data it has read. Bytes that a server sends beyond the announced body are
 * dropped with the connection, as browsers do: they never become part of another page.
 */
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { ScrapeError } from '../../core/errors.ts'
import type { FetchRequest } from '../contract.ts'
import { BodyBytes } from './body-bytes.ts'
import { SMALL_BODY_BYTES_MAX } from './body-room.ts'
import { isRefusedType } from './content-check.ts'
import type { RawHeaders } from './http-page.ts'
import type { ConnectedHandler, Connection } from './pools.ts'
import { checkInformational, checkLength, isLostConnection } from './send.ts'
import { type Outcome, outcomeOf } from './status.ts'

/** How much of an error page is kept. */
export const FAILED_BODY_BYTES_MAX = 65_536

const NO_HEADERS: RawHeaders = Object.freeze(Object.create(null))

/** Makes room for this many bytes of a body; returns a promise if it has to wait. */
export type MakeRoom = (bytes: number) => Promise<void> | undefined

export class Exchange implements ConnectedHandler {
  /** Resolves when there is a response; `outcome` says of which kind. Rejects with the original error, unmapped. */
  readonly done: Promise<void>
  status = 0
  headers: RawHeaders = NO_HEADERS
  outcome: Outcome = 'failed'
  /** `performance.now()` of the response headers and of the latest byte; 0 before. */
  firstByteAtMs = 0
  lastByteAtMs = 0
  isSent = false
  /** The server may have closed this connection just as we wrote: the one failure that is no one's fault and worth a retry. */
  isStale = false
  connection: Connection | undefined

  readonly #request: FetchRequest
  readonly #makeRoom: MakeRoom | undefined
  #bodyBytesMax: number
  #hasRoom = false
  readonly #body = new BodyBytes()
  #announcedBytes = 0
  #informational = 0
  #isOnUsedSocket = false
  #isSettled = false
  #isEnded = false
  #socket: Socket | undefined
  #controller: Dispatcher.DispatchController | undefined
  #resolve!: () => void
  #reject!: (error: unknown) => void

  constructor(request: FetchRequest, bodyBytesMax: number, makeRoom?: MakeRoom) {
    this.#makeRoom = makeRoom
    this.#request = request
    this.#bodyBytesMax = bodyBytesMax
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** The body received so far, still encoded. Call it once: a finished exchange must not hold on to it (`Page.release`). */
  takeBody(): Buffer {
    return this.#body.take()
  }

  get wireBytes(): number {
    return this.#body.length
  }

  cancel(reason: unknown): void {
    if (this.#isSettled) return
    if (this.#controller === undefined) this.#fail(reason)
    else this.#controller.abort(reason as Error)
  }

  get #isBodyDropped(): boolean {
    return this.outcome === 'redirect' || this.outcome === 'file'
  }

  /** A body that arrived with its headers has already been skipped; one that is still to come costs the connection. */
  dropBody(): void {
    if (!this.#isEnded) this.#controller?.abort(new Error('body dropped'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isSettled) throw new Error('cancelled before it was sent')
    this.#controller = controller
    this.isSent = true
    if (this.connection !== undefined) {
      this.#isOnUsedSocket = this.connection.sent++ > 0
      this.#socket = this.connection.socket
    }
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: RawHeaders): void {
    if (status < 200) {
      checkInformational(++this.#informational)
      return
    }
    this.firstByteAtMs = this.lastByteAtMs = performance.now()
    checkLength(headers)
    this.status = status
    this.headers = headers
    this.outcome = outcomeOf(status, headers, this.#request)
    if (this.outcome === 'page' && isRefusedType(status, headers, this.#request.accept)) this.outcome = 'file'
    if (this.#isBodyDropped) this.#settle()
    else if (this.outcome === 'failed') this.#bodyBytesMax = Math.min(this.#bodyBytesMax, FAILED_BODY_BYTES_MAX)
    else this.#checkAnnounced(controller, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isBodyDropped) return
    this.lastByteAtMs = performance.now()
    if (this.wireBytes + chunk.length > this.#bodyBytesMax) throw this.#tooLarge()
    this.#body.add(chunk, this.#announcedBytes)
    if (this.wireBytes > SMALL_BODY_BYTES_MAX) this.#wait(controller, this.#bodyBytesMax)
  }

  onResponseEnd(): void {
    this.#isEnded = true
    // A body that ends with its connection is complete only if the connection was closed properly. undici treats a reset as the
    // end of such a body, so the socket has to be checked.
    const error = this.#socket?.errored
    if (error != null && this.outcome === 'page') this.#fail(error)
    else this.#settle()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: unknown): void {
    this.#isEnded = true
    if (this.status !== 0 && this.outcome === 'failed') this.#settle()
    this.isStale = this.#isOnUsedSocket && this.status === 0 && this.#informational === 0 && isLostConnection(error)
    this.#fail(error)
  }

  #checkAnnounced(controller: Dispatcher.DispatchController, headers: RawHeaders): void {
    const bytes = Number(headers['content-length'] ?? 0)
    if (bytes > this.#bodyBytesMax) throw this.#tooLarge()
    this.#announcedBytes = bytes
    const isEncoded = headers['content-encoding'] !== undefined
    if (bytes > SMALL_BODY_BYTES_MAX) this.#wait(controller, isEncoded ? this.#bodyBytesMax : bytes)
  }

  /** Stops reading a large body until there is room for it. */
  #wait(controller: Dispatcher.DispatchController, bytes: number): void {
    if (this.#hasRoom) return
    this.#hasRoom = true
    const waiting = this.#makeRoom?.(bytes)
    if (waiting === undefined) return
    controller.pause()
    const resume = () => {
      this.lastByteAtMs = performance.now()
      if (!this.#isEnded) controller.resume()
    }
    waiting.then(resume, () => {})
  }

  #tooLarge(): ScrapeError {
    return new ScrapeError('E_TOO_LARGE', `the body is larger than ${this.#bodyBytesMax} bytes`)
  }

  #settle(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#resolve()
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#reject(error)
  }
}
