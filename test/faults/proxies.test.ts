/** Proxies that die, come back, or were never there, with real ones: tinyproxy and microsocks, both with a password. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ScrapeError } from '../../src/core/errors.ts'
import { createEventBus, type RunEvent } from '../../src/core/events.ts'
import { limitsSchema } from '../../src/core/options.ts'
import { decide } from '../../src/crawl/retry.ts'
import { createFetcher } from '../../src/fetch/fetcher.ts'
import { openHttp } from '../../src/fetch/http/http.ts'
import { createIdentities } from '../../src/fetch/identity/identities.ts'
import { openProxyPool } from '../../src/fetch/identity/proxy-pool.ts'
import { createRateLimit } from '../../src/fetch/rate/rate-limit.ts'
import { until } from '../fleet.ts'
import { freePort } from '../services/free-port.ts'
import { type SocksServer, socksForTests } from '../services/socks.ts'
import { type HttpProxyServer, tinyproxyForTests } from '../services/tinyproxy.ts'
import { startBooksSite } from '../site/books.ts'
import { sluice, startSluice, temporaryFolder } from '../sluice.ts'

const login = { user: 'kunde7', password: 'geheim4711' }
const never = new AbortController().signal

let first: HttpProxyServer
let second: HttpProxyServer
let socks: SocksServer
before(async () => {
  ;[first, second, socks] = await Promise.all([
    tinyproxyForTests(login),
    tinyproxyForTests(login),
    socksForTests(login),
  ])
})
after(async () => {
  await Promise.all([first, second, socks].map((one) => one[Symbol.asyncDispose]()))
})

const tunnels = (proxy: HttpProxyServer) => proxy.log.split('Established connection').length - 1

function* filesBelow(folder: string): Generator<string> {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (statSync(join(folder, name)).isFile()) yield join(folder, name)
}

/** The login is in no file of the run and no output: neither in plain text nor encoded for Basic. */
function assertNoLogin(folder: string, ...texts: string[]): void {
  const secret = new RegExp([login.password, btoa(`${login.user}:${login.password}`).replace(/=+$/, '')].join('|'))
  let files = 0
  for (const file of filesBelow(folder)) {
    files++
    assert.doesNotMatch(readFileSync(file, 'latin1'), secret, file)
  }
  for (const text of texts) assert.doesNotMatch(text, secret)
  assert.ok(files > 3, 'a run leaves files')
}

const run = (site: string, out: string, proxies: string, ...more: string[]) =>
  startSluice(['run', 'books', '--site', site, '--out', out, '--proxies', proxies, '--json', '-v', ...more])

describe('a run with many proxies', () => {
  it('continues with the working ones, whether the others were never there or die during the run', async () => {
    await using site = await startBooksSite({ products: 600, delayMs: 20 })
    using folder = temporaryFolder()
    const nowhere = `socks5://${login.user}:${login.password}@127.0.0.1:${await freePort()}`
    const proxies = [first.url, socks.url, nowhere, second.url].join(',')
    const { result } = run(site.url, folder.path, proxies, '--arg', 'details=true', '--rps', '0')
    await until('pages come', () => site.stats().requests > 100)
    await first.stop()
    const { code, stdout, stderr } = await result
    await first.start()
    assert.equal(code, 0, stderr)
    const record = JSON.parse(stdout)
    assert.equal(record.items.new, 600)
    assert.equal(record.pages.dead, 0)
    assert.ok(tunnels(second) > 0 && socks.log.includes('connected to'), 'both others were used')
    assertNoLogin(folder.path, stdout, stderr)
  })

  it('waits while all are down, and continues when one is back', async () => {
    await using site = await startBooksSite({ products: 400, delayMs: 10 })
    using folder = temporaryFolder()
    const proxies = `${first.url},${second.url}`
    const { result, child } = run(site.url, folder.path, proxies, '--arg', 'details=true', '--rps', '200')
    let said = ''
    child.stderr!.on('data', (text: string) => {
      said += text
    })
    await until('pages come', () => site.stats().requests > 50)
    await Promise.all([first.stop(), second.stop()])
    await until('it says so', () => /all 2 proxies are down/.test(said + logOf(folder.path)))
    const asked = site.stats().requests
    assert.ok(asked < 400)
    await second.start()
    const { code, stdout, stderr } = await result
    await first.start()
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).items.new, 400)
    assert.equal(JSON.parse(stdout).pages.dead, 0)
    assertNoLogin(folder.path, stdout, stderr)
  })

  it('waits if none can be reached, then stops and says so without the login', async () => {
    await using site = await startBooksSite({ products: 20 })
    using folder = temporaryFolder()
    const ports = [await freePort(), await freePort()]
    const proxies = ports.map((port) => `http://${login.user}:${login.password}@127.0.0.1:${port}`).join(',')
    const { code, stdout, stderr } = await run(site.url, folder.path, proxies, '--wait', '1s').result
    assert.equal(code, 4)
    assert.match(stdout + stderr, /no proxy has worked for \d+ s: none of the 2 proxies is up/)
    assert.equal(site.stats().requests, 0, 'nothing went out directly')
    assertNoLogin(folder.path, stdout, stderr)
  })

  it('rejects a bad list without repeating it', async () => {
    const { code, stderr } = await sluice(['run', 'books', '--proxies', `ftp://${login.user}:${login.password}@x:1`])
    assert.equal(code, 2)
    assert.match(stderr, /entry 1 is not a proxy/)
    assert.doesNotMatch(stderr, new RegExp(login.password))
  })
})

