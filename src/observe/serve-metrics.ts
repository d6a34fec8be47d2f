/**
 * `--metrics :9090`: a small HTTP server with `/metrics`, `/livez`, `/healthz` and the snapshot of the machine, on loopback by
 * default.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ScrapeError } from '../core/errors.ts'
import { isFromForeignPage } from '../core/foreign-page.ts'
import { isLoopbackHost, isLoopbackHostHeader } from '../core/loopback.ts'
import type { Metrics } from './metrics.ts'

interface ListenAddress {
  host: string
  port: number
  isLoopback: boolean
}

export interface MetricsServerOptions {
  /** `:9090`, `127.0.0.1:9090`, `[::1]:9090`; `0.0.0.0:9090` opens it to the network, with a warning. */
  address: string
  metrics: Pick<Metrics, 'render' | 'contentType'>
  /** Additional content of `/healthz`. If it has a `problem`, the status is 503. */
  health?: () => { problem?: string; [name: string]: unknown }
  /** State of the machine, for programs: `/snapshot`, and its parts separately. */
  snapshot?: () => Promise<MachineReport>
  /** Receives one line if the address is not loopback. */
  warn?: (line: string) => void
  now?: () => number
}

interface MachineReport {
  cpu: object
  memory: object
  batchSize: number
  workerCapacity: number
}

/** Paths of the snapshot API, and the part of the report that each returns. */
const MACHINE: Readonly<Record<string, (report: MachineReport) => unknown>> = {
  '/snapshot': (report) => report,
  '/cpu': ({ cpu }) => cpu,
  '/memory': ({ memory }) => memory,
  '/batch-size': ({ batchSize }) => ({ batchSize }),
  '/worker-capacity': ({ workerCapacity }) => ({ workerCapacity }),
}

interface MetricsServer extends AsyncDisposable {
  /** `http://127.0.0.1:9090` */
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

const CONNECTIONS_MAX = 64
const REQUEST_MS_MAX = 10_000

/** Parses `HOST:PORT` or `:PORT`. Throws `E_OPTION`. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:(\[[0-9a-f:.]+\]|[a-z0-9.-]*):)?(\d{1,5})$/i.exec(text.trim())
  const port = Number(match?.[2])
  if (match === null || port > 65_535) {
    throw new ScrapeError('E_OPTION', `--metrics ${JSON.stringify(text)} is not an address`, {
      fix: 'Give a port such as :9090, or HOST:PORT such as 127.0.0.1:9090.',
    })
  }
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '') || '127.0.0.1'
  return { host, port, isLoopback: isLoopbackHost(host) }
}

export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const address = parseListenAddress(options.address)
  if (!address.isLoopback) {
    options.warn?.(`metrics on ${options.address} can be read by anyone who reaches this machine: they need no key`)
  }
  const now = options.now ?? Date.now
  const startedAtMs = now()
  // `import 'node:http'` costs 15 MB more than this: it also loads the undici inside Node.
  const { createServer } = process.getBuiltinModule('node:http')
  const server = createServer(
    { requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX },
    (request, response) => {
      answer(request, response).catch(() => response.destroy())
    },
  )
  server.maxConnections = CONNECTIONS_MAX

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A web page can point its own host name at 127.0.0.1 and read the response; such a request carries that name.
    const { headers } = request
    if (address.isLoopback && (!isLoopbackHostHeader(headers.host) || isFromForeignPage(headers))) {
      return send(response, 403, 'text/plain', 'this server answers to localhost only\n')
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(response, 405, 'text/plain', 'only GET\n')
    }
    const [path] = (request.url ?? '/').split('?', 1)
    if (path === '/metrics') return send(response, 200, options.metrics.contentType, await options.metrics.render())
    // Queries nothing: a liveness probe must not kill the process because a database is down, or because it is draining.
    if (path === '/livez') return send(response, 200, 'application/json', `${JSON.stringify({ status: 'ok' })}\n`)
    if (path === '/healthz') {
      const health = options.health?.() ?? {}
      const isWell = health.problem === undefined
      const status = isWell ? 'ok' : 'unavailable'
      const body = { status, uptimeSeconds: Math.round((now() - startedAtMs) / 1000), ...health }
      return send(response, isWell ? 200 : 503, 'application/json', `${JSON.stringify(body)}\n`)
    }
    const part = Object.hasOwn(MACHINE, path!) ? MACHINE[path!] : undefined
    if (part !== undefined && options.snapshot !== undefined)
      return send(response, 200, 'application/json', `${JSON.stringify(part(await options.snapshot()))}\n`)
    return send(
      response,
      404,
      'text/plain',
      `there is /metrics, /livez, /healthz, ${Object.keys(MACHINE).join(', ')}\n`,
    )
  }

  await listen(server, address)
  server.unref() // metrics must not keep the process alive
  const { port } = server.address() as AddressInfo
  const shownHost = address.host.includes(':') ? `[${address.host}]` : address.host

  let closing: Promise<void> | undefined
  function close(): Promise<void> {
    closing ??= new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
    return closing
  }
  return { url: `http://${shownHost}:${port}`, port, close, [Symbol.asyncDispose]: close }
}

function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(cause, host, port)))
    server.listen({ host, port }, () => {
      server.removeAllListeners('error')
      server.on('error', () => {})
      resolve()
    })
  })
}

function listenError(cause: NodeJS.ErrnoException, host: string, port: number): ScrapeError {
  const where = `${host}:${port}`
  if (cause.code === 'EADDRINUSE') {
    return new ScrapeError('E_OPTION', `--metrics: port ${port} is taken by another program`, {
      cause,
      fix: `Choose another, such as --metrics :${port + 1}, or stop the program that \`ss -ltnp 'sport = :${port}'\` names.`,
    })
  }
  const fix =
    cause.code === 'EACCES'
      ? 'Ports below 1024 need special rights; choose a higher one, such as :9090.'
      : 'Give an address of this machine, such as 127.0.0.1:9090.'
  return new ScrapeError('E_OPTION', `--metrics: cannot listen on ${where}: ${cause.message}`, { cause, fix })
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(body)
}
