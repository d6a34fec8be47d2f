import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { ScrapeError } from '../../core/errors.ts'
import type { EventOf, RunEvent } from '../../core/events.ts'
import type { PooledProxy } from './pooled-proxy.ts'
import { openProxyPool, type ProxyPoolOptions } from './proxy-pool.ts'
import { ProxyTiers } from './proxy-tiers.ts'

const never = new AbortController().signal
const addresses = { connectTimeoutMs: 1000, allowPrivate: true, allowAddresses: [] }
const url = (n: number) => `http://user:secret@10.0.0.${n}:3128`

function given(t: TestContext, options: Partial<ProxyPoolOptions> & { count?: number } = {}) {
  const clock = { nowMs: 1_000_000 }
  const events: RunEvent[] = []
  const answers = new Map<string, boolean>()
  const { count = 3, ...rest } = options
  const pool = openProxyPool({
    tiers: [Array.from({ length: count }, (_, i) => url(i + 1))],
    addresses,
    events: { emit: (event) => void events.push(event) },
    now: () => clock.nowMs,
    random: () => 1,
    recheckMs: 5,
    waitMsMax: 50,
    check: async (at) => {
      if (answers.get(at) === false) throw new ScrapeError('E_PROXY', 'the proxy is away')
      return 1
    },
    ...rest,
  })
  t.after(() => pool[Symbol.dispose]())
  return { pool, clock, events, answers }
}

/** Makes it fail as the connector would: nobody listens there. */
async function fail(proxy: PooledProxy, host = 'a.test'): Promise<Error | null> {
  const connect = proxy.guard(new URL(`http://${host}`))
  return await new Promise((resolve) => {
    connect({ hostname: host, port: '80', protocol: 'http:' }, (...[error, socket]: unknown[]) => {
      ;(socket as Socket | null)?.destroy()
      resolve(error as Error | null)
    })
  })
}

async function nobody(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return `http://kunde:geheim@127.0.0.1:${port}`
}

