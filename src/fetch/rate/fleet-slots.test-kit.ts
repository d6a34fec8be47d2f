/** What all fleet slots do, wherever they are kept: rates and pauses across workers in separate processes. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ScrapeError } from '../../core/errors.ts'
import { createRateLimit } from './rate-limit.ts'
import { type FleetSlots, SLOT_HORIZON_MS, type SlotAsk } from './spacing.ts'

export interface SlotsUnderTest {
  /** The server that all tests share. */
  url: () => string
  open(options: { url: string; onAway?: (error: ScrapeError) => void; onBack?: () => void }): Promise<FleetSlots>
  /** A server that can be stopped and restarted. */
  startServer(): Promise<AsyncDisposable & { url: string; kill(): Promise<void>; start(): Promise<void> }>
}

const never = new AbortController().signal

export const every = (intervalMs: number, host: string, count = 1): SlotAsk => ({ host, intervalMs, earlyMs: 0, count })

export interface Fleet {
  /** When they were started. */
  beganMs: number
  /** When the requests of all workers arrived. */
  arrivedMs: number[]
  /** Tells the next worker to pause for 2 s. Resolves with the time of that. */
  pauseOne(): Promise<number>
}

/** Three workers in separate processes, started together. */
export async function startFleet(
  t: TestContext,
  options: { rps: number; url: string; perMinute?: number },
): Promise<Fleet> {
  const arrivedMs: number[] = []
  const ready = Promise.withResolvers<void>()
  let readyCount = 0
  let pausing: PromiseWithResolvers<number> | undefined
  const server = createServer((request, response) => {
    if (request.url === '/ready') {
      if (++readyCount === 3) ready.resolve()
    } else arrivedMs.push(performance.now())
    if (pausing !== undefined) response.statusCode = 429
    pausing?.resolve(performance.now())
    pausing = undefined
    response.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}/page`
  const file = fileURLToPath(new URL('fleet-slots-child.test-kit.ts', import.meta.url))
  const given = [options.url, page, String(options.rps), String(options.perMinute ?? 0)]
  const args = ['--disable-warning=ExperimentalWarning', file, ...given]
  const start = () => spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] })
  const workers = [start(), start(), start()]
  t.after(async () => {
    const exits = workers.map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.kill('SIGKILL')
    await Promise.all(exits) // before their server, or they would report errors
    server.closeAllConnections()
    server.close()
  })
  await ready.promise
  const beganMs = performance.now()
  for (const worker of workers) worker.stdin.write('go')
  const pauseOne = () => {
    pausing = Promise.withResolvers<number>()
    return pausing.promise
  }
  return { beganMs, arrivedMs, pauseOne }
}

/** The test runner times out if it never becomes true. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await delay(10)
}

function busiest(timesMs: readonly number[], windowMs: number): number {
  return Math.max(...timesMs.map((ms) => timesMs.filter((other) => other >= ms && other < ms + windowMs).length))
}

/** A busy machine delivers requests late, so a window may see some of the one before. Without sharing it is triple the rate. */
function assertRate(timesMs: readonly number[], rps: number): void {
  const most = busiest(timesMs, 1000)
  assert.ok(most <= rps * 2 + 3, `${most} requests within a second, where ${rps} are allowed`)
}

export function testFleetSlots({ url, open, startServer }: SlotsUnderTest): void {
  describe('slots of a fleet', () => {
    for (const rps of [20, 200]) {
      it(`let three workers together start ${rps} requests a second, and not more`, async (t) => {
        const { beganMs, arrivedMs } = await startFleet(t, { rps, url: url() })
        const wanted = rps * 3
        await until(() => arrivedMs.length >= wanted)
        const seen = arrivedMs.slice(0, wanted)
        const spanMs = seen.at(-1)! - beganMs // requests come late on a busy machine, but never early
        assert.ok(spanMs >= ((wanted - 1) * 1000 * 0.8) / rps, `${wanted} requests within ${spanMs} ms`)
        assertRate(seen, rps)
      })
    }

    it('make all workers obey a pause that one of them was told of', async (t) => {
      const { arrivedMs, pauseOne } = await startFleet(t, { rps: 30, url: url() })
      await until(() => arrivedMs.length > 10)
      const pausedAtMs = await pauseOne()
      await until(() => arrivedMs.at(-1)! > pausedAtMs + 2000)
      const inPause = arrivedMs.map((ms) => ms - pausedAtMs).filter((ms) => ms > 1000 && ms < 1950)
      assert.deepEqual(inPause, [])
    })

    it('continue with the workers’ own shares while the server is down, and together again afterwards', async (t) => {
      await using server = await startServer()
      const { arrivedMs } = await startFleet(t, { rps: 30, url: server.url })
      await until(() => arrivedMs.length > 10)
      await server.kill()
      const before = arrivedMs.length
      await until(() => arrivedMs.length > before + 45)
      await server.start()
      const away = arrivedMs.length
      await until(() => arrivedMs.length > away + 60)
      assertRate(arrivedMs, 30)
    })

    it('of a slow host are granted one at a time, and only shortly before', async () => {
      await using one = await open({ url: url() })
      await using two = await open({ url: url() })
      assert.deepEqual((await one.take(every(60_000, 'slowest.test', 5))).startsInMs, [0])
      assert.deepEqual((await two.take(every(60_000, 'slowest.test', 5))).startsInMs, []) // a minute away: not granted yet
      const beganMs = performance.now()
      assert.deepEqual((await one.take(every(1000, 'slow.test', 5))).startsInMs, [0])
      let next = await two.take(every(1000, 'slow.test', 5))
      for (; next.startsInMs.length === 0; next = await two.take(every(1000, 'slow.test', 5))) {
        assert.ok(next.againInMs > 0 && next.againInMs <= 1000, `again in ${next.againInMs} ms`)
        await delay(next.againInMs)
      }
      const startMs = performance.now() + next.startsInMs[0]! - beganMs
      assert.ok(startMs >= 1000, `the second start came ${startMs} ms after the first was asked for`)
      assert.equal(next.startsInMs.length, 1)
      assert.ok(next.startsInMs[0]! <= SLOT_HORIZON_MS)
    })

    it('of a fast host are granted several at a time, as many as will be needed soon', async () => {
      await using one = await open({ url: url() })
      await using two = await open({ url: url() })
      const beganMs = performance.now()
      const mine = (await one.take(every(50, 'fast.test', 3))).startsInMs
      assert.deepEqual(mine, [0, 50, 100])
      const theirs = (await two.take(every(50, 'fast.test', 100))).startsInMs
      const tookMs = performance.now() - beganMs // on a busy machine this takes longer, and more of them are due by then
      const given = mine.length + theirs.length
      assert.ok(theirs.length >= 3 && theirs.length <= SLOT_HORIZON_MS / 50 + 1, `${theirs.length} given at once`)
      assert.ok(given <= (tookMs + SLOT_HORIZON_MS) / 50 + 1, `${given} within ${tookMs} + ${SLOT_HORIZON_MS} ms`)
      assert.ok(theirs[0]! <= 150, `the first of theirs in ${theirs[0]} ms`)
      for (const [i, ms] of theirs.entries()) assert.ok(Math.abs(ms - theirs[0]! - i * 50) < 0.01, theirs.join())
    })

    it('come for many hosts in one call, and twice for one host in two calls', async () => {
      await using slots = await open({ url: url() })
      const hosts = Array.from({ length: 450 }, (_, i) => `host-${i % 400}.test`)
      const grants = await Promise.all(hosts.map((host) => slots.take(every(1000, host))))
      assert.equal(grants.filter(({ startsInMs }) => startsInMs.length === 1).length, 400)
    })
  })

  describe('a rate limit with fleet slots', () => {
    const perHost = { concurrency: 4, rps: 20, delayMs: 0 }
    const settings = { perHost, concurrency: 8, crawlDelayMsMax: 60_000 }

    it('learns of a pause even if there is no rate', async () => {
      await using one = await open({ url: url() })
      await using two = await open({ url: url() })
      const free = { ...settings, perHost: { ...perHost, rps: 0 } }
      using told = createRateLimit({ ...free, fleet: one })
      using other = createRateLimit({ ...free, fleet: two })
      for (const limit of [told, other]) (await limit.acquire('free.test', never))[Symbol.dispose]()
      const pausedAtMs = performance.now()
      told.pause('free.test', Date.now() + 2000, 'a test')
      const startsMs: number[] = []
      while ((startsMs.at(-1) ?? 0) < 2000) {
        using _slot = await other.acquire('free.test', never)
        startsMs.push(performance.now() - pausedAtMs)
        await delay(10)
      }
      assert.deepEqual(
        startsMs.filter((ms) => ms > 1200 && ms < 1900),
        [],
      )
    })

    it('refuses callers that would wait too long for a host that is paused elsewhere', async () => {
      await using one = await open({ url: url() })
      await using two = await open({ url: url() })
      one.pause('long.test', 60_000)
      await one.take(every(50, 'long.test')) // the pause is stored
      using limit = createRateLimit({ ...settings, fleet: two })
      await assert.rejects(limit.acquire('long.test', never), { code: 'E_RATE_LIMITED' })
      assert.ok(limit.waitMs('long.test') > 50_000)
      assert.deepEqual(limit.busyHosts(), ['long.test'])
    })

    it('stops waiting when aborted, and holds nothing back', async () => {
      await using fleet = await open({ url: url() })
      using limit = createRateLimit({ ...settings, fleet })
      limit.setDelay('slow.example', 60_000)
      ;(await limit.acquire('slow.example', never))[Symbol.dispose]()
      const stop = new AbortController()
      const waiting = limit.acquire('slow.example', stop.signal)
      stop.abort(new Error('enough'))
      await assert.rejects(waiting, /enough/)
    })

    it('continues with its own share while the server is down, reports it once, and recovers', async () => {
      await using server = await startServer()
      const away: ScrapeError[] = []
      let backs = 0
      await using other = await open({ url: server.url })
      await using fleet = await open({ url: server.url, onAway: (error) => away.push(error), onBack: () => backs++ })
      await other.take(every(50, 'a.test'))
      using limit = createRateLimit({ ...settings, fleet })
      const start = async () => {
        ;(await limit.acquire('away.test', never))[Symbol.dispose]()
      }
      for (let i = 0; i < 10; i++) await start()
      assert.deepEqual([away.length, backs], [0, 0])

      await server.kill()
      const startedAtMs = performance.now()
      for (let i = 0; i < 10; i++) await start()
      const spanMs = performance.now() - startedAtMs
      assert.ok(spanMs >= 9 * 100 * 0.8, `10 starts in ${spanMs} ms, where one of two workers may have 10 a second`)
      assert.equal(away.length, 1)
      assert.equal(away[0]!.code, 'E_SERVICE')
      assert.match(away[0]!.message, /1\/2 of each host’s rate/)

      await server.start()
      while (backs === 0) await start()
      for (let i = 0; i < 5; i++) await start()
      assert.deepEqual([away.length, backs], [1, 1])
    })
  })
}