function logOf(folder: string): string {
  let text = ''
  for (const file of filesBelow(folder)) if (/log/.test(file)) text += readFileSync(file, 'latin1')
  return text
}

function chain(urls: readonly string[], given: { waitMsMax: number }) {
  const addresses = { connectTimeoutMs: 2000, allowPrivate: true, allowAddresses: [] }
  const bus = createEventBus()
  const events: RunEvent[] = []
  bus.on((event) => events.push(event))
  const pool = openProxyPool({ tiers: [urls], addresses, events: bus, recheckMs: 50, ...given })
  const http = openHttp({
    ...addresses,
    userAgent: 'MyBot/1.0',
    timeoutMs: 5000,
    bodyBytesMax: 1e6,
    redirectsMax: 3,
    connectionsPerHost: 4,
    retryAfterMsMax: 60_000,
    isOnlyProxied: true,
  })
  const perHost = { concurrency: 8, rps: 0, delayMs: 0 }
  const rateLimit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0 })
  const identities = createIdentities({ mode: 'honest', proxies: pool, events: bus })
  const fetcher = createFetcher({ http, rateLimit, identities, retryAfterMsMax: 60_000 })
  const close = async () => {
    identities[Symbol.dispose]()
    await http[Symbol.asyncDispose]()
  }
  return { fetcher, http, events, pool, [Symbol.asyncDispose]: close }
}

describe('a page without a proxy', () => {
  it('waits for one to come back', async () => {
    await using site = await startBooksSite({ products: 20 })
    await using only = await tinyproxyForTests(login)
    await using way = chain([only.url], { waitMsMax: 20_000 })
    await only.stop()
    const page = way.fetcher.fetch({ url: site.url }, never)
    await until('the proxy is down', () => way.events.some(({ type }) => type === 'proxy'))
    await only.start()
    assert.equal((await page).status, 200)
    const states = way.events.flatMap((event) => (event.type === 'proxy' ? [`${event.proxy} ${event.state}`] : []))
    assert.deepEqual(states, [`127.0.0.1:${only.port} down`, `127.0.0.1:${only.port} up`])
  })

  it('is postponed at no cost if none does, and never goes out directly', async () => {
    await using site = await startBooksSite({ products: 20 })
    const dead = `http://${login.user}:${login.password}@127.0.0.1:${await freePort()}`
    await using way = chain([dead], { waitMsMax: 100 })
    const error = (await way.fetcher.fetch({ url: site.url }, never).catch((thrown) => thrown)) as ScrapeError
    assert.equal(error.code, 'E_PROXIES_DOWN')
    assert.equal(decide(error, { attempt: 99 }, limitsSchema.parse({ retries: 0 }), 0).kind, 'postpone')
    await assert.rejects(way.http.exchange({ url: site.url }, never), { code: 'E_PROXY' })
    assert.equal(site.stats().requests, 0)
    assert.doesNotMatch(JSON.stringify([way.events, way.pool.status(), error, error.details]), /geheim/)
  })

  it('is not lost to a proxy that rejects our password', async () => {
    await using site = await startBooksSite({ products: 20 })
    const wrong = first.url.replace(login.password, 'wrong')
    await using way = chain([wrong, second.url], { waitMsMax: 1000 })
    for (let i = 0; i < 4; i++) assert.equal((await way.fetcher.fetch({ url: `${site.url}?${i}` }, never)).status, 200)
    const [refused] = way.pool.status()
    assert.equal(refused!.isUp && refused!.failuresInARow === 0, false)
    assert.match(way.pool.status()[0]!.reason, /40[17]/)
  })
})
