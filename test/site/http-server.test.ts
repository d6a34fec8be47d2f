import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { type HttpServerOptions, type Reply, reply, startHttpServer } from './http-server.ts'

const hello = reply({ body: 'hello' })
const start = (options: Partial<HttpServerOptions> = {}) =>
  startHttpServer({ port: 0, handle: () => hello, ...options })

/** Sends `text` in the given pieces, ends, and returns everything received. */
async function exchange(port: number, ...pieces: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let received = ''
  socket.setEncoding('latin1').on('data', (text) => {
    received += text
  })
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, 'latin1', resolve))
  socket.end()
  await once(socket, 'close')
  return received
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((found) => Number(found[1]))
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: shop\r\n${more}\r\n`

describe('the demo site’s HTTP server', () => {
  it('answers pipelined requests in order on one connection, even if each is delayed differently', async () => {
    const handle = (target: string): Reply => reply({ body: `<${target}>`, delayMs: target === '/slow' ? 30 : 0 })
    await using server = await start({ handle })
    const received = await exchange(server.port, get('/slow') + get('/b') + get('/slow') + get('/c'))
    assert.deepEqual(received.match(/<[^>]*>/g), ['</slow>', '</b>', '</slow>', '</c>'])
  })

  it('assembles a request from pieces', async () => {
    await using server = await start({ handle: (target) => reply({ body: target }) })
    const received = await exchange(
      server.port,
      'GE',
      'T /a?b=c HT',
      'TP/1.1\r\nHost:',
      ' shop\r\n\r',
      '\nGET /d HTTP/1.1\r\n',
      'Host: s\r\n\r\n',
    )
    assert.deepEqual(statuses(received), [200, 200])
    assert.match(received, /\/a\?b=c/)
    assert.ok(received.endsWith('/d'))
  })

  it('answers HEAD with the head only', async () => {
    await using server = await start()
    const received = await exchange(server.port, 'HEAD / HTTP/1.1\r\nHost: shop\r\n\r\n')
    assert.match(received, /Content-Length: 5\r\n\r\n$/)
  })

  it('dates its responses', async () => {
    await using server = await start()
    const date = /\r\nDate: ([^\r]{29})\r\n/.exec(await exchange(server.port, get('/')))?.[1] ?? ''
    assert.ok(Math.abs(Date.parse(date) - Date.now()) < 5000, date)
  })

  it('closes after a request that says so, and after HTTP/1.0', async () => {
    await using server = await start()
    for (const request of [get('/', 'Connection: close\r\n'), 'GET / HTTP/1.0\r\n\r\n']) {
      const received = await exchange(server.port, request + get('/never'))
      assert.deepEqual(statuses(received), [200])
      assert.match(received, /Connection: close\r\n\r\nhello$/)
    }
  })

  it('rejects anything but a plain GET or HEAD', async () => {
    await using server = await start()
    const refused: [string, number][] = [
      ['\x16\x03\x01 rubbish\r\n\r\n', 400],
      ['GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['GET /a b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n', 400],
      [get('/', 'Content-Length: 5\r\n'), 400],
      [get('/', 'Transfer-Encoding: chunked\r\n'), 400],
      ['POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n', 405],
      ['GET / HTTP/2.0\r\nHost: a\r\n\r\n', 505],
      [get('/', `X: ${'x'.repeat(20_000)}\r\n`), 431],
      ['GET /'.padEnd(20_000, 'x'), 431],
    ]
    for (const [request, status] of refused)
      assert.deepEqual(statuses(await exchange(server.port, request + get('/never'))), [status], request.slice(0, 40))
  })

  it('gives up on a request that does not end, and on an idle connection', async () => {
    await using server = await start({ requestMsMax: 100, idleMsMax: 1000 })
    const slow = connect(server.port, '127.0.0.1')
    slow.write('GET / HTTP/1.1\r\n')
    const [answer] = await once(slow, 'data')
    assert.deepEqual(statuses(String(answer)), [408])
    slow.destroy()
    const idle = connect(server.port, '127.0.0.1')
    await once(idle.resume(), 'close')
  })

  it('waits for a client that reads slowly, and loses nothing', async () => {
    const body = 'x'.repeat(4_000_000)
    await using server = await start({ handle: () => reply({ body }) })
    const socket = connect(server.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.pause()
    socket.end(get('/1') + get('/2') + get('/3'))
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    setImmediate(() => socket.resume())
    await once(socket, 'close')
    assert.ok(bytes > 12_000_000 && bytes < 12_001_000, `${bytes} bytes`)
  })

  it('leaves nothing behind when it stops in the middle of a response', async () => {
    const server = await start({ handle: () => reply({ body: 'late', delayMs: 60_000 }) })
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(get('/'))
    while (server.maxInFlight === 0) await new Promise(setImmediate)
    await server[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await once(socket.resume(), 'close')
  })
})
