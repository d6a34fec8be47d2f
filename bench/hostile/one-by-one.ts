/** Proxies and HTTP/2: their misbehaviour affects a whole command, so each case is one `sluice fetch`. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createSecureServer, type Http2Session, constants as http2, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { AUTHORITY, CERTIFICATES } from '../../test/site/certificates.ts'
import { runMeasured } from '../process-tree.ts'
import type { Outcome } from './cases.ts'
import { type End, type Family, familyOf, RUN_MS_MAX, SLUICE } from './family.ts'

interface SingleCase {
  readonly family: 'proxies' | 'HTTP/2'
  readonly name: string
  readonly expect: Outcome
  /** Starts the server and returns what to fetch, and how. */
  readonly open: (folder: string) => Promise<OpenCase>
}

interface OpenCase extends AsyncDisposable {
  readonly url: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

type Proxy = (socket: Socket) => void
const says =
  (answer: string): Proxy =>
  (socket) =>
    socket.end(answer, 'latin1')

/** Opens the tunnel, and is itself the site behind it, for everything but robots.txt. */
const tunnel =
  (behave: (socket: Socket) => void): Proxy =>
  (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    socket.on('data', (said) => {
      if (said.includes('/robots.txt')) socket.write('HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n')
      else behave(socket)
    })
  }

/** A proxy that does this with the first bytes it receives. */
const proxy = (name: string, expect: Outcome, scheme: 'http' | 'socks5', behave: Proxy): SingleCase => ({
  family: 'proxies',
  name: `${scheme} ${name}`,
  expect,
  async open() {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      socket.once('data', () => behave(socket))
    })
    const port = await listen(server)
    return {
      url: 'http://site.test/page',
      args: ['--proxy', `${scheme}://127.0.0.1:${port}`],
      async [Symbol.asyncDispose]() {
        for (const socket of sockets) socket.destroy()
        server.close()
        await once(server, 'close')
      },
    }
  },
})

async function listen(server: { listen(port: number, host: string): unknown; address(): unknown }): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server as never, 'listening')
  return (server.address() as AddressInfo).port
}

type Stream = (stream: ServerHttp2Stream, session: Http2Session) => void
const PAGE = { ':status': 200, 'content-type': 'text/html' }

/** A server that supports only HTTP/2, fetched with the one identity that supports it. */
const http2Page = (name: string, expect: Outcome, behave: Stream): SingleCase => ({
  family: 'HTTP/2',
  name,
  expect,
  async open(folder) {
    const sessions = new Set<Http2Session>()
    const server = createSecureServer({ ...CERTIFICATES.good, allowHTTP1: false })
    server.on('session', (session) => sessions.add(session.on('error', () => {})))
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      if (headers[':path'] !== '/robots.txt') return behave(stream, stream.session!)
      stream.respond({ ':status': 404 }, { endStream: true })
    })
    const port = await listen(server)
    const authority = join(folder, 'authority.pem')
    writeFileSync(authority, AUTHORITY)
    return {
      url: `https://localhost:${port}/page`,
      args: ['--identity', 'tls'],
      env: { SSL_CERT_FILE: authority },
      async [Symbol.asyncDispose]() {
        for (const session of sessions) session.destroy()
        server.close()
        await once(server, 'close')
      },
    }
  },
})

const endless: Stream = (stream) => {
  stream.respond(PAGE)
  const piece = Buffer.alloc(65_536, 'x')
  const more = () => {
    while (!stream.destroyed && stream.write(piece));
    if (!stream.destroyed) stream.once('drain', more)
  }
  more()
}

/** `stream.close` would end the body first, which would then be complete. */
const reset: Stream = (stream) => stream.destroy(new Error('reset'))

/** After some of the body has been sent. */
const midway =
  (then: Stream, headers: Record<string, string> = {}): Stream =>
  (stream, session) => {
    stream.respond({ ...PAGE, ...headers })
    stream.write(`<h1>half a page</h1>${'x'.repeat(10_000)}`, () => setTimeout(() => then(stream, session), 50))
  }

