/** Rates, pauses and requests a minute of a fleet on a real Redis. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { redisForTests, startRedis, type TestRedis } from '../../test/services/redis.ts'
import { every, startFleet, testFleetSlots, until } from './fleet-slots.test-suite.ts'
import { createRateLimit } from './rate-limit.ts'
import { openRedisSlots } from './redis-slots.ts'

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

async function serverNowMs(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

const minuteOf = (ms: number) => Math.floor(ms / 60_000)

/** The minute the rest of a test may count on: one with at least so much of it left. */
async function minuteWithRoom(ms: number): Promise<number> {
  const leftMs = 60_000 - ((await serverNowMs()) % 60_000)
  if (leftMs < ms) await delay(leftMs + 50)
  return minuteOf(await serverNowMs())
}

testFleetSlots({
  url: () => server.url,
  open: openRedisSlots,
  async startServer() {
    const own = await startRedis()
    return Object.assign(own, { kill: () => own.stop('SIGKILL') })
  },
})

describe('slots in Redis', () => {
  it('count the starts of each minute under the old name, and leave nothing behind for long', async () => {
    const minute = await minuteWithRoom(5000)
    await using slots = await openRedisSlots({ url: server.url })
    await slots.take(every(50, 'count.test', 3))
    await slots.take(every(50, 'count.test', 2))
    slots.pause('paused.test', 5000)
    await slots.take(every(0, 'paused.test', 0))
    assert.equal(await redis.get(`ratelimit:count.test:${minute}`), '5')
    const keys = await redis.keys('*')
    assert.ok(keys.length >= 4, keys.join())
    for (const key of keys) {
      const leftMs = await redis.pttl(key)
      assert.ok(leftMs > 0 && leftMs <= 181_000, `${key} lasts ${leftMs} ms`)
    }
    assert.ok((await redis.pttl('sluice:slots:paused.test')) > 4000)
  })

  it('beyond the minute’s budget are put off to the next minute', async () => {
    const minute = await minuteWithRoom(5000)
    await using slots = await openRedisSlots({ url: server.url, perMinute: 4 })
    await using other = await openRedisSlots({ url: server.url, perMinute: 4 })
    assert.equal((await slots.take(every(10, 'budget.test', 3))).startsInMs.length, 3)
    await delay(50)
    assert.equal((await other.take(every(10, 'budget.test', 3))).startsInMs.length, 1)
    assert.deepEqual((await slots.take(every(10, 'budget.test', 3))).startsInMs, [])
    assert.equal(await redis.get(`ratelimit:budget.test:${minute}`), '4')
    assert.equal((await slots.take(every(10, 'other.test', 3))).startsInMs.length, 3) // each host has its own
  })

  it('keep three workers to the budget, and the next minute’s are given when it begins', {
    timeout: 120_000,
  }, async (t) => {
    const minute = await minuteWithRoom(10_000)
    const { arrivedMs } = await startFleet(t, { rps: 50, url: server.url, perMinute: 30 })
    await until(() => arrivedMs.length >= 30)
    const spentMs = arrivedMs[29]! - arrivedMs[0]!
    assert.ok(spentMs < 8000, `the 30 of a minute took ${spentMs} ms`)

    await redis.set(`ratelimit:turn.test:${minute}`, '2', 'EX', 120) // somebody else's, counted in the old way
    await using slots = await openRedisSlots({ url: server.url, perMinute: 2 })
    let grant = await slots.take(every(10, 'turn.test', 3))
    for (; grant.startsInMs.length === 0; grant = await slots.take(every(10, 'turn.test', 3)))
      await delay(grant.againInMs)
    const startMs = (await serverNowMs()) + grant.startsInMs[0]!
    assert.equal(minuteOf(startMs), minute + 1)
    assert.ok(startMs % 60_000 < 1500, `${startMs % 60_000} ms into the minute`)
    assert.equal(await redis.get(`ratelimit:turn.test:${minute + 1}`), String(grant.startsInMs.length))

    await until(() => arrivedMs.length >= 31)
    const nextMinuteMs = (minute + 1) * 60_000 - (await serverNowMs()) + performance.now()
    assert.ok(
      arrivedMs[30]! >= nextMinuteMs - 20,
      `one more came ${nextMinuteMs - arrivedMs[30]!} ms before its minute`,
    )
    await until(() => arrivedMs.length >= 50)
  })

  it('let be what somebody else keeps under the name of a counter', async () => {
    const minute = await minuteWithRoom(3000)
    await redis.hset(`ratelimit:foreign.test:${minute}`, 'a', '1')
    await redis.set(`ratelimit:word.test:${minute}`, 'many')
    await using slots = await openRedisSlots({ url: server.url, perMinute: 2 })
    assert.equal((await slots.take(every(10, 'foreign.test', 1))).startsInMs.length, 1)
    assert.equal((await slots.take(every(10, 'word.test', 1))).startsInMs.length, 1)
    assert.deepEqual(await redis.hgetall(`ratelimit:foreign.test:${minute}`), { a: '1' })
    await redis.del(`ratelimit:foreign.test:${minute}`, `ratelimit:word.test:${minute}`)
  })

  it('are not held up by a clock that was turned back', async () => {
    await using slots = await openRedisSlots({ url: server.url })
    await slots.take(every(1000, 'jump.test'))
    slots.pause('jump.test', 300)
    await slots.take(every(1000, 'jump.test')) // after the pause was written
    const key = 'sluice:slots:jump.test'
    for (const field of ['tat', 'until']) await redis.hincrbyfloat(key, field, 3_600_000)
    const { pausedMs } = await slots.take(every(1000, 'jump.test'))
    assert.ok(pausedMs > 0 && pausedMs <= 300, `paused for ${pausedMs} ms`)
    slots.pause('jump.test', 400) // longer than what is left in truth
    assert.ok((await slots.take(every(1000, 'jump.test'))).pausedMs > 300)
    await delay(405)
    assert.ok((await slots.take(every(1000, 'jump.test'))).againInMs <= 1100)
  })

  it('share the minute’s budget out evenly while Redis is away', async () => {
    await using own = await startRedis()
    await using slots = await openRedisSlots({ url: own.url, perMinute: 60 })
    await slots.take(every(10, 'a.test'))
    await own.stop('SIGKILL')
    const first = await slots.take(every(10, 'a.test', 10)) // the first turn begins now, a whole one away
    assert.deepEqual(first.startsInMs, [])
    assert.ok(first.againInMs > 700 && first.againInMs <= 1000, `again in ${first.againInMs} ms`)
  })

  it('answer also when Redis hangs, and again when it wakes', { timeout: 60_000 }, async () => {
    await using own = await startRedis()
    let aways = 0
    const back = Promise.withResolvers<void>()
    const onAway = () => aways++
    await using slots = await openRedisSlots({ url: own.url, onAway, onBack: () => back.resolve() })
    await slots.take(every(10, 'a.test'))
    process.kill(own.pid!, 'SIGSTOP')
    try {
      const askedMs = performance.now()
      await slots.take(every(10, 'a.test'))
      assert.ok(performance.now() - askedMs < 3000)
      assert.equal(aways, 1)
    } finally {
      process.kill(own.pid!, 'SIGCONT')
    }
    let isBack = false
    void back.promise.then(() => {
      isBack = true
    })
    while (!isBack) {
      await slots.take(every(10, 'a.test'))
      await delay(20)
    }
    assert.equal(aways, 1)
  })

  it('cannot be opened on a Redis that is not there, or with a URL that is none', async () => {
    await assert.rejects(openRedisSlots({ url: 'redis://127.0.0.1:1/0' }), { code: 'E_SERVICE' })
    await assert.rejects(openRedisSlots({ url: 'http://127.0.0.1:1/0' }), { code: 'E_OPTION' })
  })
})

describe('requests a minute', () => {
  it('are spread evenly where nobody counts them', async () => {
    let nowMs = 0
    const perHost = { concurrency: 8, rps: 10, delayMs: 0, perMinute: 30 }
    using limit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0, monotonicNow: () => nowMs })
    ;(await limit.acquire('a.test', new AbortController().signal))[Symbol.dispose]()
    assert.equal(limit.waitMs('a.test'), 1800) // 2 s, of which a tenth may be caught up
    nowMs = 1800
    assert.equal(limit.waitMs('a.test'), 0)
  })

  it('change nothing where the rate is stricter', async () => {
    const perHost = { concurrency: 8, rps: 1, delayMs: 0, perMinute: 600 }
    using limit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0, monotonicNow: () => 0 })
    ;(await limit.acquire('a.test', new AbortController().signal))[Symbol.dispose]()
    assert.equal(limit.waitMs('a.test'), 900)
  })
})
