import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../../core/errors.ts'
import { createRateLimit, type RateLimitOptions } from './rate-limit.ts'

/** A clock that is turned by hand: timers due fire in order, promises settle between them. */
class Time {
  monotonicMs = 1000
  wallMs = 1_700_000_000_000
  #timers = new Set<{ atMs: number; callback: () => void }>()

  get armed(): number {
    return this.#timers.size
  }

  setTimer = (callback: () => void, ms: number): (() => void) => {
    const timer = { atMs: this.monotonicMs + ms, callback }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.monotonicMs + ms
    await settle()
    for (;;) {
      const due = [...this.#timers].filter((t) => t.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.#goTo(due.atMs)
      this.#timers.delete(due)
      due.callback()
      await settle()
    }
    this.#goTo(endMs)
  }

  #goTo(atMs: number): void {
    this.wallMs += Math.max(0, atMs - this.monotonicMs)
    this.monotonicMs = Math.max(this.monotonicMs, atMs)
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))
const never = new AbortController().signal

interface Given extends Partial<Omit<RateLimitOptions, 'perHost'>> {
  perHost?: Partial<RateLimitOptions['perHost']>
}

function given(options: Given = {}) {
  const time = new Time()
  const limit = createRateLimit({
    concurrency: 100,
    crawlDelayMsMax: 10_000,
    random: () => 0.5,
    now: () => time.wallMs,
    monotonicNow: () => time.monotonicMs,
    setTimer: time.setTimer,
    ...options,
    perHost: { concurrency: 100, rps: 0, delayMs: 0, ...options.perHost },
  })
  /** Asks `count` times at once and notes when each was let go, from now. */
  const starts = (host: string, count: number): number[] => {
    const fromMs = time.monotonicMs
    const atMs: number[] = []
    for (let i = 0; i < count; i++) {
      void limit.acquire(host, never).then((slot) => {
        atMs.push(Math.round(time.monotonicMs - fromMs))
        slot[Symbol.dispose]()
      })
    }
    return atMs
  }
  return { time, limit, starts }
}

test('lets everything go at once when nothing is limited', async () => {
  const { limit, time } = given()
  for (let i = 0; i < 50; i++) assert.equal(limit.waitMs('a'), 0)
  const slot = await limit.acquire('a', never)
  slot[Symbol.dispose]()
  assert.deepEqual(limit.busyHosts(), [])
  assert.equal(time.armed, 0)
})

test('spaces the requests to one host evenly and leaves other hosts alone', async () => {
  const { time, starts } = given({ perHost: { rps: 2 } })
  const a = starts('a', 4)
  const b = starts('b', 1)
  await time.pass(10_000)
  assert.deepEqual(a, [0, 450, 950, 1450]) // one early tenth, then every 500 ms
  assert.deepEqual(b, [0])
})

test('keeps the mean rate of a fast host although timers are coarse', async () => {
  const { time, starts } = given({ perHost: { rps: 1000, concurrency: 4096 }, concurrency: 4096 })
  const a = starts('a', 1000)
  await time.pass(2000)
  assert.equal(a.length, 1000)
  assert.ok(a.at(-1)! >= 970 && a.at(-1)! <= 1000, `last start at ${a.at(-1)} ms`)
  assert.ok(a.filter((ms) => ms < 1).length <= 21, 'no more than 20 ms worth of requests at once')
})

test('holds at most so many requests to one host, and so many in all', async () => {
  const { limit } = given({ concurrency: 3, perHost: { concurrency: 2 } })
  const first = await limit.acquire('a', never)
  await limit.acquire('a', never)
  assert.equal(limit.waitMs('a'), Number.POSITIVE_INFINITY)
  assert.deepEqual(limit.busyHosts(), ['a'])
  assert.equal(limit.waitMs('b'), 0)
  await limit.acquire('b', never)
  assert.equal(limit.waitMs('c'), Number.POSITIVE_INFINITY)
  let frees = 0
  limit.onFree(() => frees++)
  first[Symbol.dispose]()
  first[Symbol.dispose]() // twice is once
  assert.equal(frees, 1)
  assert.equal(limit.waitMs('a'), 0)
  assert.equal(limit.waitMs('c'), 0)
})

test('serves waiters first come, first served, and hosts in turn', async () => {
  const { limit } = given({ concurrency: 1 })
  const order: string[] = []
  const slots: Disposable[] = []
  for (const host of ['a', 'b', 'a', 'c']) {
    void limit.acquire(host, never).then((slot) => {
      order.push(host)
      slots.push(slot)
    })
  }
  for (let i = 0; i < 4; i++) {
    await settle()
    slots[i]?.[Symbol.dispose]()
  }
  assert.deepEqual(order.toSorted(), ['a', 'a', 'b', 'c'])
  assert.deepEqual(order.slice(0, 2), ['a', 'b'], 'the host that used its turn goes behind the one that waits')
})

