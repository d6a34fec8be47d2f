/** The byte stream against a real server: what it follows, refuses, sends along and gives up on. */
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { content, type FileServer, serveFile, startFileServer } from '../../../test/files/file-server.ts'
import { never, streamOptions } from '../../../test/files/rig.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { ByteRequest, ByteSource } from '../contract.ts'
import { openByteStream } from './byte-stream.ts'

const FILE = content(2_000_000)
let home: FileServer
let other: FileServer
let source: ByteSource

before(async () => {
  home = await startFileServer()
  other = await startFileServer()
  source = openByteStream(streamOptions())
  other.paths.set('/file', serveFile(FILE))
})
after(async () => {
  await source[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

async function read(request: Partial<ByteRequest> & { url: string }, from = source, signal = never): Promise<Buffer> {
  const answer = await from.open({ headers: {}, ...request }, signal)
  const chunks: Uint8Array[] = []
  for await (const chunk of answer.body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'done',
    (error: unknown) => (error instanceof ScrapeError ? error.code : String(error)),
  )
}

/** Answers every connection with exactly these bytes. */
async function rawServer(answer: (socket: Socket) => void): Promise<AsyncDisposable & { url: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('a byte stream', () => {
  it('returns a file unchanged', async () => {
    assert.ok((await read({ url: `${other.url}/file` })).equals(FILE))
  })

  it('follows redirects, and asks before each', async () => {
    home.paths.set(
      '/to-other',
      (_request, response) => void response.writeHead(302, { location: `${other.url}/file` }).end(),
    )
    const asked: string[] = []
    const bytes = await read({ url: `${home.url}/to-other`, onRedirect: async (url) => void asked.push(url) })
    assert.equal(bytes.length, FILE.length)
    assert.deepEqual(asked, [`${other.url}/file`])
    const refusing = read({ url: `${home.url}/to-other`, onRedirect: async () => { throw new ScrapeError('E_ROBOTS', 'no') } }) // biome-ignore format: one line reads better
    assert.equal(await codeOf(refusing), 'E_ROBOTS')
  })

  it('sends headers and cookies to their own origin only', async () => {
    home.paths.set(
      '/a',
      (_request, response) => void response.writeHead(302, { location: '/b', 'set-cookie': 'wall=1' }).end(),
    )
    home.paths.set('/b', (_request, response) => void response.writeHead(302, { location: `${other.url}/file` }).end())
    home.asked.length = 0
    other.asked.length = 0
    const headers = { cookie: 'session=secret', authorization: 'Bearer secret', 'x-own': 'secret', range: 'bytes=5-' }
    await read({ url: `${home.url}/a`, headers })
    const [first, second] = home.asked
    assert.equal(first!.headers.cookie, 'session=secret')
    assert.equal(first!.headers.range, undefined, 'ranges are ours')
    assert.equal(second!.headers.cookie, 'session=secret; wall=1')
    assert.equal(second!.headers.authorization, 'Bearer secret')
    assert.doesNotMatch(JSON.stringify(other.asked), /secret|wall/)
  })

  it('does not connect to a private address, directly or after a redirect', async () => {
    await using guarded = openByteStream(streamOptions({ allowPrivate: false, allowAddresses: [home.host] }))
    home.paths.set(
      '/inside',
      (_request, response) => void response.writeHead(302, { location: `${other.url}/file` }).end(),
    )
    other.asked.length = 0
    assert.equal(await codeOf(read({ url: `${other.url}/file` }, guarded)), 'E_PRIVATE_ADDRESS')
    assert.equal(await codeOf(read({ url: `${home.url}/inside` }, guarded)), 'E_PRIVATE_ADDRESS')
    for (const location of ['http://169.254.169.254/latest', 'http://[::1]/', 'http://0x7f.1/', 'http://2130706433/']) {
      home.paths.set('/spelled', (_request, response) => void response.writeHead(302, { location }).end())
      assert.equal(await codeOf(read({ url: `${home.url}/spelled` }, guarded)), 'E_PRIVATE_ADDRESS', location)
    }
    assert.deepEqual(other.asked, [])
  })

  it('refuses redirects to other schemes, loops and endless chains', async () => {
    for (const location of ['file:///etc/passwd', 'ftp://h/x', 'javascript:1', '']) {
      home.paths.set('/bad', (_request, response) => void response.writeHead(302, { location }).end())
      assert.equal(await codeOf(read({ url: `${home.url}/bad` })), 'E_REDIRECT_BAD', location)
    }
    home.paths.set('/loop', (_request, response) => void response.writeHead(302, { location: '/loop' }).end())
    assert.equal(await codeOf(read({ url: `${home.url}/loop` })), 'E_REDIRECT_LIMIT')
    let hops = 0
    home.paths.set('*', (_request, response) => void response.writeHead(302, { location: `/hop-${++hops}` }).end())
    assert.equal(await codeOf(read({ url: `${home.url}/hop-0` })), 'E_REDIRECT_LIMIT')
    assert.ok(hops < 10)
    home.paths.delete('*')
  })

  for (const [
    status,
    code,
  ] of [[404, 'E_NOT_FOUND'], [401, 'E_UNAUTHORIZED'], [429, 'E_RATE_LIMITED'], [500, 'E_SERVER'], [204, 'E_STATUS'], [206, 'E_STATUS']] as const) // biome-ignore format: one line reads better
    it(`reports ${status} as ${code}`, async () => {
      home.paths.set('/status', (_request, response) => void response.writeHead(status).end())
      assert.equal(await codeOf(read({ url: `${home.url}/status` })), code)
    })

  for (const [
    name,
    encode,
  ] of [['gzip', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync], ['zstd', zstdCompressSync]] as const) // biome-ignore format: one line reads better
    it(`decodes unrequested ${name}`, async () => {
      home.paths.set('/encoded', (_request, response) => void response.writeHead(200, { 'content-encoding': name }).end(encode(FILE))) // biome-ignore format: one line reads better
      assert.ok((await read({ url: `${home.url}/encoded` })).equals(FILE))
    })

  for (const [what, answer, code] of [
    ['more than was announced', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef', 'E_PROTOCOL'],
    ['less than was announced', 'HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nabc', 'E_BODY_SHORT'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc', 'E_PROTOCOL'],
    ['a torn chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', 'E_BODY_SHORT'],
    ['no HTTP', 'hello\r\n\r\n', 'E_PROTOCOL'],
  ] as const)
    it(`treats ${what} as an error`, async () => {
      await using server = await rawServer((socket) => void socket.end(answer))
      assert.equal(await codeOf(read({ url: server.url })), code)
    })

  it('times out before the headers, in the body, and on an endless trickle', async () => {
    await using noHeaders = openByteStream(streamOptions({ headersMsMax: 100 }))
    await using noBody = openByteStream(streamOptions({ idleMsMax: 100 }))
    await using noEnd = openByteStream(streamOptions({ totalMsMax: 400 }))
    await using silent = await rawServer(() => {})
    assert.equal(await codeOf(read({ url: silent.url }, noHeaders)), 'E_TIMEOUT_HEADERS')
    await using stuck = await rawServer((socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab'))
    assert.equal(await codeOf(read({ url: stuck.url }, noBody)), 'E_TIMEOUT_BODY')
    const dripping = new Set<NodeJS.Timeout>()
    await using drip = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n')
      dripping.add(setInterval(() => socket.write('a'), 10))
    })
    assert.equal(await codeOf(read({ url: drip.url }, noEnd)), 'E_TIMEOUT_TOTAL')
    for (const timer of dripping) clearInterval(timer)
  })

  it('stops reading while its reader does', async () => {
    const chunk = Buffer.alloc(65_536)
    home.paths.set('/endless', (_request, response) => {
      const more = () => {
        while (!response.destroyed) if (!response.write(chunk)) return
      }
      response.on('drain', more)
      more()
    })
    home.sent = 0
    const answer = await source.open({ url: `${home.url}/endless`, headers: {} }, never)
    const body = answer.body[Symbol.asyncIterator]()
    await body.next()
    let last = -1
    while (home.sent !== last) {
      last = home.sent // until it stops: the buffers on the way are full
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.ok(home.sent < 64 * 1024 ** 2, `${home.sent} bytes were sent to somebody who does not read`)
    await body.return?.()
  })

  it('ends when its signal is aborted', async () => {
    const stop = new AbortController()
    const answer = await source.open({ url: `${home.url}/endless`, headers: {} }, stop.signal)
    const reading = (async () => {
      for await (const _ of answer.body) stop.abort(new Error('enough'))
    })()
    await assert.rejects(reading, /enough/)
    await assert.rejects(source.open({ url: `${other.url}/file`, headers: {} }, stop.signal), /enough/)
  })
})
