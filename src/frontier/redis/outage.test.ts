/** Lost replies, silent connections, and a server that forgets: calls are repeated, and executed once. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { until } from '../../../test/fleet.ts'
import { startRedis } from '../../../test/services/redis.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { Outage } from '../../drivers/outage.ts'
import { DEFAULT_MS } from '../../drivers/redis/connection.ts'
import { openRedisFrontier } from './engine.ts'
import { Link, prefixOf } from './link.ts'
import { dropAbandoned } from './runs.ts'

const redis = await startRedis()
after(() => redis[Symbol.asyncDispose]())

/** A proxy to Redis that on request cuts the connection instead of passing on the next reply. */
async function swallowing() {
  const sockets = new Set<Socket>()
  const state = { isSwallowing: false, swallowed: 0 }
  const server = createServer((near) => {
    const far = connect(redis.port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        near.destroy()
        far.destroy()
        sockets.delete(socket)
      })
    }
    near.pipe(far)
    far.on('data', (data) => {
      if (!state.isSwallowing) near.write(data)
      else {
        state.isSwallowing = false
        state.swallowed++
        near.destroy()
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    state,
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** A separate client for the test. */
function clientOf(t: TestContext, url: string): Redis {
  const client = new Redis(url)
  t.after(() => client.disconnect())
  return client
}

const page = (n: number) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0 })
const pages = (count: number) => Array.from({ length: count }, (_, i) => page(i))

test('redis: executes a call once if its reply was lost', async () => {
  await using wire = await swallowing()
  const outages: Outage[] = []
  await using frontier = await openRedisFrontier(wire.url, {
    runId: 'lost',
    onOutage: (outage) => outages.push(outage),
  })
  const swallow = async <T>(call: () => Promise<T>): Promise<T> => {
    wire.state.isSwallowing = true
    return await call()
  }
  assert.deepEqual(await swallow(() => frontier.add(pages(10))), { added: 10, seen: 0 })
  const leases = await swallow(() => frontier.claim({ max: 4, workerId: 'w', leaseMs: 60_000 }))
  assert.equal(leases.length, 4)
  assert.equal((await frontier.stats()).claimed, 4, 'the lost answer’s leases are the ones given')
  const [first, second, third, fourth] = leases
  const committed = await swallow(() =>
    frontier.commit([
      { kind: 'done', lease: first!, tasks: [page(10)], items: [{ key: 'a', json: '{}' }] },
      { kind: 'retry', lease: second!, atMs: 0, error: { code: 'E_SERVER', class: 'server-error', message: 'x' } },
      { kind: 'dead', lease: third!, error: { code: 'E_SERVER', class: 'server-error', message: 'x' } },
    ]),
  )
  assert.deepEqual(committed, {
    settled: 3,
    stale: [],
    added: 1,
    seen: 0,
    items: { new: 1, same: 0, changed: 0, backlog: 1 },
  })
  assert.deepEqual(await swallow(() => frontier.extend([fourth!], 60_000)), { lost: [] })
  assert.deepEqual(await swallow(() => frontier.sweep({ lossesMax: 3, workerIds: 'all' })), { returned: 1, dead: 0 })
  assert.equal(await swallow(() => frontier.dead.retry()), 1)
  const { pending, claimed, completed, dead, seen, items } = await frontier.stats()
  assert.deepEqual(
    { pending, claimed, completed, dead, seen, items },
    { pending: 10, claimed: 0, completed: 1, dead: 0, seen: 11, items: 1 },
  )
  assert.equal(wire.state.swallowed, 6)
  assert.ok(outages.length >= 6)
})

test('redis: reports each reconnection attempt once, however many calls wait for it', async () => {
  await using own = await startRedis()
  const outages: Outage[] = []
  await using frontier = await openRedisFrontier(own.url, { onOutage: (outage) => outages.push(outage) })
  await own.stop('SIGKILL')
  const waiting = Promise.all(Array.from({ length: 20 }, () => frontier.stats()))
  while (outages.length < 5) await sleep(20)
  await own.start()
  assert.equal((await waiting).length, 20)
  assert.deepEqual(outages.map(({ attempt }) => attempt), outages.map((_, i) => i + 1)) // biome-ignore format: one line reads better
  for (const { error, waitMs } of outages) assert.ok(error.message.length > 0 && waitMs > 0)
})

/** A proxy whose connections can be silenced without being cut. Later connections are not affected. */
async function hushing() {
  const sockets = new Set<Socket>()
  const made: { isSilent: boolean }[] = []
  const server = createServer((near) => {
    const state = { isSilent: false }
    made.push(state)
    const far = connect(redis.port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    near.on('data', (data) => state.isSilent || far.write(data))
    far.on('data', (data) => state.isSilent || near.write(data))
    near.on('close', () => far.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    made,
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

test('redis: replaces a connection that has gone silent, and repeats the call', async () => {
  await using wire = await hushing()
  const times = { outageMs: 10_000, silenceMsMax: 200, answerMsMax: 500 }
  await using frontier = await openRedisFrontier(wire.url, { runId: 'silent', ...times })
  await frontier.add(pages(3))
  wire.made[0]!.isSilent = true
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 })
  assert.equal((await frontier.commit([{ kind: 'done', lease: lease! }])).settled, 1)
  const { completed, claimed, pending } = await frontier.stats()
  assert.deepEqual({ completed, claimed, pending }, { completed: 1, claimed: 0, pending: 2 })
  assert.equal(wire.made.length, 2)
})

test('redis: gives up a silent connection long before it gives up the call', () => {
  const { answerMsMax, silenceMsMax, outageMs } = DEFAULT_MS
  assert.ok(silenceMsMax <= answerMsMax && answerMsMax * 3 <= outageMs)
})

test('redis: a worker from an earlier start of the run settles nothing in the new one, and gets none of its answers', async () => {
  await using old = await openRedisFrontier(redis.url, { runId: 'again' })
  await old.add([page(1)])
  const [stale] = await old.claim({ max: 1, workerId: 'old', leaseMs: 60_000 })
  await using fresh = await openRedisFrontier(redis.url, { runId: 'again', fresh: true })
  await fresh.add([page(1)])
  const [lease] = await fresh.claim({ max: 1, workerId: 'new', leaseMs: 60_000 })
  assert.notEqual(stale!.token, lease!.token)
  const isLost = (error: ScrapeError) => error.code === 'E_QUEUE_LOST'
  await assert.rejects(old.commit([{ kind: 'done', lease: stale!, items: [{ key: 'old', json: '{}' }] }]), isLost)
  const committed = await fresh.commit([{ kind: 'done', lease: lease!, items: [{ key: 'new', json: '{}' }] }])
  assert.deepEqual([committed.settled, committed.items.new], [1, 1])
  await assert.rejects(old.add([page(10), page(11)]), isLost)
  assert.deepEqual(await fresh.add([page(12), page(13)]), { added: 2, seen: 0 })
  assert.equal((await fresh.stats()).seen, 3)
})

test('redis: adds the links of a page again after the server has forgotten its last second', async (t) => {
  await using own = await startRedis()
  const client = clientOf(t, own.url)
  await using frontier = await openRedisFrontier(own.url, { runId: 'forgets' })
  await frontier.add([page(0)])
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 })
  const before = await Promise.all((await client.keys('*')).map(async (key) => ({ key, value: await client.dumpBuffer(key) }))) // biome-ignore format: one line reads better
  const links = pages(20).slice(1)
  assert.equal((await frontier.commit([{ kind: 'done', lease: lease!, tasks: links }])).added, 19)
  await client.flushall()
  for (const { key, value } of before) await client.restore(key, 0, value!)
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await frontier.sweep({ lossesMax: 3, workerIds: ['w'] })
  const [again] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 })
  const committed = await frontier.commit([{ kind: 'done', lease: again!, tasks: links }])
  assert.deepEqual([committed.settled, committed.added, committed.seen], [1, 19, 0])
  assert.equal((await frontier.stats()).pending, 19)
})

test('redis: does not mistake a server that lost its data for a run with nothing left', async (t) => {
  await using own = await startRedis({ settings: ['--appendonly', 'no'] })
  const isLost = ({ code, message }: ScrapeError) =>
    code === 'E_QUEUE_LOST' && message.includes(`127.0.0.1:${own.port}/0`)
  const losses = [() => clientOf(t, own.url).flushall(), () => own.stop('SIGKILL').then(() => own.start())]
  for (const lose of losses) {
    await using frontier = await openRedisFrontier(own.url, { runId: 'emptied' })
    await frontier.setMeta('started', 'yes')
    await frontier.add(pages(3))
    const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 })
    await lose()
    await assert.rejects(frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 }), isLost)
    await assert.rejects(frontier.commit([{ kind: 'done', lease: lease! }]), isLost)
    await assert.rejects(frontier.extend([lease!], 60_000), isLost)
    await assert.rejects(frontier.sweep({ lossesMax: 3 }), isLost)
    await assert.rejects(frontier.stats(), isLost)
    await assert.rejects(frontier.getMeta('started'), isLost)
    await assert.rejects(frontier.setMeta('started', 'no'), isLost)
    await assert.rejects(frontier.pause('now'), isLost)
    await assert.rejects(frontier.dead.retry(), isLost)
    const isGone = (error: ScrapeError) => error.code === 'E_RUN_NOT_FOUND'
    await assert.rejects(openRedisFrontier(own.url, { runId: 'emptied', mustExist: true }), isGone)
    assert.deepEqual(await clientOf(t, own.url).keys('*emptied*'), [], 'nothing of the run is made again')
  }
})

