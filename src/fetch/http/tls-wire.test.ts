/** The TLS library against real servers: whose handshake it shows, what it sends, and how responses end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { until } from '../../../test/fleet.ts'
import { CERTIFICATES } from '../../../test/site/certificates.ts'
import { readClientHello } from '../../../test/site/client-hello.ts'
import { CASES, type HostileSite, openHostileSite } from '../../../test/site/hostile.ts'
import { as, never, openTlsHttp, optionsFor, profileOf, profiles } from '../../../test/tls-client.ts'
import type { Page } from '../../core/page.ts'
import { type HttpClient, openHttp } from './http.ts'

const portOf = (server: Pick<Server, 'address'>) => (server.address() as AddressInfo).port
const headersSeen: string[][] = []
/** HTTP/2, and HTTP/1.1 for clients that ask for it. Returns the cookies it was sent, and sets one. */
const server: Http2SecureServer = createSecureServer(
  { ...CERTIFICATES.good, allowHTTP1: true },
  (request, response) => {
    headersSeen.push([request.httpVersion, ...request.rawHeaders])
    response.setHeader('content-type', 'text/html')
    response.setHeader('set-cookie', [`n=${headersSeen.length}`, 'fixed=1'])
    if (request.url === '/old') response.writeHead(302, { location: '/new' })
    response.end(`<p>${request.headers.cookie ?? 'no cookies'}</p>`)
  },
)
let http: HttpClient
let site: HostileSite
before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  site = await openHostileSite()
  http = openTlsHttp()
})
after(async () => {
  await http[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
  server.close()
})

const get = (path: string, identity = as(profileOf('chrome-windows')), host = 'localhost') =>
  http.exchange({ url: `https://${host}:${portOf(server)}${path}` }, never, undefined, identity)

describe('the handshake', () => {
  /** What a server sees before it answers. */
  async function helloOf(client: HttpClient, name: string) {
    const hello = Promise.withResolvers<Buffer>()
    const listener = createServer((socket) => {
      socket
        .on('error', () => {})
        .once('data', (bytes) => {
          hello.resolve(bytes)
          socket.destroy()
        })
    })
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const page = client.exchange(
      { url: `https://localhost:${portOf(listener)}/` },
      never,
      undefined,
      as(profileOf(name)),
    )
    await assert.rejects(page, { code: 'E_CONNECTION' })
    listener.close()
    return readClientHello(await hello.promise)
  }

  it('is that of Chrome, and not Node’s', async () => {
    const chrome = await helloOf(http, 'chrome-windows')
    assert.equal(chrome.hasGrease, true)
    assert.deepEqual(chrome.protocols, ['h2', 'http/1.1'])
    assert.equal(chrome.ciphers.length, 15)
    assert.ok(chrome.extensions.includes(0xfe0d), 'encrypted client hello')
    assert.ok(chrome.extensions.includes(0x44cd), 'application settings')
    await using plain = openHttp(optionsFor())
    const node = await helloOf(plain, 'chrome-windows')
    assert.equal(node.hasGrease, false)
    assert.notDeepEqual(node.ciphers, chrome.ciphers)
    assert.ok(node.ciphers.length > 15)
  })

  it('is a different one for Firefox and Safari', async () => {
    const firefox = await helloOf(http, 'firefox-linux')
    assert.equal(firefox.hasGrease, false)
    assert.equal(firefox.ciphers.length, 17)
    const safari = await helloOf(http, 'safari-macos')
    assert.equal(safari.hasGrease, true)
    assert.notDeepEqual(safari.ciphers, firefox.ciphers)
  })

  for (const name of ['expired', 'future', 'foreign', 'selfSigned'] as const) {
    it(`is refused if the certificate is ${name}`, async () => {
      await using other = await openHostileSite({ tls: CERTIFICATES[name] })
      const page = http.exchange({ url: other.url('page') }, never, undefined, as(profileOf('chrome-linux')))
      await assert.rejects(page, { code: 'E_TLS' })
      assert.equal(other.requests.length, 0)
    })
  }

  it('is refused if the certificate is another host’s', () =>
    assert.rejects(get('/', undefined, 'shop.test'), { code: 'E_TLS' }))

  it('fails with a server that does not speak TLS', async () => {
    const plain = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n').on('error', () => {}))
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
    const page = http.exchange({ url: `https://localhost:${portOf(plain)}/` }, never, undefined, as(profiles[0]))
    await assert.rejects(page, { code: 'E_TLS' })
    plain.close()
  })

  it('times out if it never ends', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    await using hasty = openTlsHttp({ connectTimeoutMs: 50 })
    const page = hasty.exchange({ url: `https://localhost:${portOf(silent)}/` }, never, undefined, as(profiles[0]))
    await assert.rejects(page, { code: 'E_TIMEOUT_CONNECT' })
    silent.close()
  })
})

