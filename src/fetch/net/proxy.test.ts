/** Pages through real proxies: microsocks with a password, and a minimal CONNECT proxy. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { socksForTests } from '../../../test/services/socks.ts'
import { AUTHORITY, CERTIFICATES } from '../../../test/site/certificates.ts'
import { type HostileSite, openHostileSite } from '../../../test/site/hostile.ts'
import { ScrapeError } from '../../core/errors.ts'
import { type HttpOptions, openHttp } from '../http/http.ts'
import { parseProxy } from './proxy-url.ts'

const never = new AbortController().signal
const login = { user: 'sluice', password: 'p@ss:wörd/1' }
let plain: HostileSite
let tls: HostileSite

before(async () => {
  plain = await openHostileSite()
  tls = await openHostileSite({ tls: CERTIFICATES.good })
})
after(async () => {
  await plain[Symbol.asyncDispose]()
  await tls[Symbol.asyncDispose]()
})

function httpThrough(proxy: string, options: Partial<HttpOptions> = {}) {
  return openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 3000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 2,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    lookup: (hostname, callback) => callback(new Error(`${hostname} was looked up here`), []),
    ca: AUTHORITY,
    ...options,
    proxy,
  })
}

interface ConnectProxy extends AsyncDisposable {
  url: string
  /** `Proxy-Authorization` and target of each CONNECT. */
  seen: { authorization: string | undefined; target: string }[]
}

/** Answers every CONNECT with `status`; 200 opens the tunnel for clients with the right login. */
async function openConnectProxy(status = 200): Promise<ConnectProxy> {
  const seen: ConnectProxy['seen'] = []
  const sockets = new Set<Socket>()
  const server = createHttpServer((_request, response) => response.writeHead(400).end())
  server.on('connect', (request, socket: Socket) => {
    sockets.add(socket.on('error', () => {}))
    const authorization = request.headers['proxy-authorization']
    seen.push({ authorization, target: request.url! })
    const expected = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`
    if (authorization !== expected) return socket.end('HTTP/1.1 407 Log in\r\nProxy-Authenticate: Basic\r\n\r\n')
    if (status !== 200) return socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`)
    const port = Number(request.url!.split(':').at(-1))
    const target = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\nVia: 1.1 test\r\n\r\n'))
    sockets.add(target.on('error', () => socket.destroy()))
    return socket.pipe(target).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const credentials = `${login.user}:${encodeURIComponent(login.password)}`
  return {
    url: `http://${credentials}@127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A server that answers the first bytes with `answer`, and nothing after that. */
async function openMumbler(answer: Buffer | string): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    if (answer.length > 0) socket.once('data', () => socket.end(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const isProxyError = (error: unknown): true => {
  assert.ok(error instanceof ScrapeError, String(error))
  assert.equal(error.code, 'E_PROXY', error.message)
  assert.equal(error.verdict, 'rotate')
  assert.doesNotMatch(error.message, /p@ss|p%40ss/)
  return true
}

describe('a SOCKS5 proxy', () => {
  it('carries pages, plain and TLS, for clients with the right password', async () => {
    await using proxy = await socksForTests(login)
    await using http = httpThrough(proxy.url)
    for (let i = 0; i < 3; i++) {
      const pages = await Promise.all([plain, plain, tls, tls].map(({ origin }) => http.exchange({ url: `${origin}/page` }, never))) // biome-ignore format: one line reads better
      assert.deepEqual(
        pages.map(({ status }) => status),
        [200, 200, 200, 200],
      )
    }
    assert.ok(proxy.log.includes(`127.0.0.1:${plain.port}`) && proxy.log.includes(`127.0.0.1:${tls.port}`), proxy.log)
  })

  it('resolves the names; nothing is looked up here', async () => {
    await using proxy = await socksForTests()
    await using http = httpThrough(proxy.url)
    const page = await http.exchange({ url: `https://localhost:${tls.port}/page` }, never)
    assert.equal(page.status, 200)
    assert.match(proxy.log, new RegExp(`localhost:${tls.port}`))
    await assert.rejects(http.exchange({ url: 'http://no-such-name.invalid/' }, never), (error: ScrapeError) => {
      assert.ok(['E_PROXY', 'E_CONNECTION'].includes(error.code), error.message)
      assert.doesNotMatch(error.message, /looked up here/)
      return true
    })
  })

  it('does not weaken TLS: a certificate of another host is refused', async () => {
    await using proxy = await socksForTests()
    await using strict = httpThrough(proxy.url, { ca: undefined })
    await assert.rejects(strict.exchange({ url: `${tls.origin}/page` }, never), { code: 'E_TLS' })
  })

  it('that rejects the password is an error that asks for another proxy', async () => {
    await using proxy = await socksForTests(login)
    for (const credentials of ['sluice:wrong@', 'sluice@', '']) {
      await using http = httpThrough(`socks5://${credentials}127.0.0.1:${proxy.port}`)
      await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
    }
  })

  it('that cannot reach the target says so, which is not its fault', async () => {
    await using proxy = await socksForTests()
    await using http = httpThrough(proxy.url)
    await using nobody = await openMumbler('')
    const { port } = nobody
    await nobody[Symbol.asyncDispose]()
    await assert.rejects(http.exchange({ url: `http://127.0.0.1:${port}/` }, never), { code: 'E_CONNECTION' })
  })

  it('does not lead to the private network', async () => {
    await using proxy = await socksForTests()
    await using http = httpThrough(proxy.url, { allowPrivate: false, allowAddresses: [`localhost:${plain.port}`] })
    for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '[::ffff:7f00:1]', '2130706433', '169.254.169.254']) {
      await assert.rejects(http.exchange({ url: new URL(`http://${host}:${tls.port}/`).href }, never), { code: 'E_PRIVATE_ADDRESS' }) // biome-ignore format: one line reads better
    }
    for (const host of ['localhost', 'a.localhost', 'localhost.']) {
      await assert.rejects(http.exchange({ url: `http://${host}:${tls.port}/` }, never), { code: 'E_PRIVATE_ADDRESS' })
    }
    assert.equal(proxy.log.includes(`:${tls.port}`), false)
    assert.equal((await http.exchange({ url: `http://localhost:${plain.port}/page` }, never)).status, 200) // allowed
  })

  it('that dies in the middle of a run is an error that asks for another proxy', async () => {
    await using proxy = await socksForTests()
    await using http = httpThrough(proxy.url)
    const asked = tls.requests.length
    const cut = assert.rejects(http.exchange({ url: `${tls.origin}/silent` }, never), { code: 'E_CONNECTION' })
    while (tls.requests.length === asked) await new Promise(setImmediate)
    await proxy.stop()
    await cut
    await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
  })
})