test('redis: forgets answers that were received', async () => {
  await using frontier = await openRedisFrontier(redis.url, { runId: 'heard' })
  for (let i = 0; i < 20; i++) await frontier.add([page(i)])
  const client = new Redis(redis.url)
  try {
    assert.equal(await client.hlen('sluice:{heard}:answers'), 1)
  } finally {
    client.disconnect()
  }
})

test('redis: fails with E_SERVICE when the server stays down', async () => {
  const isService = (error: ScrapeError) =>
    error.code === 'E_SERVICE' && /127.0.0.1:1\/0 is unreachable/.test(error.message)
  await assert.rejects(openRedisFrontier('redis://127.0.0.1:1/0', { outageMs: 300 }), isService)
  await using own = await startRedis()
  await using frontier = await openRedisFrontier(own.url, { outageMs: 300 })
  await own.stop('SIGKILL')
  await assert.rejects(frontier.stats(), (error: ScrapeError) => error.code === 'E_SERVICE')
  await own.start()
  await until('it answers again', () =>
    frontier.stats().then(
      ({ seen }) => seen === 0,
      () => false,
    ),
  )
})

test('redis: rejects a server that would evict tasks', async (t) => {
  await using own = await startRedis()
  const client = clientOf(t, own.url)
  for (const policy of ['allkeys-lru', 'volatile-ttl']) {
    await client.config('SET', 'maxmemory-policy', policy)
    await assert.rejects(openRedisFrontier(own.url), new RegExp(`maxmemory-policy ${policy}`))
  }
})

