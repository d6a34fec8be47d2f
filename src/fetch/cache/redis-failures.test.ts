/** How often pages failed, counted in a real Redis. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { redisForTests, startRedis, type TestRedis } from '../../../test/services/redis.ts'
import { openRedisFailures } from './redis-failures.ts'

let server: TestRedis
let redis: Redis

before(async () => {
  server = await redisForTests()
  redis = new Redis(server.url)
})
after(async () => {
  redis.disconnect()
  await server[Symbol.asyncDispose]()
})

const URL_A = 'https://a.example/x?y=ä'

test('counts the failures of a page across all workers, for a day', async () => {
  {
    await using one = await openRedisFailures({ url: server.url })
    await using two = await openRedisFailures({ url: server.url })
    for (let i = 0; i < 50; i++) {
      one.count(URL_A)
      two.count(URL_A)
    }
    one.count('https://a.example/other')
  } // writes in flight are still counted
  await using reader = await openRedisFailures({ url: server.url })
  assert.equal(await reader.read(URL_A), 100)
  assert.equal(await reader.read('https://a.example/never'), 0)
  assert.equal(await redis.get(`failures:${URL_A}`), '100')
  const leftMs = await redis.pttl(`failures:${URL_A}`)
  assert.ok(leftMs > 86_000_000 && leftMs <= 86_400_000, `${leftMs} ms`)
})

test('has at most a thousand writes in flight; the rest are not counted', async () => {
  {
    await using counters = await openRedisFailures({ url: server.url })
    for (let i = 0; i < 5000; i++) counters.count('https://a.example/many')
  }
  assert.equal(await redis.get('failures:https://a.example/many'), '1000')
})

test('leaves data of others under such a key alone', async () => {
  await redis.hset('failures:https://a.example/foreign', 'a', '1')
  await redis.set('failures:https://a.example/word', 'many')
  let aways = 0
  await using counters = await openRedisFailures({ url: server.url, onAway: () => aways++ })
  for (const name of ['foreign', 'word']) counters.count(`https://a.example/${name}`)
  assert.equal(await counters.read('https://a.example/foreign'), undefined)
  assert.equal(await counters.read('https://a.example/word'), 0)
  assert.equal(aways, 0)
})

test('does no harm while Redis is down, and counts again afterwards', async () => {
  await using own = await startRedis()
  let aways = 0
  let backs = 0
  await using counters = await openRedisFailures({ url: own.url, onAway: () => aways++, onBack: () => backs++ })
  counters.count(URL_A)
  while ((await counters.read(URL_A)) !== 1) await delay(5)
  await own.stop('SIGKILL')
  assert.equal(await counters.read(URL_A), undefined)
  for (let i = 0; i < 100; i++) counters.count(URL_A)
  await own.start()
  while ((await counters.read(URL_A)) === undefined) await delay(20)
  counters.count(URL_A)
  while ((await counters.read(URL_A)) !== 2) await delay(5)
  assert.deepEqual([aways, backs], [1, 1])
})
