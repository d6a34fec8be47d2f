/** Workers of the task protocol behind real proxies that die, were never there, or are blocked. Their login is never shown. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../fleet.ts'
import { ProtocolRig } from '../protocol/rig.ts'
import { freePort } from '../services/free-port.ts'
import { type SocksServer, socksForTests } from '../services/socks.ts'
import { type HttpProxyServer, tinyproxyForTests } from '../services/tinyproxy.ts'

const login = { user: 'kunde7', password: 'geheim4711' }
const SECRET = new RegExp([login.password, btoa(`${login.user}:${login.password}`).replace(/=+$/, '')].join('|'))

let http: HttpProxyServer
let socks: SocksServer
let nowhere: string
before(async () => {
  ;[http, socks] = await Promise.all([tinyproxyForTests(login), socksForTests(login)])
  nowhere = `http://${login.user}:${login.password}@127.0.0.1:${await freePort()}`
})
after(async () => {
  await Promise.all([http, socks].map((one) => one[Symbol.asyncDispose]()))
})

const nameOf = (proxy: { port: number }) => `127.0.0.1:${proxy.port}`
const tunnels = () => http.log.split('Established connection').length - 1

async function assertNoLogin(rig: ProtocolRig): Promise<void> {
  assert.doesNotMatch(await rig.said(), SECRET)
}

test('succeeds with all tasks when a third of the proxies dies, and each result names its proxy', async () => {
  await using rig = await ProtocolRig.open()
  await using dying = await tinyproxyForTests(login)
  const before = tunnels()
  const putThree = () => Promise.all(Array.from({ length: 3 }, () => rig.put({ args: { n: 5 } })))
  await putThree()
  // A page in flight when its proxy dies costs a try.
  await rig.instance({ proxies: [http.url, socks.url, dying.url].join(','), retries: 3 })
  await until('pages come', () => rig.site.asked.length > 5)
  await dying.stop()
  await putThree()
  const results = await rig.resultsWhen(6)
  for (const { status, jobs_found, metadata } of results.values()) {
    assert.deepEqual([status, jobs_found], ['success', 5])
    assert.ok([http, socks, dying].map(nameOf).includes(metadata.proxy_used!), metadata.proxy_used!)
  }
  assert.ok(tunnels() > before && socks.log.includes('connected to'), 'both were used')
  const rates = () => rig.health().then((all) => all.at(-1)!)
  await until('health tells of them', async () => (await rates()).proxy_success_rate < 0.7)
  assert.equal((await rates()).proxy_pool_size, 3)
  await assertNoLogin(rig)
})

test('lets tasks wait while all proxies are dead, sends nothing directly, and finishes them when one is back', async () => {
  await using rig = await ProtocolRig.open()
  await using proxy = await tinyproxyForTests(login)
  await proxy.stop()
  const worker = await rig.instance({ proxies: [proxy.url, nowhere].join(','), identity: 'browser' })
  const patient = await rig.put({})
  const hasty = await rig.put({}, { timeout: 0.5, max_retries: 1 })
  const refused = (await rig.resultsWhen(1)).get(hasty.task_id)!
  const { status, attempt, error_code, error, jobs_found } = refused
  assert.deepEqual([status, attempt, error_code, jobs_found], ['timeout', 2, 'E_PROXIES_DOWN', 0], error!)
  assert.match(worker.log.join('\n'), /all 2 proxies are down.*nothing is sent directly/)
  assert.equal((await rig.health()).at(-1)!.proxy_success_rate, 0)
  assert.deepEqual(rig.site.asked, [])
  await proxy.start()
  const done = (await rig.resultsWhen(2)).get(patient.task_id)!
  assert.deepEqual([done.status, done.jobs_found, done.metadata.proxy_used], ['success', 3, nameOf(proxy)])
  await assertNoLogin(rig)
})

test('uses a task’s own proxy, even if it is dead, and rejects an invalid one', async () => {
  await using rig = await ProtocolRig.open()
  await rig.instance({ proxies: socks.url, sites: { '127.0.0.1': { proxies: 'off' } } })
  const own = await rig.put({ proxy: http.url.replace('http://', '') })
  assert.equal((await rig.resultsWhen(1)).get(own.task_id)!.metadata.proxy_used, nameOf(http))
  const asked = rig.site.asked.length
  const dead = await rig.put({ proxy: nowhere }, { max_retries: 1 })
  const bad = await rig.put({ proxy: `ftp://${login.user}:${login.password}@127.0.0.1:1` })
  const torn = `{"task_id": "x", "params": {"proxy": "${login.user}:${login.password}@proxy:1"}`
  for (const text of [torn, `${torn}}`]) await rig.redis.xadd(rig.names.tasks('things')[1], '*', 'message', text)
  const results = await rig.resultsWhen(3)
  const ends = [dead, bad].map(({ task_id }) => results.get(task_id)!)
  assert.deepEqual(
    ends.map(({ status, error_code, attempt }) => [status, error_code, attempt]),
    [
      ['failed', 'E_PROXY', 2],
      ['failed', 'E_OPTION', 1],
    ],
  )
  assert.equal(rig.site.asked.length, asked, 'nothing went out directly')
  await until('both torn messages are refused', async () => {
    const refused = (await rig.errors()).filter(({ error_code }) => error_code === 'E_MESSAGE_FOREIGN')
    return refused.length === 2 && refused.every((error) => error.refused!.includes('***@proxy:1'))
  })
  await assertNoLogin(rig)
})

test('does not let tasks use a proxy inside the worker’s network', async () => {
  await using rig = await ProtocolRig.open()
  await rig.instance({ allowPrivate: undefined })
  const { task_id } = await rig.put({ proxy: http.url })
  const { status, error_code } = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([status, error_code], ['failed', 'E_PRIVATE_ADDRESS'])
  await assertNoLogin(rig)
})

test('retries a blocked task through another proxy, in whichever instance', async () => {
  await using rig = await ProtocolRig.open()
  const agents: string[] = []
  rig.site.answer = (path, response, request) => {
    if (path !== '/list') return false
    agents.push(request.headers['user-agent']!)
    if (agents.length > 2) return false
    response.writeHead(403).end()
    return true
  }
  const used = { http: tunnels(), socks: socks.log.length }
  const { task_id } = await rig.put({})
  const flags = { proxies: `${http.url},${socks.url}`, identity: 'browser' }
  for (let tries = 1; tries <= 2; tries++) {
    const worker = await rig.instance(flags, { workerId: `w${tries}` })
    await until('it is put off', () => worker.ends.length === 1)
    await worker.stop() // the next try is made by an instance that knows nothing of the last
  }
  assert.ok(tunnels() > used.http && socks.log.length > used.socks, 'through one, then the other')
  await rig.instance(flags)
  const { status, attempt, metadata } = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([status, attempt, metadata.blocked_requests], ['success', 3, 0])
  assert.equal(new Set(agents.slice(0, 3)).size, 3, `as somebody else each time: ${agents.join(' | ')}`)
  await assertNoLogin(rig)
})