/** A proxy that does as it is told. */
async function openEgressProxy() {
  const state = { does: 'lets through' as 'reset' | '407' | '403' | 'lets through', url: '' }
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      if (state.does === 'reset') socket.resetAndDestroy()
      else if (state.does === 'lets through') socket.write('HTTP/1.1 200 OK\r\n\r\n')
      else socket.end(`HTTP/1.1 ${state.does} No\r\n\r\n`)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  state.url = `http://kunde:geheim@127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(state, { [Symbol.asyncDispose]: async () => void server.close() })
}

const lineOf = (event: RunEvent) =>
  event.type === 'proxy'
    ? `proxy ${event.state}`
    : event.type === 'log'
      ? `${event.level} ${event.message.slice(0, event.level === 'warn' ? 17 : 20)}`
      : event.type

describe('a pool of proxies', () => {
  it('uses all of them in turn, and those that do badly less', (t) => {
    const { pool } = given(t)
    const [worst] = [pool.pick('a.test')!]
    for (let i = 0; i < 30; i++) pool.onGood(pool.pick('a.test')!, 'a.test')
    const before = countPicks(() => pool.pick('a.test')!.name, 300)
    assert.ok(Math.max(...before.values()) - Math.min(...before.values()) <= 3, JSON.stringify([...before]))
    pool.onBlocked(worst, 'other.test', '403')
    assert.equal(countPicks(() => pool.pick('a.test')!.name, 30).size, 3, 'a block by one site is no matter to others')
  })

  it('leaves one that a site blocks to other sites, until its rest is over', (t) => {
    const { pool, clock, events } = given(t, { restMs: 1000 })
    const blocked = pool.pick('a.test')!
    pool.onBlocked(blocked, 'a.test', '403')
    assert.equal(countPicks(() => pool.pick('a.test')!.name, 20).has(blocked.name), false)
    assert.ok(countPicks(() => pool.pick('b.test')!.name, 20).has(blocked.name))
    clock.nowMs += 1001
    assert.ok(countPicks(() => pool.pick('a.test')!.name, 20).has(blocked.name))
    const [event] = events as EventOf<'proxy'>[]
    assert.deepEqual([event!.state, event!.host, event!.untilMs], ['down', 'a.test', 1_001_000])
  })

  it('rests for a site while all do, says so once, and goes on with the first whose rest is over', async (t) => {
    const { pool, clock, events } = given(t, { count: 2, restMs: 1000 })
    const [one, other] = [pool.pick('a.test')!, pool.pick('a.test')!]
    pool.onBlocked(one, 'a.test', 'E_CAPTCHA')
    clock.nowMs += 100
    for (let i = 0; i < 50; i++) for (const proxy of [one, other]) pool.onBlocked(proxy, 'a.test', 'E_CAPTCHA')
    assert.equal(events.length, 2)
    assert.equal(pool.pick('a.test'), undefined)
    assert.deepEqual([pool.countFor('a.test'), pool.countFor('b.test')], [0, 2])
    const error = (await pool.wait('a.test', never).catch((thrown) => thrown)) as ScrapeError
    assert.deepEqual([error.code, error.verdict, error.details.retryAfterMs], ['E_PROXIES_DOWN', 'later', 900])
    clock.nowMs += 900
    for (let i = 0; i < 5; i++) assert.equal(await pool.wait('a.test', never), one)
    pool.onBlocked(one, 'a.test', 'E_CAPTCHA')
    assert.equal((events[2] as EventOf<'proxy'>).untilMs, clock.nowMs + 2000, 'longer than the last time')
    clock.nowMs += 100
    pool.onGood(await pool.wait('a.test', never), 'a.test')
    pool.onBlocked(other, 'a.test', 'E_CAPTCHA')
    assert.equal((events[3] as EventOf<'proxy'>).untilMs, clock.nowMs + 1000, 'and as at first after a page came')
  })

  it('does not wait for ever for a site that blocks all of them', async (t) => {
    const { pool, clock } = given(t, { count: 1, restMs: 9000, patienceMs: 20_000 })
    const proxy = pool.pick('a.test')!
    const startMs = clock.nowMs
    for (let looks = 0; looks < 100; looks++) {
      pool.onBlocked(proxy, 'a.test', 'E_BLOCKED')
      const result = await pool.wait('a.test', never).catch((thrown: ScrapeError) => thrown)
      if (!(result instanceof ScrapeError)) break
      clock.nowMs += result.details.retryAfterMs!
    }
    assert.equal(clock.nowMs - startMs, 20_000)
    assert.equal(pool.pick('a.test'), proxy)
  })

  it('prefers another one for a page that was turned away, and repeats itself when there is no other', (t) => {
    const { pool } = given(t, { count: 2 })
    const [one] = [pool.pick('a.test')!]
    for (let i = 0; i < 5; i++) assert.notEqual(pool.pick('a.test', new Set([one])), one)
    const both = new Set([one, pool.pick('a.test', new Set([one]))!])
    assert.notEqual(pool.pick('a.test', both), undefined)
  })

  it('gives a name the same one every time, and another only while that is down', async (t) => {
    const dead = await nobody()
    const { pool, answers } = given(t, { tiers: [[dead, url(1), url(2)]] })
    answers.set(dead, false)
    const names = Array.from({ length: 60 }, (_, i) => `user-${i}`)
    const before = names.map((name) => pool.pickFor(name)!.name)
    assert.ok(new Set(before).size === 3)
    await fail(pool.pickFor(names[before.findIndex((name) => name.startsWith('127.'))]!)!)
    names.forEach((name, i) => {
      const now = pool.pickFor(name)!.name
      if (before[i]!.startsWith('127.')) assert.doesNotMatch(now, /^127\./)
      else assert.equal(now, before[i])
    })
  })

  it('takes one whose connection fails out, rests it ever longer, and checks before it is used again', async (t) => {
    const dead = await nobody()
    const { pool, clock, events, answers } = given(t, { tiers: [[dead, url(1)]], restMs: 1000, restMsMax: 3000 })
    answers.set(dead, false)
    const [first] = pool.status()
    let proxy = pool.pick('a.test')!
    while (proxy.name !== first!.proxy) proxy = pool.pick('a.test')!
    assert.equal(((await fail(proxy)) as ScrapeError).code, 'E_PROXY')
    assert.equal(pool.status()[0]!.isUp, false)
    assert.equal((events[0] as EventOf<'proxy'>).untilMs, clock.nowMs + 1000)
    for (let i = 0; i < 5; i++) assert.notEqual(pool.pick('a.test')!.name, first!.proxy)
    answers.set(dead, true)
    clock.nowMs += 1001
    await settled(() => pool.status()[0]!.isUp)
    assert.deepEqual(events.map((event) => (event as EventOf<'proxy'>).state), ['down'], 'no tunnel has stood yet') // biome-ignore format: one line
    assert.doesNotMatch(JSON.stringify([events, pool.status()]), /geheim|kunde|secret/)
  })

  it('says once that it is down and back, and back only after a tunnel was established', async (t) => {
    await using door = await openEgressProxy()
    const { pool, events, clock } = given(t, { tiers: [[door.url]] })
    door.does = 'reset'
    for (let flap = 0; flap < 5; flap++) {
      assert.ok(await fail(await pool.wait('a.test', never)))
      clock.nowMs += 60_000 // the next trial is due
    }
    assert.equal(pool.areAllDown, true)
    assert.deepEqual(events.map(lineOf), ['proxy down', 'warn the proxy is down'])
    door.does = 'lets through'
    assert.equal(await fail(await pool.wait('a.test', never)), null)
    assert.deepEqual(events.slice(2).map(lineOf), ['proxy up', 'info the proxy 127.0.0.1:'])
    assert.equal(pool.areAllDown, false)
  })

  it('takes one that refuses our login out for good, and ends when all do', async (t) => {
    await using door = await openEgressProxy()
    await using other = await openEgressProxy()
    const { pool, events, clock } = given(t, { tiers: [[door.url, other.url]] })
    Object.assign(door, { does: '407' })
    const [refusing, good] = pool.status().map(({ proxy }) => proxy)
    const members = [pool.pick('a.test')!, pool.pick('a.test')!]
    await fail(members.find(({ name }) => name === refusing)!)
    await fail(members.find(({ name }) => name === refusing)!)
    clock.nowMs += 7_200_000
    for (let i = 0; i < 5; i++) assert.equal((await pool.wait('a.test', never)).name, good)
    const linesOf = () => events.flatMap((event) => (event.type === 'log' ? [event.message] : []))
    const lines = linesOf()
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, /rejects our user name or password \(407\): 127\.0\.0\.1:\d+ is not used again$/)
    other.does = '407'
    await fail(pool.pick('a.test')!)
    await assert.rejects(pool.wait('a.test', never), { code: 'E_PROXY_REFUSED', verdict: 'halt' })
    assert.doesNotMatch(linesOf().join('\n'), /pages wait/)
    assert.doesNotMatch(JSON.stringify([events, pool.status()]), /geheim|kunde/)
  })

  it('stops waiting for proxies that let nothing through for too long', async (t) => {
    await using door = await openEgressProxy()
    const { pool, clock } = given(t, { tiers: [[door.url]], downMsMax: 180_000 })
    door.does = 'reset'
    const proxy = pool.pick('a.test')!
    await fail(proxy)
    clock.nowMs += 179_000
    assert.equal(await pool.wait('a.test', never), proxy, 'it answers checks, so it is tried')
    await fail(proxy)
    clock.nowMs += 2000
    const error = await pool.wait('a.test', never).catch((thrown: ScrapeError) => thrown)
    assert.ok(error instanceof ScrapeError)
    assert.deepEqual([error.code, error.class], ['E_PROXIES_LOST', 'stopped'])
    assert.match(error.message, /^no proxy has worked for 181 s: the proxy 127\.0\.0\.1:\d+ /)
  })

  it('does not take a connection that its rules forbid for a proxy that is down', async (t) => {
    await using door = await openEgressProxy()
    const { pool, events } = given(t, { tiers: [[door.url]] })
    door.does = '403'
    assert.match((await fail(pool.pick('a.test')!))?.message ?? '', /answers CONNECT to a\.test:80 with 403/)
    assert.deepEqual([pool.status()[0]!.isUp, events.length], [true, 0])
  })

  it('refuses to wait for ever, and says when to come again', async (t) => {
    const dead = await nobody()
    const { pool, answers, clock } = given(t, { tiers: [[dead]] })
    answers.set(dead, false)
    await fail(pool.pick('a.test')!)
    const waiting = pool.wait('a.test', never).catch((error: ScrapeError) => error)
    clock.nowMs += 100
    const error = (await waiting) as ScrapeError
    assert.deepEqual([error.code, error.verdict, error.details.retryAfterMs], ['E_PROXIES_DOWN', 'later', 25])
  })

  it('tells proxies at one address apart without their login', (t) => {
    const { pool } = given(t, { tiers: [['http://a:1@h.test:1', 'http://b:2@h.test:1']] })
    assert.deepEqual(pool.status().map(({ proxy }) => proxy), ['h.test:1', 'h.test:1#2']) // biome-ignore format: one line
  })

  it('begins with none that does not answer, and not at all when none does', async (t) => {
    const { pool, answers } = given(t)
    answers.set(url(2), false)
    await pool.checkAll()
    assert.deepEqual(pool.status().map(({ isUp }) => isUp), [true, false, true]) // biome-ignore format: one line
    const none = given(t)
    for (const n of [1, 2, 3]) none.answers.set(url(n), false)
    await assert.rejects(none.pool.checkAll(), { code: 'E_PROXY', message: 'none of the 3 proxies can be reached' })
  })
})

describe('tiers', () => {
  it('climb where cheap ones are turned away, and come down again', () => {
    const tiers = new ProxyTiers(3)
    assert.equal(tiers.next('a.test'), 0)
    tiers.onError('a.test', 0)
    assert.equal(tiers.next('a.test'), 1)
    assert.equal(tiers.next('b.test'), 0, 'other sites stay')
    tiers.onError('a.test', 1)
    tiers.onError('a.test', 1)
    assert.equal(tiers.next('a.test'), 2)
    const later = Array.from({ length: 40 }, () => tiers.next('a.test'))
    assert.equal(later.at(-1), 0)
  })

  it('decide which proxies a site gets', (t) => {
    const { pool } = given(t, { tiers: [[url(1), url(2)], [url(3)]] })
    assert.equal(countPicks(() => pool.pick('a.test')!.tier, 10).get(1), undefined)
    for (const proxy of [pool.pick('a.test')!, pool.pick('a.test')!]) pool.onBlocked(proxy, 'a.test', '403')
    assert.equal(pool.pick('a.test')!.tier, 1)
  })
})

function countPicks<T>(pick: () => T, times: number): Map<T, number> {
  const counts = new Map<T, number>()
  for (let i = 0; i < times; i++) {
    const one = pick()
    counts.set(one, (counts.get(one) ?? 0) + 1)
  }
  return counts
}

async function settled(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}