describe('an HTTP proxy', () => {
  it('carries pages, plain and TLS, through CONNECT', async () => {
    await using proxy = await openConnectProxy()
    await using http = httpThrough(proxy.url)
    assert.equal((await http.exchange({ url: `${plain.origin}/page` }, never)).status, 200)
    assert.equal((await http.exchange({ url: `https://site.test:${tls.port}/page` }, never)).status, 200)
    assert.deepEqual(
      proxy.seen.map(({ target }) => target),
      [`127.0.0.1:${plain.port}`, `site.test:${tls.port}`],
    )
  })

  it('gets the login, and the site never does', async () => {
    await using proxy = await openConnectProxy()
    await using http = httpThrough(proxy.url)
    const page = await http.exchange({ url: `${plain.origin}/echo` }, never)
    assert.doesNotMatch(page.text, /proxy-authorization/i)
    await using stranger = httpThrough(proxy.url.replace('sluice:', 'stranger:'))
    await assert.rejects(stranger.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
    await using nobody = httpThrough(proxy.url.replace(/\/\/.*@/, '//'))
    await assert.rejects(nobody.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
  })

  it('that refuses is distinguished from a target it cannot reach', async () => {
    const codes = { 403: 'E_PROXY', 500: 'E_PROXY', 502: 'E_CONNECTION', 504: 'E_TIMEOUT_CONNECT' }
    for (const [status, code] of Object.entries(codes)) {
      await using proxy = await openConnectProxy(Number(status))
      await using http = httpThrough(proxy.url)
      await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), { code })
    }
  })
})

describe('a server that is not a proxy', () => {
  it('is an error that asks for another proxy, whatever it answers', async () => {
    const answers = ['', 'SSH-2.0-OpenSSH\r\n', '\x05', '\x05\xff', 'HTTP/1.1 what', 'x'.repeat(100_000)]
    for (const answer of answers.slice(1)) {
      await using mumbler = await openMumbler(Buffer.from(answer, 'latin1'))
      for (const scheme of ['socks5', 'http']) {
        await using http = httpThrough(`${scheme}://127.0.0.1:${mumbler.port}`)
        await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
      }
    }
  })

  it('does not hold us longer than the connect timeout when it stays silent', async () => {
    await using mumbler = await openMumbler('')
    await using http = httpThrough(`socks5://127.0.0.1:${mumbler.port}`, { connectTimeoutMs: 100 })
    await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), { code: 'E_TIMEOUT_CONNECT' })
  })

  it('is an error that asks for another proxy when nothing listens there', async () => {
    const gone = await openMumbler('')
    await gone[Symbol.asyncDispose]()
    await using http = httpThrough(`socks5://127.0.0.1:${gone.port}`)
    await assert.rejects(http.exchange({ url: `${plain.origin}/page` }, never), isProxyError)
  })
})

describe('a proxy’s URL', () => {
  it('has a scheme, a host, a port, and perhaps a login', () => {
    assert.deepEqual(parseProxy('socks5://u:p%40%3A@h.test:1'), { kind: 'socks5', hostname: 'h.test', port: 1, login: { user: 'u', password: 'p@:' } }) // biome-ignore format: one line reads better
    assert.deepEqual(parseProxy('socks5h://[::1]'), { kind: 'socks5', hostname: '::1', port: 1080 })
    assert.deepEqual(parseProxy('http://h.test:80'), { kind: 'http', hostname: 'h.test', port: 80 })
  })

  it('is rejected at once if it is not usable, without showing its password', () => {
    for (const url of [
      '',
      'h.test:1',
      'ftp://a:secret@h.test',
      'https://a:secret@h.test:1',
      'socks5://a:secret@h.test:1/x',
    ]) {
      assert.throws(() => httpThrough(url), (error: ScrapeError) => error.code === 'E_OPTION' && !error.message.includes('secret')) // biome-ignore format: one line reads better
    }
  })
})
