/** Rates, pauses and requests per minute of a fleet on a real Redis. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { redisForTests, startRedis, type TestRedis } from '../../../test/services/redis.ts'
import { every, startFleet, testFleetSlots } from './fleet-slots.test-kit.ts'
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

const MINUTE_MS = 60_000
/** A minute of the test clock, and its beginning. */
const MINUTE = 30_000_000
const BEGIN_MS = MINUTE * MINUTE_MS

/** Slots on a clock that stands still until it is set: no test waits for a minute, and none runs into the next. */
async function openOnTestClock(name: string, perMinute = 0) {
  const key = `clock:${name}`
  const turnTo = async (ms: number) => void (await redis.set(key, String(ms)))
  await turnTo(BEGIN_MS)
  const clock = `tonumber(redis.call('GET', '${key}'))`
  const open = async () => await openRedisSlots({ url: server.url, perMinute, clock })
  return { slots: await open(), open, turnTo }
}

const countOf = async (host: string, minute = MINUTE) => await redis.get(`ratelimit:${host}:${minute}`)

/** By the server's own clock: of one minute, or of two if the first ended in the meantime. */
async function countsOf(url: string, host: string): Promise<number[]> {
  const client = new Redis(url)
  try {
    const keys = await client.keys(`ratelimit:${host}:*`)
    return await Promise.all(keys.map(async (key) => Number(await client.get(key))))
  } finally {
    client.disconnect()
  }
}

