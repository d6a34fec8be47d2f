/**
 * A web server that misbehaves on purpose, byte by byte: a raw TCP server with a table from the first path segment to what
 * happens. It knows nothing of the code under test. Unless noted otherwise, a case is `GET /NAME`.
 */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import zlib from 'node:zlib'

export interface RawRequest {
  /** Path and query as received. */
  target: string
  query: URLSearchParams
  /** Lower-case names. */
  headers: Record<string, string>
  /** Every header line in order, as written. */
  lines: string[]
}

export type Behaviour = (socket: Socket, request: RawRequest, site: HostileSite) => void

export interface HostileSite extends AsyncDisposable {
  readonly origin: string
  readonly port: number
  /** All requests, oldest first. */
  readonly requests: RawRequest[]
  /** Connections accepted so far. */
  readonly connections: number
  /** Connections open now. */
  readonly open: number
  url(name: string, query?: Record<string, string>): string
  /** Adds or replaces a case. */
  on(name: string, behaviour: Behaviour): void
}

export interface HostileOptions {
  tls?: { key: string; cert: string }
  host?: string
  /** Answers every path that is not a case. Default: 404. */
  answer?: Behaviour
}

export async function openHostileSite(options: HostileOptions = {}) {
  const host = options.host ?? '127.0.0.1'
  const cases = new Map<string, Behaviour>(Object.entries(CASES))
  const sockets = new Set<Socket>()
  const requests: RawRequest[] = []
  let connections = 0
  const accept = (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.setNoDelay(true)
    let head = ''
    socket.on('data', (data) => {
      head += data.toString('latin1')
      for (let end = head.indexOf('\r\n\r\n'); end !== -1; end = head.indexOf('\r\n\r\n')) {
        const request = readHead(head.slice(0, end))
        head = head.slice(end + 4)
        requests.push(request)
        const name = decodeURIComponent(request.target.split(/[/?]/)[1] ?? '')
        ;(cases.get(name) ?? options.answer ?? respond(404, 'no such case'))(socket, request, site)
      }
    })
  }
  const server: Server = options.tls ? createTlsServer(options.tls, accept) : createServer(accept)
  server.on('tlsClientError', () => {})
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const origin = `${options.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
  const site: HostileSite = {
    origin,
    port,
    requests,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    url: (name, query) => `${origin}/${name}${query ? `?${new URLSearchParams(query)}` : ''}`,
    on: (name, behaviour) => void cases.set(name, behaviour),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return site
}

function readHead(text: string): RawRequest {
  const [first = '', ...lines] = text.split('\r\n')
  const target = first.split(' ')[1] ?? ''
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  return { target, query: new URLSearchParams(target.split('?')[1] ?? ''), headers, lines }
}

// ---- building blocks

type Body = string | Buffer

/** A correct response with a length. */
export function respond(status: number, body: Body = '', headers: Record<string, string> = {}): Behaviour {
  const bytes = Buffer.from(body)
  return (socket) => socket.write(Buffer.concat([head(status, { ...headers, 'Content-Length': String(bytes.length) }), bytes])) // biome-ignore format: one line reads better
}

export const html = (body: Body, headers: Record<string, string> = {}) =>
  respond(200, body, { 'Content-Type': 'text/html', ...headers })

export const redirect = (location: string, headers: Record<string, string> = {}) =>
  respond(302, 'moved', { Location: location, ...headers })

/** Exactly these bytes. */
export const raw =
  (bytes: Body, then: 'stay' | 'close' | 'reset' = 'stay'): Behaviour =>
  (socket) => {
    socket.write(bytes, () => {
      if (then === 'close') socket.end()
      else if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 20) // after the bytes were read
    })
  }

/** Writes pieces for as long as the client reads. */
export function drip(start: string, piece: Body, everyMs: number): Behaviour {
  return (socket) => {
    socket.write(start)
    const timer = setInterval(() => socket.write(piece), everyMs)
    socket.on('close', () => clearInterval(timer))
  }
}

/** As fast as possible, forever. */
function flood(start: string, piece: Buffer): Behaviour {
  return (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    socket.write(start)
    more()
  }
}

function head(status: number, headers: Record<string, string>): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`, 'latin1')
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n'
const PAGE = '<html><h1>whole page</h1></html>'
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