test('redis: drops runs unused for a month when another run is opened', async () => {
  const client = new Redis(redis.url)
  try {
    {
      await using frontier = await openRedisFrontier(redis.url, { runId: 'old' })
      await frontier.add(pages(3))
    }
    await client.zadd('sluice:runs', Date.now() - 31 * 86_400_000, 'sluice:{old}:')
    await using _ = await openRedisFrontier(redis.url, { runId: 'new' })
    assert.deepEqual(await client.keys('sluice:{old}:*'), [])
  } finally {
    client.disconnect()
  }
})

test('redis: trusts the clock of the server about abandoned runs, not that of this machine', async (t) => {
  await using living = await openRedisFrontier(redis.url, { runId: 'living' })
  await living.add(pages(3))
  const now = Date.now
  t.mock.method(Date, 'now', () => now() + 31 * 86_400_000)
  for (const runId of ['ahead-1', 'ahead-2']) {
    await using _ = await openRedisFrontier(redis.url, { runId })
  }
  assert.equal((await living.stats()).pending, 3)
})

test('redis: leaves a run alone that is in use again by the time it would be dropped', async (t) => {
  const client = clientOf(t, redis.url)
  await using frontier = await openRedisFrontier(redis.url, { runId: 'revived' })
  await frontier.add(pages(3))
  const link = new Link(redis.url, 'other')
  try {
    assert.equal(await link.attempt(() => dropAbandoned(link, prefixOf('revived'))), false)
    assert.equal((await frontier.stats()).pending, 3)
    await client.zadd('sluice:runs', Date.now() - 31 * 86_400_000, prefixOf('revived'))
    assert.equal(await dropAbandoned(link, prefixOf('revived')), true)
    await assert.rejects(frontier.stats(), (error: ScrapeError) => error.code === 'E_QUEUE_LOST')
  } finally {
    link.close()
  }
})

