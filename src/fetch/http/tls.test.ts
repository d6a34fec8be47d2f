/** HTTPS: the certificate counts, and plain text is not TLS. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { AUTHORITY, CERTIFICATES } from '../../../test/site/certificates.ts'
import { type HostileSite, openHostileSite } from '../../../test/site/hostile.ts'
import { type HttpClient, openHttp } from './http.ts'

const never = new AbortController().signal
const sites = new Map<string, HostileSite>()
let http: HttpClient

before(async () => {
  for (const [name, tls] of Object.entries(CERTIFICATES)) sites.set(name, await openHostileSite({ tls }))
  sites.set('plain', await openHostileSite())
  http = openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 2000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 2,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    lookup: (_hostname, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    ca: AUTHORITY,
  })
})
after(async () => {
  await http[Symbol.asyncDispose]()
  for (const site of sites.values()) await site[Symbol.asyncDispose]()
})

const get = (name: string, host = '127.0.0.1', path = 'page') =>
  http.exchange({ url: `https://${host}:${sites.get(name)!.port}/${path}` }, never)

describe('https', () => {
  it('fetches from a host with a matching certificate', async () => {
    assert.equal((await get('good')).status, 200)
    assert.equal((await get('good', 'localhost')).status, 200)
    assert.equal((await get('good', 'site.test', 'gzip')).status, 200)
  })

  it('refuses plain text where TLS should be', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n').on('error', () => {}))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = `https://127.0.0.1:${port}/`
    // Without addresses, source files and line numbers of OpenSSL.
    const message = new RegExp(`^the server does not speak TLS on this port: [a-z ]+ \\(${url}\\)$`)
    await assert.rejects(http.exchange({ url }, never), { code: 'E_TLS', message })
    server.close()
  })

  for (const name of ['expired', 'future', 'foreign', 'selfSigned']) {
    it(`refuses a host whose certificate is ${name}`, () => assert.rejects(get(name), { code: 'E_TLS' }))
  }

  it('refuses a good certificate of another host', () => assert.rejects(get('good', 'shop.test'), { code: 'E_TLS' }))

  it('reports a connection cut during the handshake as such', async () => {
    await assert.rejects(http.exchange({ url: `http://127.0.0.1:${sites.get('good')!.port}/` }, never), {
      code: 'E_CONNECTION',
    })
  })

  it('does not treat a body cut by TLS as a page', () => assert.rejects(get('good', 'localhost', 'close-in-body'), { code: 'E_BODY_SHORT' })) // biome-ignore format: one line reads better

  it('does not carry headers from https down to http', async () => {
    const plain = sites.get('plain')!
    const to = `http://localhost:${plain.port}/echo`
    const url = `https://localhost:${sites.get('good')!.port}/redirect-to?to=${encodeURIComponent(to)}`
    const page = await http.exchange({ url, headers: { authorization: 'Bearer secret', cookie: 'a=secret' } }, never)
    assert.equal(page.url, to)
    assert.doesNotMatch(page.text, /secret/)
  })
})