const SINGLE_CASES: readonly SingleCase[] = [
  proxy('asks for a login', 'E_PROXY_REFUSED', 'http', says('HTTP/1.1 407 Log in\r\nProxy-Authenticate: Basic\r\n\r\n')),
  proxy('refuses', 'E_PROXY', 'http', says('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n')),
  proxy('cannot reach the site', 'E_CONNECTION', 'http', says('HTTP/1.1 502 Bad gateway\r\nContent-Length: 0\r\n\r\n')),
  proxy('answers without end', 'E_PROXIES_DOWN', 'http', says('x'.repeat(1_000_000))),
  proxy('resets', 'E_PROXIES_DOWN', 'http', (socket) => socket.resetAndDestroy()),
  proxy('hangs', 'E_TIMEOUT_CONNECT', 'http', () => {}),
  proxy('opens the tunnel and says nonsense', 'E_PROTOCOL', 'http', tunnel((socket) => socket.end('nonsense\r\n\r\n'))),
  proxy('opens the tunnel and resets', 'E_CONNECTION', 'http', tunnel((socket) => socket.resetAndDestroy())),
  proxy('opens the tunnel and hangs', 'E_TIMEOUT_HEADERS', 'http', tunnel(() => {})),
  proxy('knows no way to log in', 'E_PROXY_REFUSED', 'socks5', says('\x05\xff')),
  proxy('stops in the middle', 'E_PROXY', 'socks5', says('\x05')),
  proxy('is another server', 'E_PROXY', 'socks5', says('HTTP/1.1 200 OK\r\n\r\n')),
  proxy('resets', 'E_PROXY', 'socks5', (socket) => socket.resetAndDestroy()),
  proxy('hangs', 'E_PROXY', 'socks5', () => {}),
  http2Page('a page', 'page', (stream) => {
    stream.respond(PAGE)
    stream.end('<h1>a page</h1>')
  }),
  http2Page('RST_STREAM before the headers', 'E_CONNECTION', reset),
  http2Page('RST_STREAM in mid-page', 'E_BODY_SHORT', midway(reset)),
  http2Page('a connection lost in mid-page', 'E_BODY_SHORT', midway((_stream, session) => session.destroy())),
  http2Page('GOAWAY in mid-page', 'E_BODY_SHORT', midway((_stream, session) => {
    session.goaway(http2.NGHTTP2_INTERNAL_ERROR)
    session.destroy()
  })),
  http2Page('shorter than announced', 'E_CONNECTION', midway((stream) => stream.end(), { 'content-length': '99999' })),
  http2Page('silent', 'E_TIMEOUT_HEADERS', () => {}),
  http2Page('stalled', 'E_TIMEOUT_BODY', midway(() => {})),
  http2Page('endless', 'E_TOO_LARGE', endless),
] // biome-ignore format: a table

export const SINGLE_FAMILIES = ['proxies', 'HTTP/2'] as const

/** A proxy that hangs is waited for twice, one that is down for 15 s. */
const TIMEOUT_MS = 4000

export async function runOneByOne(family: string, folder: string): Promise<Family> {
  const ends: End[] = []
  let peakRssMb = 0
  for (const { name, expect, open } of SINGLE_CASES.filter((one) => one.family === family)) {
    await using opened = await open(folder)
    const args = ['fetch', opened.url, '--json', '--allow-private', '--timeout', `${TIMEOUT_MS}ms`, ...opened.args]
    const env = { ...process.env, ...opened.env }
    const cost = await runMeasured(SLUICE, args, { cwd: folder, timeoutMs: RUN_MS_MAX, sampleMs: 20, env })
    const message = `${cost.stdout}${cost.stderr}`
    const got = cost.exitCode === 0 ? 'page' : (/E_[A-Z_]+/.exec(message)?.[0] ?? 'no code')
    ends.push({ name, expect, got, ms: cost.wallMs, message: cost.stderr.slice(0, 200) })
    peakRssMb = Math.max(peakRssMb, cost.peakRssMb)
  }
  return familyOf(family, ends, peakRssMb)
}
