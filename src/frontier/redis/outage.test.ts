/** An answer that is lost on its way: the call is repeated, and carried out once. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { startRedis } from '../../../test/services/redis.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { Outage } from '../contract.ts'
import { openRedisFrontier } from './engine.ts'

const redis = await startRedis()
after(() => redis[Symbol.asyncDispose]())

/** A wire to Redis that cuts itself in place of the next answer, when told to. */
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

const page = (n: number) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0 })
const pages = (count: number) => Array.from({ length: count }, (_, i) => page(i))

test('redis: carries out a call once whose answer was lost', async () => {
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

test('redis: forgets the answers that were heard', async () => {
  await using frontier = await openRedisFrontier(redis.url, { runId: 'heard' })
  for (let i = 0; i < 20; i++) await frontier.add([page(i)])
  const client = new Redis(redis.url)
  try {
    assert.equal(await client.hlen('sluice:{heard}:answers'), 1)
  } finally {
    client.disconnect()
  }
})

test('redis: fails with E_SERVICE when the server stays away', async () => {
  const isService = (error: ScrapeError) =>
    error.code === 'E_SERVICE' && /127.0.0.1:1\/0 is unreachable/.test(error.message)
  await assert.rejects(openRedisFrontier('redis://127.0.0.1:1/0', { outageMs: 300 }), isService)
  await using own = await startRedis()
  await using frontier = await openRedisFrontier(own.url, { outageMs: 300 })
  await own.stop('SIGKILL')
  await assert.rejects(frontier.stats(), (error: ScrapeError) => error.code === 'E_SERVICE')
  await own.start()
  assert.equal((await frontier.stats()).seen, 0)
})

test('redis: refuses a server that would throw tasks away', async () => {
  await using own = await startRedis()
  const client = new Redis(own.url)
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  client.disconnect()
  await assert.rejects(openRedisFrontier(own.url), /maxmemory-policy allkeys-lru/)
})

test('redis: drops what nobody has touched for a month when another run is opened', async () => {
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
