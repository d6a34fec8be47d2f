/**
 * A small HTTP/1.1 server on plain sockets, for the demo site: GET and HEAD, keep-alive, pipelining, limits, timeouts.
 *
 * It exists because a benchmark shares its two cores with the server it crawls: a cached page costs 16–24 µs of CPU here and
 * 22–28 µs with `node:http` (16 and 64 connections, 18 KB), and because it counts requests in flight and delays all responses
 * alike. It reads no bodies and only serves well-meaning clients on 127.0.0.1.
 *
 *     idle ──bytes──▶ reading ──blank line──▶ answering ──handed to the socket──▶ idle (or reading, if more arrived)
 *       └─ 65 s: close    └─ 10 s: 408            └─ a client that does not read for 65 s: close
 */
import { createServer, type Socket } from 'node:net'

/** One complete response, head and body in one Buffer, so that it is sent in one write; may be sent many times. */
export interface Reply {
  readonly status: number
  readonly bytes: Buffer
  readonly headBytes: number
  /** Position of the 29 bytes of the date, which are written each time it is sent. */
  readonly dateAt: number
  /** Wait this long before sending. */
  readonly delayMs: number
}

export interface HttpServerOptions {
  /** 0 picks a free port. */
  readonly port: number
  /** Called with the request target ("/a?b=c"), once per request, in order of arrival. */
  readonly handle: (target: string) => Reply
  /** From the first byte of a request to its blank line. */
  readonly requestMsMax?: number
  readonly idleMsMax?: number
}

export interface HttpServer extends AsyncDisposable {
  readonly port: number
  /** Maximum number of requests received but not yet answered at one moment; always 1 without delays. */
  readonly maxInFlight: number
}

const HEADER_BYTES_MAX = 16 * 1024
const CONNECTIONS_MAX = 4096
/** How often timeouts are checked: one timer for all connections instead of one each. */
const SWEEP_MS = 500

const REASONS: Record<number, string> = {
  200: 'OK',
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
}

export interface ReplyParts {
  readonly status?: number
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
  readonly delayMs?: number
}