test('redis: skips entries of another program, and reports them once', async (t) => {
  const client = clientOf(t, redis.url)
  const warnings: string[] = []
  await using frontier = await openRedisFrontier(redis.url, {
    runId: 'strays',
    onWarning: (text) => warnings.push(text),
  })
  const key = (name: string) => `${prefixOf('strays')}${name}`
  await frontier.add(pages(20))
  const lists = ['ready:1', 'ready:99', 'ready:bulk']
  for (const list of lists) await client.rpush(key(list), 'garbage', '', '999', '1', '{"url":"x"}')
  await client.lpush(key('ready:1'), 'garbage', '-1', '0')
  const sets = ['back:1', 'delayed', 'suspect', 'expiry', 'turn:bulk:0', 'levels:bulk', 'dead', 'hosts']
  for (const set of sets) await client.zadd(key(set), 1, 'garbage', 2, '777')
  await client.hset(key('lease'), 'garbage', 'garbage', '778', 'a b c')
  await client.hset(key('lanes:pending'), 'other', 'garbage')
  await client.hset(key('task'), '3', 'garbage', '4', '99 0 0|[]', 'garbage', 'garbage')
  const worked = new Set<string>()
  for (let rounds = 0; (await frontier.stats()).remaining > 0; rounds++) {
    assert.ok(rounds < 100, 'the run goes through')
    const leases = await frontier.claim({ max: 3, workerId: 'w', leaseMs: 60_000 })
    for (const { task } of leases) {
      assert.ok(!worked.has(task.url), task.url)
      worked.add(task.url)
    }
    await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))
    await frontier.sweep({ lossesMax: 3 })
  }
  const { completed, failed, seen } = await frontier.stats()
  assert.deepEqual({ completed, failed, seen, worked: worked.size }, { completed: 18, failed: 2, seen: 20, worked: 18 })
  await frontier.sweep({ lossesMax: 3, workerIds: 'all' })
  assert.deepEqual(await frontier.dead.list(), [])
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /entries under sluice:\{strays\}: in Redis at .* were skipped/)
})

test('opens a run of version 0.1, which has tasks and no epoch', async (t) => {
  const runId = 'from-0.1'
  const client = clientOf(t, redis.url)
  {
    await using first = await openRedisFrontier(redis.url, { runId })
    await first.add([{ url: 'https://shop.example/1', route: 'page', data: null, depth: 0 }])
  }
  await client.hdel(`${prefixOf(runId)}totals`, 'epoch')
  await using again = await openRedisFrontier(redis.url, { runId, mustExist: true })
  assert.equal((await again.stats()).remaining, 1)
})
