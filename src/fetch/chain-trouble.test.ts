/** The chain against a site that fails, blocks, and recovers: circuit breaker, throttle and block check over real HTTP. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { createEventBus, type RunEvent } from '../core/events.ts'
import { page as html } from './block/cases.test-kit.ts'
import { createJudge } from './block/to-error.ts'
import { createMemoryCache } from './cache/cache.ts'
import { createCircuit } from './circuit/circuit.ts'
import { createFetcher } from './fetcher.ts'
import { openTestHttp } from './http/http.test-kit.ts'
import type { HttpClient } from './http/http.ts'
import { createRateLimit } from './rate/rate-limit.ts'

const answer = { status: 200, body: '' }
let asked = 0
const server = createServer((_request, response) => {
  asked++
  response.writeHead(answer.status, { 'content-type': 'text/html' }).end(answer.body)
})
const CHALLENGE = html('Just a moment...', '<script>window._cf_chl_opt={}</script>')
const { signal } = new AbortController()
let origin: string
let http: HttpClient

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  http = openTestHttp()
})
after(async () => {
  await http[Symbol.asyncDispose]()
  await new Promise((resolve) => server.close(resolve))
})
beforeEach(() => {
  asked = 0
})

/** The clock is set manually, so that a cool-down ends when the test says so. */
function chain() {
  const time = { nowMs: 1_000_000 }
  const now = () => time.nowMs
  const events = createEventBus()
  const heard: RunEvent[] = []
  events.on((event) => void heard.push(event))
  const perHost = { concurrency: 4, rps: 0, delayMs: 0 }
  const rateLimit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0, now, monotonicNow: now })
  const circuit = createCircuit({ coolDownMs: 30_000, rateLimit, events, now, monotonicNow: now, random: () => 0 })
  const judge = createJudge({ retryAfterMsMax: 60_000, events })
  const cache = createMemoryCache({ freshMs: 1e9 })
  const fetcher = createFetcher({ http, rateLimit, circuit, judge, cache, events, retryAfterMsMax: 60_000, now })
  let urls = 0
  const code = async (url = `${origin}/${urls++}`) =>
    fetcher.fetch({ url }, signal).then(
      ({ status }) => status,
      (error) => error.code,
    )
  return { time, heard, code, rateLimit, [Symbol.dispose]: () => rateLimit[Symbol.dispose]() }
}

test('leaves a site that only blocks alone, sends one probe, and resumes when the site lets us in', async () => {
  using site = chain()
  Object.assign(answer, { status: 403, body: CHALLENGE })
  for (const [count, pauseMs] of [
    [4, 2000],
    [4, 4000],
    [2, 0],
  ] as const) {
    const codes = await Promise.all(Array.from({ length: count }, () => site.code()))
    assert.deepEqual(new Set(codes), new Set(['E_CAPTCHA']))
    assert.ok(site.rateLimit.waitMs(new URL(origin).host) >= pauseMs, 'it is paused before the circuit opens')
    site.time.nowMs += pauseMs
  }
  assert.equal(await site.code(), 'E_CIRCUIT_OPEN')
  assert.ok(site.rateLimit.waitMs(new URL(origin).host) > 5000, 'nothing is claimed for it')
  assert.equal(asked, 10)
  site.time.nowMs += 30_000
  Object.assign(answer, { status: 200, body: html('Job', 'A job') })
  assert.equal(await site.code(), 200)
  site.time.nowMs += 6000
  assert.deepEqual(await Promise.all([site.code(), site.code(), site.code()]), [200, 200, 200])
  assert.equal(asked, 14)
  const states = site.heard.flatMap((event) => (event.type === 'circuit' ? [event.state] : []))
  assert.deepEqual(states, ['open', 'half-open', 'closed'])
  const blocked = site.heard.filter((event) => event.type === 'blocked')
  assert.equal(blocked.length, 10)
  assert.equal(blocked[0]?.type === 'blocked' && blocked[0].vendor, 'cloudflare')
})

test('keeps no block page in the cache', async () => {
  using site = chain()
  Object.assign(answer, { status: 200, body: CHALLENGE })
  assert.equal(await site.code(`${origin}/same`), 'E_CAPTCHA')
  answer.body = html('Job', 'A job')
  assert.equal(await site.code(`${origin}/same`), 200)
})

test('does not open for pages that do not exist, nor for requests to slow down', async () => {
  using site = chain()
  answer.status = 404
  for (let i = 0; i < 15; i++) assert.equal(await site.code(), 'E_NOT_FOUND')
  answer.status = 429
  for (let i = 0; i < 15; i++) {
    assert.equal(await site.code(), 'E_RATE_LIMITED')
    site.time.nowMs += 100_000
  }
  assert.equal(asked, 30)
  assert.deepEqual(
    site.heard.filter(({ type }) => type === 'circuit'),
    [],
  )
})
