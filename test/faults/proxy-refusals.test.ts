/** Proxies that are up but let nothing through: a wrong password, and one that resets every connection. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, it } from 'node:test'
import { type HttpProxyServer, tinyproxyForTests } from '../services/tinyproxy.ts'
import { startBooksSite } from '../site/books.ts'
import { sluice, temporaryFolder } from '../sluice.ts'

const login = { user: 'kunde7', password: 'geheim4711' }
const wrongUrlOf = (proxy: HttpProxyServer) => proxy.url.replace(login.password, 'falsch0815')

async function run(site: string, out: string, ...flags: string[]) {
  const { code, stdout, stderr } = await sluice(['run', 'books', '--site', site, '--out', out, '--json', ...flags])
  assert.doesNotMatch(stdout + stderr, /falsch0815|geheim4711/)
  return { code, record: JSON.parse(stdout), stderr }
}

describe('a run whose proxy rejects it', () => {
  it('ends at once with exit code 2 for a wrong password, or continues with the other proxies', async () => {
    await using proxy = await tinyproxyForTests(login)
    await using site = await startBooksSite({ products: 20 })
    using folder = temporaryFolder()
    const { code, record } = await run(site.url, folder.path, '--proxy', wrongUrlOf(proxy))
    assert.equal(code, 2)
    assert.match(record.reason, /^E_PROXY_REFUSED: the proxy 127\.0\.0\.1:\d+ rejects our user name or password/)
    assert.deepEqual([record.pages.failed, site.stats().requests], [0, 0])
    const two = await run(site.url, folder.path, '--proxies', `${wrongUrlOf(proxy)},${proxy.url}`)
    assert.deepEqual([two.code, two.record.items.new], [0, 20], two.stderr)
  })

  it('waits for one that resets every connection, then stops and can be resumed', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.resetAndDestroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = `http://${login.user}:${login.password}@127.0.0.1:${(server.address() as AddressInfo).port}`
    await using site = await startBooksSite({ products: 20 })
    using folder = temporaryFolder()
    try {
      const { code, record } = await run(site.url, folder.path, '--proxy', proxy, '--wait', '1s')
      assert.deepEqual([code, record.state, record.pages.dead], [4, 'stopped', 0])
      assert.match(record.reason, /^E_PROXIES_LOST: no proxy has worked for \d+ s: the proxy 127\.0\.0\.1:\d+ /)
      const again = await run(site.url, folder.path, '--resume', record.id)
      assert.deepEqual([again.code, again.record.items.new], [0, 20], again.stderr)
    } finally {
      server.close()
    }
  })
})
