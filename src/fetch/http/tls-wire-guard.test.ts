/** Where the TLS library may connect: the address guard and the proxies apply to it as to everything else. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { freePort } from '../../../test/services/free-port.ts'
import { socksForTests } from '../../../test/services/socks.ts'
import { tinyproxyForTests } from '../../../test/services/tinyproxy.ts'
import { CERTIFICATES } from '../../../test/site/certificates.ts'
import { type HostileSite, openHostileSite } from '../../../test/site/hostile.ts'
import { as, never, openTlsHttp, optionsFor, profiles } from '../../../test/tls-client.ts'
import { openProxyGuard } from '../net/proxy.ts'
import type { HttpOptions } from './http.ts'

const login = { user: 'kunde7', password: 'geheim4711' }
let site: HostileSite
let secure: HostileSite
before(async () => {
  site = await openHostileSite()
  secure = await openHostileSite({ tls: CERTIFICATES.good })
})
after(async () => {
  await site[Symbol.asyncDispose]()
  await secure[Symbol.asyncDispose]()
})

/** Guards everything except the site itself. */
const guarded = (more: Partial<HttpOptions> = {}) =>
  openTlsHttp({ allowPrivate: false, allowAddresses: [`127.0.0.1:${site.port}`], ...more })

describe('the address guard', () => {
  it('lets allowed addresses through', async () => {
    await using http = guarded()
    assert.equal((await http.exchange({ url: site.url('page') }, never, undefined, as(profiles[0]))).status, 200)
  })

  it('refuses private addresses, however they are written, and names that resolve to one', async () => {
    await using http = guarded()
    const { port } = secure
    const hosts = ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', '10.0.0.1', '169.254.169.254', 'localhost', 'inner.test'] // biome-ignore format: one line
    for (const host of hosts) {
      for (const protocol of ['http', 'https']) {
        const url = new URL(`${protocol}://${host}:${port}/page`).href
        const page = http.exchange({ url }, never, undefined, as(profiles[0]))
        await assert.rejects(page, { code: 'E_PRIVATE_ADDRESS' }, url)
      }
    }
    assert.equal(secure.connections, 0)
  })

  it('refuses a redirect to a private address', async () => {
    await using http = guarded()
    const url = site.url('redirect-to', { to: secure.url('page') })
    await assert.rejects(http.exchange({ url }, never, undefined, as(profiles[0])), { code: 'E_PRIVATE_ADDRESS' })
    assert.equal(secure.connections, 0)
  })

  it('resolves a name once for each connection, and connects to the address that was checked', async () => {
    let asked = 0
    await using http = guarded({
      allowAddresses: [`rebind.test:${site.port}`],
      // Public for the first lookup, private from the second on.
      lookup: (_hostname, callback) => callback(null, [{ address: ++asked === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }]), // biome-ignore format: one line
    })
    const url = `http://rebind.test:${site.port}/one-request-a-connection`
    const identity = as(profiles[0])
    await http.exchange({ url }, never, undefined, identity)
    await assert.rejects(http.exchange({ url }, never, undefined, identity), { code: 'E_PRIVATE_ADDRESS' })
    assert.equal(asked, 2)
  })

  it('cannot be bypassed with NO_PROXY, nor with another protocol a server offers', async () => {
    process.env['NO_PROXY'] = process.env['no_proxy'] = '*'
    const datagrams = createSocket('udp4').on('message', () => assert.fail('HTTP/3 goes round the door'))
    datagrams.bind(0, '127.0.0.1')
    await once(datagrams, 'listening')
    try {
      const names: string[] = []
      await using http = openTlsHttp({
        lookup: (hostname, callback) => {
          names.push(hostname)
          callback(null, [{ address: '127.0.0.1', family: 4 }])
        },
      })
      secure.on('other', (socket) =>
        socket.end(
          `HTTP/1.1 200 OK\r\nAlt-Svc: h3=":${datagrams.address().port}"; ma=99\r\nContent-Length: 2\r\n\r\nhi`,
        ),
      )
      const identity = as(profiles[0])
      for (let i = 0; i < 3; i++)
        await http.exchange({ url: `https://site.test:${secure.port}/other` }, never, undefined, identity)
      assert.deepEqual(names, ['site.test', 'site.test', 'site.test'])
    } finally {
      datagrams.close()
      delete process.env['NO_PROXY']
      delete process.env['no_proxy']
    }
  })

  it('reports why a host cannot be reached', async () => {
    const failing: HttpOptions['lookup'] = (hostname, callback) =>
      callback(Object.assign(new Error(`${hostname} is unknown`), { code: 'ENOTFOUND' }), [])
    await using http = openTlsHttp({ lookup: failing })
    const url = 'https://nowhere.test/'
    await assert.rejects(http.exchange({ url }, never, undefined, as(profiles[0])), { code: 'E_DNS' })
    const refused = `https://127.0.0.1:${await freePort()}/`
    await assert.rejects(http.exchange({ url: refused }, never, undefined, as(profiles[0])), { code: 'E_CONNECTION' })
  })
})

describe('a proxy', () => {
  const through = (url: string) => ({ name: 'p', tier: 0, guard: openProxyGuard(optionsFor(), url) })

  for (const [kind, open] of [
    ['http', tinyproxyForTests],
    ['socks5', socksForTests],
  ] as const) {
    it(`of kind ${kind} with a password carries all traffic, and resolves the names`, async () => {
      await using proxy = await open(login)
      await using http = openTlsHttp({ lookup: (hostname) => assert.fail(`${hostname} was looked up here`) })
      for (const place of [site, secure]) {
        const url = `${new URL(place.origin).protocol}//localhost:${place.port}/page`
        const page = await http.exchange({ url }, never, undefined, as(profiles[0], through(proxy.url)))
        assert.equal(page.status, 200)
        assert.match(proxy.log, /localhost/)
      }
    })
  }

  it('that rejects our password, or is down, is named as the cause, without the password', async () => {
    await using proxy = await tinyproxyForTests({ user: 'a', password: 'b' })
    await using http = openTlsHttp()
    for (const port of [proxy.port, await freePort()]) {
      const identity = as(profiles[0], through(`http://${login.user}:${login.password}@127.0.0.1:${port}`))
      const page = http.exchange({ url: secure.url('page') }, never, undefined, identity)
      const error = await page.then(() => assert.fail(), (thrown) => thrown) // biome-ignore format: one line
      assert.equal(error.code, 'E_PROXY')
      assert.doesNotMatch(inspect(error, { depth: 5 }), /geheim/)
    }
  })

  it('that was replaced by another is not used any more', async () => {
    await using one = await socksForTests()
    await using other = await socksForTests()
    await using http = openTlsHttp({ proxy: one.url })
    const identity = as(profiles[0])
    const ask = () => http.exchange({ url: `https://localhost:${secure.port}/page` }, never, undefined, identity)
    await ask()
    const before = one.log.length
    http.rotate(other.url)
    await ask()
    assert.equal(one.log.length, before)
    assert.match(other.log, /localhost/)
  })
})
