/** A loopback web server for files: each test defines the responses; it counts requests and sent bytes. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export interface FileServer extends AsyncDisposable {
  readonly url: string
  readonly host: string
  /** Path → response. */
  readonly paths: Map<string, Answer>
  /** Every request, in order: `GET /a bytes=5-`. */
  readonly asked: { path: string; headers: IncomingMessage['headers'] }[]
  /** Body bytes handed to sockets. */
  sent: number
}

export async function startFileServer(paths: Record<string, Answer> = {}, address = '127.0.0.1'): Promise<FileServer> {
  const asked: FileServer['asked'] = []
  const known = new Map(Object.entries(paths))
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    asked.push({ path, headers: request.headers })
    // Counted where it is written: everything the handler wrote, whether on the wire or buffered.
    const write = response.write.bind(response) as (...args: unknown[]) => boolean
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse
    const count = (chunk: unknown) => {
      if (chunk instanceof Uint8Array) files.sent += chunk.length
    }
    response.write = (...args: unknown[]) => {
      count(args[0])
      return write(...args)
    }
    response.end = (...args: unknown[]) => {
      count(args[0])
      return end(...args)
    }
    const answer = known.get(path) ?? known.get('*') ?? ((_request, notFound) => notFound.writeHead(404).end())
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  const { port } = server.address() as AddressInfo
  const files: FileServer = {
    url: `http://${address}:${port}`,
    host: `${address}:${port}`,
    paths: known,
    asked,
    sent: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return files
}

/** Bytes that differ from position to position, so that a wrong offset shows. */
export function content(bytes: number, seed = 1): Buffer {
  const buffer = Buffer.allocUnsafe(bytes)
  let state = seed
  for (let at = 0; at < bytes; at++) {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    buffer[at] = state >> 16
  }
  return buffer
}

export interface FileAnswer {
  etag?: string
  lastModified?: string
  headers?: Record<string, string>
  /** Cuts the connection after this many bytes of the body; called for every request. */
  cutAfter?: () => number | undefined
}

/** Serves one file with ranges, like a well-behaved server, until told to misbehave. */
export function serveFile(file: Buffer, options: FileAnswer = {}): Answer {
  return (request, response) => {
    const { etag, lastModified } = options
    const headers: Record<string, string> = { 'accept-ranges': 'bytes', ...options.headers }
    if (etag !== undefined) headers['etag'] = etag
    if (lastModified !== undefined) headers['last-modified'] = lastModified
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '')
    const ifRange = request.headers['if-range']
    const isSame = ifRange === undefined || ifRange === etag || ifRange === lastModified
    const from = range !== null && isSame ? Number(range[1]) : 0
    if (from >= file.length && from > 0) return void response.writeHead(416, headers).end()
    const body = file.subarray(from)
    if (from > 0) headers['content-range'] = `bytes ${from}-${file.length - 1}/${file.length}`
    response.writeHead(from > 0 ? 206 : 200, { ...headers, 'content-length': body.length })
    const cut = options.cutAfter?.()
    if (cut === undefined) return void response.end(body)
    response.write(body.subarray(0, cut), () => response.destroy())
  }
}