describe('a request', () => {
  for (const profile of profiles) {
    it(`is made over HTTP/2 as ${profile.name}, of the version whose handshake it is`, async () => {
      const page = await get('/', as(profile))
      assert.equal(page.status, 200)
      const [version, ...seen] = headersSeen.at(-1)!
      assert.equal(version, '2.0')
      const names = seen.filter((_, i) => i % 2 === 0 && !seen[i]!.startsWith(':'))
      const expected = profile.headersFor({ isTrustworthy: true, isHttp2: true }).map(([name]) => name.toLowerCase())
      assert.deepEqual(names, expected.filter((name) => name !== 'cookie')) // biome-ignore format: one line
      const major = profile.tls!.browser.split('_')[1]!
      const agent = seen[seen.indexOf('user-agent') + 1]!
      assert.ok(agent.includes(`/${major}`), `${agent} is not of ${major}`)
      const hints = seen[seen.indexOf('sec-ch-ua') + 1]!
      if (profile.isChromium) assert.ok(hints.includes(`v="${major}"`), `${hints} is not of ${major}`)
    })
  }

  it('over HTTP/1.1 has the header order of the browser', async () => {
    for (const [name, expected] of [
      ['chrome-windows', /^Host Connection sec-ch-ua .* Accept-Language$/],
      [
        'firefox-linux',
        /^Host User-Agent Accept Accept-Language Accept-Encoding Connection Upgrade-Insecure-Requests /,
      ],
      ['safari-macos', /^Host Sec-Fetch-Dest User-Agent .* Accept-Encoding Connection$/],
    ] as const) {
      await http.exchange({ url: site.url('page') }, never, undefined, as(profileOf(name)))
      assert.match(
        site.requests
          .at(-1)!
          .lines.map((line) => line.split(':')[0])
          .join(' '),
        expected,
      )
    }
  })

  it('sends JSON, and the route’s own headers', async () => {
    const request = { url: site.url('echo'), post: { q: 1 }, headers: { 'x-own': '1' } }
    await http.exchange(request, never, undefined, as(profileOf('chrome-macos')))
    const { headers } = site.requests.at(-1)!
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(headers['content-length'], '7')
    assert.equal(headers['x-own'], '1')
  })

  it('carries the cookies of its identity across redirects, and of no other', async () => {
    const [one, other] = [as(profileOf('chrome-linux')), as(profileOf('chrome-linux'))]
    assert.equal((await get('/', one)).text, '<p>no cookies</p>')
    const page = await get('/old', one)
    assert.match(page.text, /n=\d+.*fixed=1|fixed=1.*n=\d+/)
    assert.deepEqual(page.redirects.length, 1)
    assert.equal((await get('/', other)).text, '<p>no cookies</p>')
  })

  it('of an identity without a profile uses undici', async () => {
    await get('/', as(undefined))
    assert.equal(headersSeen.at(-1)![0], '1.1')
    assert.ok(headersSeen.at(-1)!.includes('SluiceTest/1.0'))
  })

  it('does not let a header value break out of its line', async () => {
    const asked = http.exchange({ url: site.url('page'), headers: { 'x-a': 'a\r\nX-B: b' } }, never, undefined, as(profiles[0])) // biome-ignore format: one line
    await assert.rejects(asked, { code: 'E_DEFINITION' })
  })
})

describe('a response', () => {
  const codeOf = (page: Promise<Page>) =>
    page.then(
      ({ text }) => (/^host: /im.test(text) ? 'what we sent' : text),
      (error) => error.code as string,
    )
  const plain = openHttp(optionsFor())
  after(() => plain[Symbol.asyncDispose]())
  const identity = as(profiles[0])
  /** Where the library differs: nothing of it is held longer, or without a limit. */
  const OTHERWISE: Readonly<Record<string, string>> = {
    'length-too-small': '<html><h1>', // bytes after the announced end are ignored, as in browsers
    'length-too-small-close': '<html><h1>',
    'chunk-size-huge': 'E_BODY_SHORT',
    'chunk-no-newline': 'E_BODY_SHORT',
    'trailers-huge': 'E_BODY_SHORT',
    'continue-unasked': '<html><h1>whole page</h1></html>',
    'switching-unasked': 'E_STATUS',
    'head-lf-only': '<html><h1>whole page</h1></html>',
    'redirect-utf-8': 'E_REDIRECT_BAD', // non-ASCII headers are lost
    'redirect-latin-1': 'E_REDIRECT_BAD',
    'redirect-two': 'E_NOT_FOUND', // both in one line
    'status-error-cut': 'E_BODY_SHORT', // a body of known length arrives with its head, or neither does
  }
  for (const name of Object.keys(CASES).filter(
    (name) => !/^slow-|^silent$|^stalled-|^(?:early-hints|continue)-flood$/.test(name),
  )) {
    it(`ends ${name} with ${OTHERWISE[name] ?? 'what it ends with over the other wire'}`, async () => {
      const request = { url: site.url(name) }
      const expected = OTHERWISE[name] ?? (await codeOf(plain.exchange(request, never)))
      assert.equal(await codeOf(http.exchange(request, never, undefined, identity)), expected)
    })
  }

  it('that does not arrive ends with the deadline, and so does its connection', async () => {
    await using other = await openHostileSite()
    await using hasty = openTlsHttp({ timeoutMs: 300 })
    const page = (name: string) => hasty.exchange({ url: other.url(name) }, never, undefined, as(profiles[0]))
    await assert.rejects(page('silent'), { code: 'E_TIMEOUT_HEADERS' })
    await hasty[Symbol.asyncDispose]()
    await until('the connection is closed', () => other.open === 0)
  })

  it('is aborted when the caller stops', async () => {
    const controller = new AbortController()
    const page = http.exchange({ url: site.url('silent') }, controller.signal, undefined, as(profiles[0]))
    controller.abort(new Error('enough'))
    await assert.rejects(page, /enough/)
  })

  it('is requested once more if the server closed the kept-alive connection just then', async () => {
    await using other = await openHostileSite()
    let asked = 0
    other.on('moody', (socket) => {
      if (++asked === 2) socket.destroy()
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
    })
    const identity = as(profiles[0])
    const ask = () => http.exchange({ url: other.url('moody') }, never, undefined, identity)
    await ask()
    assert.equal((await ask()).text, 'hi')
    assert.equal(asked, 3)
  })
})
