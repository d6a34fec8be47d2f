import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createRateLimit } from './rate-limit.ts'
import { openSqliteSlots } from './sqlite-slots.ts'

const never = new AbortController().signal

function tempFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'slots-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return join(folder, 'slots.db')
}

test('gives each slot to one process only, an interval apart', (t) => {
  const path = tempFile(t)
  let monotonicMs = 5000
  const options = { now: () => 1_000_000 + monotonicMs, monotonicNow: () => monotonicMs }
  using a = openSqliteSlots(path, options)
  using b = openSqliteSlots(path, options)
  const starts = [a.reserve('h', 100), b.reserve('h', 100), a.reserve('h', 100), a.reserve('other', 100)]
  assert.deepEqual(
    starts.map((ms) => ms - 1_005_000),
    [0, 100, 200, 0],
  )
  monotonicMs += 10_000
  assert.equal(b.reserve('h', 100), 1_015_000, 'time nobody used is not saved up')
})

test('keeps its slots when the wall clock jumps', (t) => {
  const path = tempFile(t)
  let wallMs = 1_000_000
  using slots = openSqliteSlots(path, { now: () => wallMs, monotonicNow: () => 5000 })
  slots.reserve('h', 100)
  wallMs -= 3_600_000
  assert.equal(slots.reserve('h', 100) - wallMs, 100)
  wallMs += 7_200_000
  assert.equal(slots.reserve('h', 100) - wallMs, 200)
})

test('forgets slots from before a reboot', (t) => {
  const path = tempFile(t)
  {
    using slots = openSqliteSlots(path)
    slots.pause('h', Date.now() + 60_000)
    slots.reserve('h', 60_000)
  }
  {
    using again = openSqliteSlots(path)
    assert.ok(again.pausedUntilMs('h') > 0, 'a process started again is no machine started again')
  }
  const db = new DatabaseSync(path)
  db.exec("UPDATE boot SET id = 'an earlier one'")
  db.close()
  using slots = openSqliteSlots(path)
  assert.equal(slots.pausedUntilMs('h'), 0)
  assert.ok(slots.reserve('h', 100) <= Date.now() + 1)
})

test('shares a pause, the longest of several', (t) => {
  const path = tempFile(t)
  using a = openSqliteSlots(path)
  using b = openSqliteSlots(path)
  const untilMs = Date.now() + 60_000
  a.pause('h', untilMs)
  b.pause('h', untilMs - 30_000)
  assert.ok(Math.abs(b.pausedUntilMs('h') - untilMs) < 5)
  assert.equal(b.pausedUntilMs('other'), 0)
})

test('refuses a host that another process has paused', async (t) => {
  const path = tempFile(t)
  using a = openSqliteSlots(path)
  using b = openSqliteSlots(path)
  const options = { perHost: { concurrency: 8, rps: 0, delayMs: 0 }, concurrency: 8, crawlDelayMsMax: 0 }
  using here = createRateLimit({ ...options, slots: a })
  using there = createRateLimit({ ...options, slots: b })
  here.pause('h', Date.now() + 60_000, '429')
  assert.equal(there.waitMs('h'), 0, 'not known yet')
  await assert.rejects(there.acquire('h', never), { code: 'E_RATE_LIMITED' })
  assert.ok(there.waitMs('h') > 59_000)
  assert.deepEqual(there.busyHosts(), ['h'])
})

const WORKER = `
  const { createRateLimit } = await import(process.argv[1])
  const { openSqliteSlots } = await import(process.argv[2])
  const [path, url] = process.argv.slice(3)
  const slots = openSqliteSlots(path)
  const limit = createRateLimit({ perHost: { concurrency: 4, rps: 25, delayMs: 0 }, concurrency: 8, crawlDelayMsMax: 0, slots })
  const signal = new AbortController().signal
  const { host } = new URL(url)
  await fetch(url + 'ready')
  process.stdin.once('data', async () => {
    await Promise.all(Array.from({ length: 15 }, async () => {
      using slot = await limit.acquire(host, signal)
      await (await fetch(url)).text()
    }))
    process.exit(0)
  })`

test('holds the gaps on the server when two processes crawl one host', async (t) => {
  const path = tempFile(t)
  const arrivedMs: number[] = []
  const ready = Promise.withResolvers<void>()
  let readyCount = 0
  const server = createServer((request, response) => {
    if (request.url === '/ready') {
      if (++readyCount === 2) ready.resolve()
    } else arrivedMs.push(performance.now())
    response.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const modules = ['./rate-limit.ts', './sqlite-slots.ts'].map((file) => new URL(file, import.meta.url).href)
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', WORKER, ...modules, path, url]
  const workers: ChildProcess[] = [1, 2].map(() =>
    spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] }),
  )
  t.after(() => workers.forEach((worker) => void worker.kill()))
  const exits = workers.map((worker) => once(worker, 'exit'))
  const died = Promise.race(exits).then(() => assert.fail('a worker died before it was ready'))
  await Promise.race([ready.promise, died])
  const beganMs = performance.now()
  for (const worker of workers) worker.stdin!.write('go')
  for (const exit of exits) assert.deepEqual(await exit, [0, null])

  assert.equal(arrivedMs.length, 30)
  // 30 requests at 25 a second: 29 gaps of 40 ms. A busy machine may be late, and so bunch some, but it is never early.
  const spanMs = arrivedMs.at(-1)! - beganMs
  assert.ok(spanMs >= 29 * 40 * 0.95, `all within ${spanMs} ms`)
  const busiest = Math.max(
    ...arrivedMs.map((ms) => arrivedMs.filter((other) => other >= ms && other < ms + 400).length),
  )
  assert.ok(busiest < 20, `${busiest} requests within 400 ms, where 10 are allowed and 20 come without sharing`)
})