const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0)

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
    await using slots = await openRedisSlots({ url: server.url })
    await slots.take(every(50, 'count.test', 3))
    await slots.take(every(50, 'count.test', 2))
    slots.pause('paused.test', 60_000)
    await slots.take(every(0, 'paused.test', 0))
    assert.equal(sum(await countsOf(server.url, 'count.test')), 5)
    const keys = (await redis.keys('*')).filter((key) => !key.startsWith('clock:'))
    assert.ok(keys.length >= 4, keys.join())
    for (const key of keys) {
      const leftMs = await redis.pttl(key)
      assert.ok(leftMs !== -1 && leftMs <= 181_000, `${key} lasts ${leftMs} ms`) // -2: already gone
    }
    assert.ok((await redis.pttl('sluice:slots:paused.test')) > 30_000)
  })

  it('beyond the minute’s budget are postponed to the next minute', async () => {
    const { slots, open, turnTo } = await openOnTestClock('budget', 4)
    await using one = slots
    await using other = await open()
    assert.deepEqual((await one.take(every(10, 'budget.test', 3))).startsInMs, [0, 10, 20])
    await turnTo(BEGIN_MS + 50)
    assert.deepEqual((await other.take(every(10, 'budget.test', 3))).startsInMs, [0])
    assert.deepEqual((await one.take(every(10, 'budget.test', 3))).startsInMs, [])
    assert.equal(await countOf('budget.test'), '4')
    assert.equal((await one.take(every(10, 'other.test', 3))).startsInMs.length, 3) // each host has its own
  })

  it('of the next minute are granted when it begins, not before and not later', async () => {
    const { slots, turnTo } = await openOnTestClock('turn', 2)
    await using one = slots
    await redis.set(`ratelimit:turn.test:${MINUTE}`, '2', 'EX', 120) // set by another program, counted in the old way
    for (const atMs of [0, 30_000, MINUTE_MS - 251]) {
      await turnTo(BEGIN_MS + atMs)
      const { startsInMs, againInMs } = await one.take(every(10, 'turn.test', 3))
      assert.deepEqual(startsInMs, [])
      assert.ok(againInMs > 0 && againInMs <= 1000, `again in ${againInMs} ms`)
    }
    await turnTo(BEGIN_MS + MINUTE_MS - 240) // within the horizon
    assert.deepEqual((await one.take(every(10, 'turn.test', 3))).startsInMs, [240, 250])
    assert.equal(await countOf('turn.test', MINUTE), '2')
    assert.equal(await countOf('turn.test', MINUTE + 1), '2')
    await turnTo(BEGIN_MS + 2 * MINUTE_MS - 1)
    assert.deepEqual((await one.take(every(10, 'turn.test', 2))).startsInMs, [1, 11])
    assert.equal(await countOf('turn.test', MINUTE + 2), '2')
  })

  it('keep three workers together to the budget of a minute', async (t) => {
    await using own = await startRedis() // the fleets of other tests have counters for the same host
    const { arrivedMs } = await startFleet(t, { rps: 50, url: own.url, perMinute: 30 })
    // Not until 30 have arrived: a busy worker misses some slots, and those are counted anyway.
    while (sum(await countsOf(own.url, 'site.test')) < 30) await delay(50)
    await delay(1000) // time for as many again, if the budget were not kept
    const arrived = arrivedMs.length
    const counts = await countsOf(own.url, 'site.test')
    for (const count of counts) assert.ok(count <= 30, `${count} in a minute`)
    assert.ok(arrived <= sum(counts), `${arrived} came, ${sum(counts)} were counted`)
  })

  it('leave data of others under the name of a counter alone', async () => {
    const { slots } = await openOnTestClock('foreign', 2)
    await using one = slots
    await redis.hset(`ratelimit:foreign.test:${MINUTE}`, 'a', '1')
    await redis.set(`ratelimit:word.test:${MINUTE}`, 'many')
    assert.equal((await one.take(every(10, 'foreign.test', 1))).startsInMs.length, 1)
    assert.equal((await one.take(every(10, 'word.test', 1))).startsInMs.length, 1)
    assert.deepEqual(await redis.hgetall(`ratelimit:foreign.test:${MINUTE}`), { a: '1' })
    await redis.del(`ratelimit:foreign.test:${MINUTE}`, `ratelimit:word.test:${MINUTE}`)
  })

  it('are not held up by a clock that was set back', async () => {
    const { slots, turnTo } = await openOnTestClock('jump')
    await using one = slots
    const ask = every(1000, 'jump.test')
    await turnTo(BEGIN_MS + 3_600_000)
    assert.deepEqual((await one.take(ask)).startsInMs, [0])
    await turnTo(BEGIN_MS) // an hour back
    assert.deepEqual((await one.take(ask)).startsInMs, [])
    await turnTo(BEGIN_MS + 1249)
    assert.deepEqual((await one.take(ask)).startsInMs, [1]) // a whole gap and the horizon after the clock was set back
  })

  for (const intervalMs of [1000, 0])
    it(`are not paused for longer by such a clock, ${intervalMs > 0 ? 'with' : 'without'} a rate`, async () => {
      const host = `pause-${intervalMs}.test`
      const { slots, turnTo } = await openOnTestClock(host)
      await using one = slots
      const pausedMs = async () => (await one.take(every(intervalMs, host))).pausedMs
      const isAbout = (ms: number, wanted: number) => assert.ok(Math.abs(ms - wanted) < 0.01, `${ms} ms, not ${wanted}`)
      await turnTo(BEGIN_MS + 3_600_000)
      one.pause(host, 60_000)
      const firstMs = await pausedMs()
      assert.ok(firstMs > 30_000 && firstMs <= 60_000, `${firstMs} ms`) // from the call on, and a busy machine is slow
      await turnTo(BEGIN_MS)
      isAbout(await pausedMs(), firstMs)
      await turnTo(BEGIN_MS + 10_000)
      isAbout(await pausedMs(), firstMs - 10_000)
      one.pause(host, 90_000) // longer than what is really left
      const longerMs = await pausedMs()
      assert.ok(longerMs > 60_000 && longerMs <= 90_000, `${longerMs} ms`)
      await turnTo(BEGIN_MS + 10_000 + longerMs + 1)
      assert.equal(await pausedMs(), 0)
    })

  it('spread the minute’s budget evenly while Redis is down', async () => {
    await using own = await startRedis()
    await using slots = await openRedisSlots({ url: own.url, perMinute: 60 })
    await slots.take(every(10, 'a.test'))
    await own.stop('SIGKILL')
    const first = await slots.take(every(10, 'a.test', 10)) // the first interval begins now, so its start is a whole interval away
    assert.deepEqual(first.startsInMs, [])
    assert.ok(first.againInMs > 700 && first.againInMs <= 1000, `again in ${first.againInMs} ms`)
  })

  it('are granted even if Redis hangs, and again when it recovers', async () => {
    await using own = await startRedis()
    let aways = 0
    const back = Promise.withResolvers<void>()
    const onAway = () => aways++
    await using slots = await openRedisSlots({ url: own.url, onAway, onBack: () => back.resolve() })
    await slots.take(every(10, 'a.test'))
    process.kill(own.pid!, 'SIGSTOP')
    try {
      await slots.take(every(10, 'a.test'))
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

  it('cannot be opened if Redis is unreachable, or with an invalid URL', async () => {
    await assert.rejects(openRedisSlots({ url: 'redis://127.0.0.1:1/0' }), { code: 'E_SERVICE' })
    await assert.rejects(openRedisSlots({ url: 'http://127.0.0.1:1/0' }), { code: 'E_OPTION' })
  })
})

describe('requests per minute', () => {
  it('are spread evenly if they are not counted', async () => {
    let nowMs = 0
    const perHost = { concurrency: 8, rps: 10, delayMs: 0, perMinute: 30 }
    using limit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0, monotonicNow: () => nowMs })
    ;(await limit.acquire('a.test', new AbortController().signal))[Symbol.dispose]()
    assert.equal(limit.waitMs('a.test'), 1800) // 2 s, of which a tenth may be caught up
    nowMs = 1800
    assert.equal(limit.waitMs('a.test'), 0)
  })

  it('change nothing if the rate is stricter', async () => {
    const perHost = { concurrency: 8, rps: 1, delayMs: 0, perMinute: 600 }
    using limit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0, monotonicNow: () => 0 })
    ;(await limit.acquire('a.test', new AbortController().signal))[Symbol.dispose]()
    assert.equal(limit.waitMs('a.test'), 900)
  })
})