export function reply({ status = 200, type = 'text/html', headers = {}, body, delayMs = 0 }: ReplyParts): Reply {
  const content = typeof body === 'string' ? Buffer.from(body) : body
  const start = `HTTP/1.1 ${status} ${REASONS[status]}\r\nDate: `
  let head = `${start}${' '.repeat(29)}\r\nServer: sluice-demo\r\nContent-Type: ${type}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  head += `Content-Length: ${content.length}\r\n\r\n`
  const bytes = Buffer.allocUnsafe(head.length + content.length)
  bytes.write(head, 'latin1')
  content.copy(bytes, head.length)
  return { status, bytes, headBytes: head.length, dateAt: start.length, delayMs }
}

/** A request that cannot be answered: the status says why, and the connection ends after it. */
class Refusal extends Error {
  readonly status: number
  constructor(status: number) {
    super(REASONS[status])
    this.status = status
  }
}

interface Request {
  readonly target: string
  readonly isHead: boolean
  readonly isLast: boolean
}

/** State shared by all connections of one server. */
interface Shared {
  readonly handle: (target: string) => Reply
  readonly requestMsMax: number
  readonly idleMsMax: number
  nowMs: number
  date: string
  inFlight: number
  maxInFlight: number
}

class Connection {
  readonly #socket: Socket
  readonly #shared: Shared
  /** Received but not yet answered. */
  #text = ''
  #isAnswering = false
  #hasEnded = false
  #timer: NodeJS.Timeout | undefined
  #deadlineMs: number
  /** Clients repeat their headers from request to request: identical text need not be parsed again. */
  #seenHeaders: string | undefined
  #seenIsLast = false

  constructor(socket: Socket, shared: Shared) {
    this.#socket = socket
    this.#shared = shared
    this.#deadlineMs = shared.nowMs + shared.idleMsMax
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('drain', () => {
      this.#isAnswering = false
      this.#proceed()
    })
    socket.on('end', () => {
      this.#hasEnded = true
      this.#proceed()
    })
    socket.on('error', () => socket.destroy()) // a client that disconnects is normal
    socket.on('close', () => {
      if (this.#timer === undefined) return
      clearTimeout(this.#timer)
      this.#shared.inFlight--
    })
  }

  /** Ends a connection that has timed out. */
  sweep(nowMs: number): void {
    if (nowMs < this.#deadlineMs || this.#timer !== undefined) return
    if (this.#text !== '' && !this.#isAnswering) this.#refuse(408)
    else this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    if (this.#socket.writableEnded) return // the last response is out: further input is drained, not parsed
    if (this.#text === '' && !this.#isAnswering) this.#deadlineMs = this.#shared.nowMs + this.#shared.requestMsMax
    this.#text += chunk.toString('latin1')
    if (this.#isAnswering && this.#text.length > HEADER_BYTES_MAX) this.#socket.pause()
    else this.#proceed()
  }

  /** Answers the received requests, one after the other. */
  #proceed(): void {
    try {
      while (!this.#isAnswering && this.#text !== '') {
        const request = this.#next()
        if (request === undefined) break
        this.#answer(request)
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.#refuse(error.status)
      return
    }
    if (this.#isAnswering) return
    if (this.#hasEnded) this.#socket.end()
    else if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Removes the next request from `#text`; `undefined` if it has not arrived completely. */
  #next(): Request | undefined {
    if (this.#text.startsWith('\r\n')) this.#text = this.#text.slice(2) // RFC 9112 § 2.2: a stray line before a request
    const end = this.#text.indexOf('\r\n\r\n')
    if (end > HEADER_BYTES_MAX || (end === -1 && this.#text.length > HEADER_BYTES_MAX)) throw new Refusal(431)
    if (end === -1) return undefined
    const lineEnd = this.#text.indexOf('\r\n')
    const line = this.#text.slice(0, lineEnd)
    const headers = this.#text.slice(lineEnd, end)
    this.#text = this.#text.length === end + 4 ? '' : this.#text.slice(end + 4)

    const parts = /^([A-Z]+) (?:http:\/\/[\w.:[\]-]+)?(\/[!-~]*) HTTP\/(\d)\.(\d)$/.exec(line)
    if (parts === null) throw new Refusal(400)
    if (parts[3] !== '1') throw new Refusal(505)
    const isOld = parts[4] === '0'
    if (headers !== this.#seenHeaders) {
      this.#seenIsLast = readHeaders(headers, isOld)
      this.#seenHeaders = headers
    }
    if (parts[1] !== 'GET' && parts[1] !== 'HEAD') throw new Refusal(405)
    return { target: parts[2]!, isHead: parts[1] === 'HEAD', isLast: isOld || this.#seenIsLast }
  }

  #answer(request: Request): void {
    const answer = this.#shared.handle(request.target)
    this.#isAnswering = true
    this.#shared.inFlight++
    if (this.#shared.inFlight > this.#shared.maxInFlight) this.#shared.maxInFlight = this.#shared.inFlight
    if (answer.delayMs === 0) {
      this.#send(request, answer)
      return
    }
    // Node keeps one list per duration and one timer for its head: a thousand equal delays cost a thousand list entries.
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#send(request, answer)
      this.#proceed()
    }, answer.delayMs)
  }

  #send(request: Request, { bytes, headBytes, dateAt }: Reply): void {
    this.#shared.inFlight--
    this.#deadlineMs = this.#shared.nowMs + this.#shared.idleMsMax
    bytes.write(this.#shared.date, dateAt, 'latin1')
    const whole = request.isHead ? bytes.subarray(0, headBytes) : bytes
    if (!request.isLast) {
      this.#isAnswering = !this.#socket.write(whole) // if the client reads slowly, 'drain' continues
      return
    }
    this.#text = ''
    this.#socket.write(Buffer.concat([whole.subarray(0, headBytes - 2), Buffer.from('Connection: close\r\n\r\n')]))
    this.#socket.end(whole.subarray(headBytes))
  }

  /** Sends the reason and ends. The socket stays readable for a moment: closing it at once could cut off the response. */
  #refuse(status: number): void {
    this.#isAnswering = true
    this.#text = ''
    this.#deadlineMs = this.#shared.nowMs + 2 * SWEEP_MS
    const { bytes, dateAt } = reply({
      status,
      type: 'text/plain',
      headers: { Connection: 'close', ...(status === 405 ? { Allow: 'GET, HEAD' } : {}) },
      body: `${REASONS[status]}\n`,
    })
    bytes.write(this.#shared.date, dateAt, 'latin1')
    this.#socket.end(bytes)
  }
}

/** Checks the header lines and returns whether the connection ends after this request. */
function readHeaders(lines: string, isOld: boolean): boolean {
  let isLast = false
  let hosts = 0
  for (const line of lines.split('\r\n').slice(1)) {
    const header = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/.exec(line)
    if (header === null) throw new Refusal(400)
    const name = header[1]!.toLowerCase()
    const value = header[2]!.toLowerCase()
    if (name === 'host') hosts++
    else if (name === 'connection') isLast ||= value.split(/[ \t]*,[ \t]*/).includes('close')
    // A body would be parsed as the next request: rejecting it is the safe way not to support it.
    else if (name === 'transfer-encoding' || (name === 'content-length' && value !== '0')) throw new Refusal(400)
  }
  if (hosts > 1 || (hosts === 0 && !isOld)) throw new Refusal(400)
  return isLast
}

/** Listens on 127.0.0.1 until it is disposed of, which also closes every connection. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { requestMsMax = 10_000, idleMsMax = 65_000, handle } = options
  const now = () => ({ nowMs: Date.now(), date: new Date().toUTCString() })
  const shared: Shared = { handle, requestMsMax, idleMsMax, inFlight: 0, maxInFlight: 0, ...now() }
  const connections = new Map<Socket, Connection>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    connections.set(socket, new Connection(socket, shared))
    socket.once('close', () => connections.delete(socket))
  })
  server.maxConnections = CONNECTIONS_MAX
  const sweeper = setInterval(() => {
    Object.assign(shared, now())
    for (const connection of connections.values()) connection.sweep(shared.nowMs)
  }, SWEEP_MS).unref()

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', 1024, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port')
  let closing: Promise<void> | undefined
  const close = () =>
    new Promise<void>((resolve) => {
      clearInterval(sweeper)
      server.close(() => resolve())
      for (const socket of connections.keys()) socket.destroy()
    })
  return {
    port: address.port,
    get maxInFlight() {
      return shared.maxInFlight
    },
    async [Symbol.asyncDispose]() {
      closing ??= close()
      await closing
    },
  }
}
