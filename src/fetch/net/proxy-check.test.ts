import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { freePort } from '../../../test/services/free-port.ts'
import { socksForTests } from '../../../test/services/socks.ts'
import { tinyproxyForTests } from '../../../test/services/tinyproxy.ts'
import { checkProxy } from './proxy-check.ts'

const login = { user: 'sluice', password: 'geheim' }
const failure = (url: string, timeoutMs = 2000) =>
  checkProxy(url, timeoutMs).then(
    () => 'it answers',
    (error) => `${error.code} ${error.message}`,
  )

test('a proxy that is up answers, and accepts the right login', async () => {
  await using socks = await socksForTests(login)
  await using http = await tinyproxyForTests(login)
  assert.ok((await checkProxy(socks.url, 2000)) > 0)
  assert.ok((await checkProxy(http.url, 2000)) > 0)
  assert.match(await failure(socks.url.replace('geheim', 'falsch')), /^E_PROXY the proxy (?:rejects our user|hung up)/)
  assert.match(
    await failure(socks.url.replace(/\/\/.*@/, '//')),
    /^E_PROXY the proxy (?:requires a user|supports none)/,
  )
})

test('a proxy that is down, silent or not a proxy is reported as such, without its login', async () => {
  const away = await failure(`http://sluice:geheim@127.0.0.1:${await freePort()}`)
  assert.match(away, /^E_PROXY the proxy cannot be reached: .*ECONNREFUSED/)
  await using silent = createServer((socket) => void socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const late = await failure(`socks5://sluice:geheim@127.0.0.1:${port}`, 50)
  assert.match(late, /^E_PROXY the proxy does not answer within 50 ms/)
  await using http = await tinyproxyForTests()
  const wrong = await failure(http.url.replace('http:', 'socks5:'), 300)
  assert.match(wrong, /^E_PROXY the proxy (?:is no SOCKS5 proxy|hung up|does not answer)/)
  assert.doesNotMatch(away + late + wrong, /geheim/)
})