const encoded = (encoding: string, body: Body) => html(body, { 'Content-Encoding': encoding })
const flipped = (bytes: Buffer, at: number) => {
  const copy = Buffer.from(bytes)
  copy[at < 0 ? copy.length + at : at]! ^= 0xff
  return copy
}

const GZIP = zlib.gzipSync(PAGE)
const ZEROES = Buffer.alloc(64 * 1024 ** 2)
let bombs: Record<'gzip' | 'br' | 'zstd' | 'double', Buffer> | undefined
/** Created on demand: 64 MiB of zeroes take a moment. */
function bomb(kind: 'gzip' | 'br' | 'zstd' | 'double'): Behaviour {
  return (socket, request, site) => {
    bombs ??= {
      gzip: zlib.gzipSync(ZEROES, { level: 1 }),
      br: zlib.brotliCompressSync(ZEROES, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
      zstd: zlib.zstdCompressSync(ZEROES),
      double: zlib.gzipSync(zlib.gzipSync(ZEROES, { level: 1 })),
    }
    encoded(kind === 'double' ? 'gzip, gzip' : kind, bombs[kind])(socket, request, site)
  }
}

const latin = (text: string) => Buffer.from(text, 'latin1')
const bytes = (...parts: (string | number[])[]) => Buffer.concat(parts.map((part) => (typeof part === 'string' ? latin(part) : Buffer.from(part)))) // biome-ignore format: one line reads better

// ---- the cases

export const CASES: Record<string, Behaviour> = {
  page: html(PAGE),
  echo: (socket, request, site) => html(request.lines.join('\n'))(socket, request, site),

  // slow
  silent: () => {},
  'slow-head': drip('HTTP/1.1 200 OK\r\nX-Drip: ', 'x', 5),
  'slow-body': drip(`${OK}Content-Length: 1000000\r\n\r\n`, 'x', 5),
  'stalled-body': raw(`${OK}Content-Length: 1000000\r\n\r\n<html>half a page`),
  'endless-chunked': flood(CHUNKED, Buffer.from(chunk('x'.repeat(16_384)))),
  'endless-until-close': flood(`${OK}\r\n`, Buffer.alloc(16_384, 'x')),
  'slow-chain': (socket, request, site) => {
    const step = Number(request.query.get('step') ?? 0) + 1
    const timer = setTimeout(() => redirect(`/slow-chain?step=${step}`)(socket, request, site), 200)
    socket.on('close', () => clearTimeout(timer))
  },
  'slow-redirect-body': (socket) =>
    drip('HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 1000000\r\n\r\n', 'x', 5)(socket, {} as RawRequest, {} as HostileSite), // biome-ignore format: one line reads better
  'slow-error-body': drip('HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000\r\n\r\nno entry', 'x', 5),

  // net and framing
  'reset-before-head': (socket) => socket.resetAndDestroy(),
  'close-before-head': (socket) => socket.end(),
  'reset-in-head': raw('HTTP/1.1 200 OK\r\nContent-Ty', 'reset'),
  'close-in-head': raw('HTTP/1.1 200 OK\r\nContent-Ty', 'close'),
  'reset-in-body': raw(`${OK}Content-Length: 1000\r\n\r\n${PAGE}`, 'reset'),
  'close-in-body': raw(`${OK}Content-Length: 1000\r\n\r\n${PAGE}`, 'close'),
  'close-in-body-said': raw(`${OK}Connection: close\r\nContent-Length: 1000\r\n\r\n${PAGE}`, 'close'),
  'close-in-chunk': raw(`${CHUNKED}ff\r\n${PAGE}`, 'close'),
  'close-between-chunks': raw(CHUNKED + chunk(PAGE), 'close'),
  'close-between-chunks-said': raw(
    `${OK}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(PAGE)}`,
    'close',
  ),
  'until-close': raw(`${OK}\r\n${PAGE}`, 'close'),
  'until-close-reset': raw(`${OK}\r\n${PAGE}`, 'reset'),
  'http-1.0': raw(`HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n${PAGE}`, 'close'),
  'length-too-small': raw(`${OK}Content-Length: 10\r\n\r\n${PAGE}`),
  'length-too-small-close': raw(`${OK}Connection: close\r\nContent-Length: 10\r\n\r\n${PAGE}`, 'close'),
  'length-twice': raw(`${OK}Content-Length: 5\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'length-twice-equal': raw(`${OK}Content-Length: 32\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'length-negative': raw(`${OK}Content-Length: -1\r\n\r\n${PAGE}`),
  'length-words': raw(`${OK}Content-Length: many\r\n\r\n${PAGE}`),
  'length-huge': raw(`${OK}Content-Length: 99999999999999999999999\r\n\r\n${PAGE}`),
  'length-and-chunked': raw(`${OK}Content-Length: 32\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(PAGE)}0\r\n\r\n`),
  'chunked-and-length': raw(`${OK}Transfer-Encoding: chunked\r\nContent-Length: 32\r\n\r\n${chunk(PAGE)}0\r\n\r\n`),
  'chunked-twice': raw(`${OK}Transfer-Encoding: chunked, chunked\r\n\r\n${chunk(PAGE)}0\r\n\r\n`),
  'chunk-size-bad': raw(`${CHUNKED}zz\r\n${PAGE}\r\n0\r\n\r\n`),
  'chunk-size-negative': raw(`${CHUNKED}-5\r\n${PAGE}\r\n0\r\n\r\n`),
  'chunk-size-huge': raw(`${CHUNKED}ffffffffffffffffff\r\n${PAGE}\r\n0\r\n\r\n`),
  'chunk-no-newline': raw(`${CHUNKED}5\r\nhelloXX0\r\n\r\n`),
  'chunk-extensions': raw(`${CHUNKED}20;name=value\r\n${PAGE}\r\n0\r\n\r\n`),
  'trailers-huge': raw(`${CHUNKED}${chunk(PAGE)}0\r\n${'X-T: y\r\n'.repeat(40_000)}\r\n`),
  'http-0.9': raw(PAGE, 'close'),
  garbage: raw(Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10]), 'close'),
  'status-words': raw('HTTP/1.1 abc OK\r\n\r\n', 'close'),
  'other-protocol': raw('SSH-2.0-OpenSSH_9.2\r\n'),
  'early-hints': raw(`HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n${OK}Content-Length: 32\r\n\r\n${PAGE}`),
  'early-hints-flood': flood('', Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100))),
  'continue-flood': flood('', Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))),
  'continue-thrice': raw(`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3)}${OK}Content-Length: 32\r\n\r\n${PAGE}`),
  'surplus-after-body': raw(`${OK}Content-Length: 32\r\n\r\n${PAGE}${OK}Content-Length: 6\r\n\r\nforged`),
  'status-000': raw(`HTTP/1.1 000 None\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'continue-unasked': raw(`HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 32\r\n\r\n${PAGE}`),
  'switching-unasked': raw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
  'partial-unasked': respond(206, PAGE, { 'Content-Range': 'bytes 0-31/1000', 'Content-Type': 'text/html' }),
  'no-content': respond(204),
  'no-content-with-body': raw(`HTTP/1.1 204 No Content\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'no-content-then-garbage': raw(`HTTP/1.1 204 No Content\r\n\r\n${PAGE}`),
  'head-huge': raw(`${OK}X-Huge: ${'x'.repeat(100_000)}\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'head-large': raw(`${OK}X-Large: ${'x'.repeat(40_000)}\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'head-many': raw(`${OK}${'X-Many: 12345678\r\n'.repeat(20_000)}Content-Length: 32\r\n\r\n${PAGE}`),
  'head-endless': flood(OK, Buffer.from('X-Endless: 1234567890\r\n'.repeat(100))),
  'head-nul': raw(`${OK}X-Nul: a\0b\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'head-no-colon': raw(`${OK}this is no header\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  'head-odd-bytes': raw(
    latin(`${OK}X-Odd: caf\xe9\r\n__proto__: polluted\r\nconstructor: x\r\nContent-Length: 32\r\n\r\n${PAGE}`),
  ),
  'head-lf-only': raw(`HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 32\n\n${PAGE}`),
  'page-and-close': raw(`${OK}Connection: close\r\nContent-Length: 32\r\n\r\n${PAGE}`, 'close'),
  'line-after': raw(`${OK}Connection: close\r\nContent-Length: 32\r\n\r\n${PAGE}\r\n`, 'close'),
  'large-and-close': raw(`${OK}Connection: close\r\n\r\n${'x'.repeat(3_000_000)}`, 'close'),

  // encoding
  gzip: encoded('gzip', GZIP),
  'x-gzip': encoded('x-gzip', GZIP),
  'gzip-shouting': encoded(' GZip ', GZIP),
  br: encoded('br', zlib.brotliCompressSync(PAGE)),
  zstd: encoded('zstd', zlib.zstdCompressSync(PAGE)),
  'zstd-two-frames': encoded('zstd', Buffer.concat([zlib.zstdCompressSync(PAGE), zlib.zstdCompressSync(PAGE)])),
  'gzip-two-members': encoded('gzip', Buffer.concat([GZIP, GZIP])),
  deflate: encoded('deflate', zlib.deflateSync(PAGE)),
  'deflate-raw': encoded('deflate', zlib.deflateRawSync(PAGE)),
  'gzip-chunked': raw(Buffer.concat([latin(`${OK}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${GZIP.length.toString(16)}\r\n`), GZIP, latin('\r\n0\r\n\r\n')])), // biome-ignore format: one line reads better
  'gzip-large': encoded(
    'gzip',
    zlib.gzipSync(Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 2654435761) >>> 24))),
  ),
  'gzip-twice': encoded('gzip, gzip', zlib.gzipSync(GZIP)),
  'gzip-in-br': encoded('gzip, br', zlib.brotliCompressSync(GZIP)),
  'gzip-cut': encoded('gzip', GZIP.subarray(0, -12)),
  'gzip-cut-trailer': encoded('gzip', GZIP.subarray(0, -4)),
  'gzip-cut-until-close': raw(
    Buffer.concat([latin(`${OK}Content-Encoding: gzip\r\n\r\n`), GZIP.subarray(0, -12)]),
    'close',
  ),
  'gzip-none-until-close': raw(`${OK}Content-Encoding: gzip\r\n\r\n`, 'close'),
  'gzip-empty': encoded('gzip', ''),
  'gzip-crc': encoded('gzip', flipped(GZIP, -8)),
  'gzip-length': encoded('gzip', flipped(GZIP, -1)),
  'gzip-corrupt': encoded('gzip', flipped(GZIP, 14)),
  'gzip-trailing': encoded('gzip', Buffer.concat([GZIP, latin('<script>more</script>')])),
  'deflate-cut': encoded('deflate', zlib.deflateSync(PAGE).subarray(0, -6)),
  'deflate-trailing': encoded('deflate', Buffer.concat([zlib.deflateSync(PAGE), latin('more')])),
  'br-cut': encoded('br', zlib.brotliCompressSync(PAGE).subarray(0, -3)),
  'br-trailing': encoded('br', Buffer.concat([zlib.brotliCompressSync(PAGE), latin('more')])),
  'zstd-cut': encoded('zstd', zlib.zstdCompressSync(PAGE).subarray(0, -3)),
  'zstd-trailing': encoded('zstd', Buffer.concat([zlib.zstdCompressSync(PAGE), latin('more')])),
  'zstd-window': encoded('zstd', zlib.zstdCompressSync(Buffer.alloc(20_000_000), { params: { [zlib.constants.ZSTD_c_windowLog]: 24, [zlib.constants.ZSTD_c_contentSizeFlag]: 0 } })), // biome-ignore format: one line reads better
  'bomb-gzip': bomb('gzip'),
  'bomb-br': bomb('br'),
  'bomb-zstd': bomb('zstd'),
  'bomb-double': bomb('double'),
  'chain-4': encoded(
    'gzip, gzip, gzip, gzip',
    [1, 2, 3].reduce((data) => zlib.gzipSync(data), GZIP),
  ),
  'chain-1000': encoded(Array(1000).fill('gzip').join(', '), GZIP),
  'encoding-unknown': encoded('snappy', PAGE),
  'encoding-lies': encoded('gzip', PAGE),
  'encoding-identity': encoded('identity', PAGE),
  'encoding-unsaid': html(GZIP),
  'encoding-wrong': encoded('br', GZIP),
  'redirect-encoded': redirect('/page', { 'Content-Encoding': 'gzip' }),

  // charset
  'charset-utf-8': html('žluťoučký kůň', { 'Content-Type': 'text/html; charset=UTF-8' }),
  'charset-quoted': html('kůň', { 'Content-Type': 'text/html;charset="utf-8"' }),
  'charset-header': html(bytes([0xe9]), { 'Content-Type': 'text/html; charset=iso-8859-1' }),
  'charset-bom-against-header': html(bytes([0xef, 0xbb, 0xbf, 0xc5, 0xaf]), {
    'Content-Type': 'text/html; charset=iso-8859-2',
  }),
  'charset-header-against-meta': html(bytes('<meta charset=utf-8>', [0xf9]), {
    'Content-Type': 'text/html; charset=iso-8859-2',
  }),
  'charset-meta': html(bytes('<meta charset="windows-1251">', [0xcf, 0xf0, 0xe8])),
  'charset-meta-http-equiv': html(
    bytes('<meta http-equiv=Content-Type content="text/html; charset=shift_jis">', [0x93, 0xfa, 0x96, 0x7b]),
  ),
  'charset-meta-late': html(bytes(`<!-- ${'x'.repeat(5000)} --><meta charset=windows-1250>`, [0xf9])),
  'charset-xml': respond(200, bytes('<?xml version="1.0" encoding="iso-8859-2"?><a>', [0xf9], '</a>'), {
    'Content-Type': 'application/xml',
  }),
  'charset-utf-16le': html(bytes([0xff, 0xfe], Array.from(Buffer.from('kůň', 'utf16le')))),
  'charset-utf-16be': html(bytes([0xfe, 0xff, 0x00, 0x6b, 0x01, 0x6f, 0x01, 0x48])),
  'charset-gb18030': html(bytes([0xc4, 0xe3, 0xba, 0xc3]), { 'Content-Type': 'text/html; charset=gb18030' }),
  'charset-windows-1252': html(bytes([0x80, 0x93, 0x94]), { 'Content-Type': 'text/html; charset=windows-1252' }),
  'charset-none-utf-8': html('kůň'),
  'charset-none-latin': html(bytes('caf', [0xe9])),
  'charset-utf-7': html('+ADw-script+AD4-', { 'Content-Type': 'text/html; charset=utf-7' }),
  'charset-utf-7-meta': html('<meta charset=utf-7>+ADw-script+AD4-'),
  'charset-replacement': html('x', { 'Content-Type': 'text/html; charset=iso-2022-kr' }),
  'charset-replacement-meta': html('<meta charset=hz-gb-2312>x'),
  'charset-unknown': html('plain', { 'Content-Type': 'text/html; charset=klingon' }),
  'charset-unknown-bytes': html(bytes([0xe9, 0xe8]), { 'Content-Type': 'text/html; charset=klingon' }),
  'charset-invalid-bytes': html(bytes('a', [0xff], 'b'), { 'Content-Type': 'text/html; charset=utf-8' }),
  'charset-json': respond(200, '{"a":"<meta charset=koi8-r> kůň"}', { 'Content-Type': 'application/json' }),
  'charset-untyped': respond(200, bytes('<meta charset=windows-1251>', [0xcf])),

  // redirects
  'redirect-relative': redirect('page'),
  'redirect-spaces': redirect('  /page  '),
  'redirect-inner-space': redirect('/echo/a b'),
  'redirect-fragment': redirect('/page#part'),
  'redirect-query': redirect('/echo?b=2&a=1&utm_source=x'),
  'redirect-utf-8': raw(
    Buffer.concat([
      latin('HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: /echo/'),
      Buffer.from('kůň'),
      latin('\r\n\r\n'),
    ]),
  ),
  'redirect-latin-1': raw(latin('HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: /echo/caf\xe9\r\n\r\n')),
  'redirect-dots': redirect('/a/b/../../page'),
  'redirect-backslash': redirect('\\page'),
  'redirect-credentials': (socket, request, site) =>
    redirect(`http://user:secret@127.0.0.1:${site.port}/echo`)(socket, request, site),
  'redirect-to': (socket, request, site) => {
    const to = Buffer.from(request.query.get('to') ?? '/page').toString('latin1') // as UTF-8
    redirect(to)(socket, request, site)
  },
  'redirect-status': (socket, request, site) =>
    respond(Number(request.query.get('status')), '', { Location: '/page' })(socket, request, site),
  'redirect-loop': redirect('/redirect-loop'),
  'redirect-loop-2': (socket, request, site) =>
    redirect(`/redirect-loop-2?${request.target.endsWith('?a') ? 'b' : 'a'}`)(socket, request, site),
  'redirect-chain': (socket, request, site) => {
    const left = Number(request.query.get('left'))
    redirect(left > 1 ? `/redirect-chain?left=${left - 1}` : '/page')(socket, request, site)
  },
  'redirect-nowhere': respond(302, PAGE),
  'redirect-empty': redirect(''),
  'redirect-huge': redirect(`/${'x'.repeat(20_000)}`),
  'redirect-two': raw('HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: /page\r\nLocation: /other\r\n\r\n'),
  'redirect-body-endless': flood('HTTP/1.1 302 Found\r\nLocation: /page\r\n\r\n', Buffer.alloc(16_384, 'x')),
  'redirect-body-bomb': (socket, request, site) => {
    const body = zlib.gzipSync(Buffer.alloc(1_000_000))
    respond(302, body, { Location: '/page', 'Content-Encoding': 'gzip' })(socket, request, site)
  },
  'cookie-wall': (socket, request, site) => {
    if (request.headers['cookie']?.includes('passed=yes')) html(PAGE)(socket, request, site)
    else redirect(request.target, { 'Set-Cookie': 'passed=yes; Path=/' })(socket, request, site)
  },
  'cookie-then-leave': (socket, request, site) =>
    redirect(request.query.get('to')!, { 'Set-Cookie': 'secret=1; Path=/' })(socket, request, site),

  // rate and status
  status: (socket, request, site) => {
    const headers: Record<string, string> = { 'Content-Type': 'text/html' }
    const retryAfter = request.query.get('retry-after')
    if (retryAfter !== null) headers['Retry-After'] = retryAfter
    respond(Number(request.query.get('code')), `<h1>status ${request.query.get('code')}</h1>`, headers)(
      socket,
      request,
      site,
    )
  },
  'status-error-huge': flood('HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n', Buffer.alloc(16_384, 'x')),
  'status-error-cut': raw(
    'HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<h1>oops',
    'close',
  ),
  'status-error-gzip': respond(403, zlib.gzipSync('<h1>captcha</h1>'), {
    'Content-Encoding': 'gzip',
    'Content-Type': 'text/html',
  }),
  'status-error-bad-gzip': respond(403, 'not gzip', { 'Content-Encoding': 'gzip', 'Content-Type': 'text/html' }),
  'one-request-a-connection': raw(`${OK}Content-Length: 32\r\n\r\n${PAGE}`, 'close'),
  large: (socket, request, site) => html(Buffer.alloc(Number(request.query.get('bytes')), 'x'))(socket, request, site),
}