test('spreads a configured delay from half to one and a half of it', async () => {
  const draws = [0, 1, 0.5]
  const { time, starts } = given({ perHost: { delayMs: 1000 }, random: () => draws.shift() ?? 0.5 })
  const a = starts('a', 4)
  await time.pass(10_000)
  assert.deepEqual(a, [0, 500, 2000, 3000])
})

test('obeys a crawl-delay up to the cap, also when it is learned after the first request', async () => {
  const { time, limit, starts } = given({ crawlDelayMsMax: 3000 })
  const first = starts('a', 1)
  await settle()
  limit.setDelay('a', 60_000)
  assert.equal(limit.waitMs('a'), 3000)
  assert.deepEqual(limit.busyHosts(), ['a'])
  const rest = starts('a', 2)
  await time.pass(10_000)
  assert.deepEqual([...first, ...rest], [0, 3000, 6000])
})

test('never shrinks a crawl-delay to catch up', async () => {
  const { time, limit, starts } = given({ perHost: { rps: 10 } })
  limit.setDelay('a', 1000)
  const a = starts('a', 3)
  await time.pass(5000)
  assert.deepEqual(a, [0, 1000, 2000])
})

test('pauses a host, tells who listens, and wakes the loop when it is over', async () => {
  const pauses: unknown[] = []
  const { time, limit, starts } = given({ onPause: (...args) => pauses.push(args) })
  let frees = 0
  limit.onFree(() => frees++)
  const untilMs = time.wallMs + 5000
  limit.pause('a', untilMs, '429')
  limit.pause('a', untilMs - 1000, '429') // shorter: nothing new
  assert.deepEqual(pauses, [['a', untilMs, '429']])
  assert.equal(limit.waitMs('a'), 5000)
  assert.equal(limit.waitMs('b'), 0)
  const a = starts('a', 1)
  await time.pass(4999)
  assert.deepEqual(a, [])
  await time.pass(1)
  assert.deepEqual(a, [5000])
  assert.ok(frees >= 1)
  assert.deepEqual(limit.busyHosts(), [])
})

test('sends those who wait for a host away when it is paused for long, at no cost of a try', async () => {
  const { time, limit } = given({ perHost: { concurrency: 1 } })
  await limit.acquire('a', never)
  const waiting = limit.acquire('a', never)
  limit.pause('a', time.wallMs + 3_600_000, '429')
  for (const refused of [waiting, limit.acquire('a', never)]) {
    const error = await refused.catch((e: unknown) => e)
    assert.ok(error instanceof ScrapeError)
    assert.equal(error.code, 'E_RATE_LIMITED')
    assert.equal(error.verdict, 'later')
    assert.equal(error.details.retryAfterMs, 3_600_000)
  }
})

for (const jumpMs of [3_600_000, -3_600_000]) {
  test(`neither stops nor bursts when the wall clock jumps by ${jumpMs / 3_600_000} h`, async () => {
    const { time, limit, starts } = given({ perHost: { rps: 10, concurrency: 1 } })
    limit.pause('a', time.wallMs + 1000, '503')
    const a = starts('a', 3)
    await time.pass(500)
    time.wallMs += jumpMs
    await time.pass(2000)
    assert.deepEqual(a, [1000, 1090, 1190])
  })
}

test('forgets a waiter whose signal is aborted and gives the slot to the next', async () => {
  const { limit } = given({ concurrency: 1 })
  const slot = await limit.acquire('a', never)
  const abort = new AbortController()
  const aborted = limit.acquire('a', abort.signal)
  const next = limit.acquire('a', never)
  abort.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  await assert.rejects(limit.acquire('a', abort.signal), /enough/)
  slot[Symbol.dispose]()
  assert.equal((await next).host, 'a')
})

test('remembers a bounded number of hosts, those in use last to go', async () => {
  const { time, limit } = given({ hostsMax: 100 })
  await limit.acquire('used', never)
  limit.pause('paused', time.wallMs + 60_000, '429')
  for (let i = 0; i < 1000; i++) (await limit.acquire(`idle${i}`, never))[Symbol.dispose]()
  assert.equal(limit.waitMs('paused'), 60_000, 'idle hosts go before paused ones')
  for (let i = 0; i < 1000; i++) limit.pause(`h${i}`, time.wallMs + 60_000, '429')
  assert.ok(time.armed <= 100 && time.armed > 50)
  assert.equal(limit.busyHosts().length, time.armed)
  assert.equal(limit.waitMs('h0'), 0)
  assert.equal(limit.waitMs('h999'), 60_000)
})

test('leaves no timer and no waiter behind when it is disposed', async () => {
  const { time, limit } = given({ perHost: { rps: 1 } })
  const slot = await limit.acquire('a', never)
  const waiting = limit.acquire('a', never)
  limit[Symbol.dispose]()
  await assert.rejects(waiting, { code: 'E_STOPPED' })
  slot[Symbol.dispose]()
  limit[Symbol.dispose]()
  assert.equal(time.armed, 0)
})
