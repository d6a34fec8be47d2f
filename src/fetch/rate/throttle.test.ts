import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { createThrottle } from './throttle.ts'

const requestAt = (startedMs: number) => ({ url: 'http://a/', startedMs, isAlone: true })

function given(retryAfterMsMax = 3_600_000) {
  const time = { nowMs: 1_700_000_000_000 }
  const pausesMs: number[] = []
  const events: RunEvent[] = []
  const throttle = createThrottle({
    retryAfterMsMax,
    now: () => time.nowMs,
    rateLimit: { pause: (_host, untilMs) => void pausesMs.push(untilMs - time.nowMs) },
    events: { emit: (event) => void events.push(event) },
  })
  /** Fails one request with this status; returns what the error then says about the next attempt. */
  const fail = (status: number, retryAfterMs?: number, startedMs = time.nowMs): number | undefined => {
    const details = retryAfterMs === undefined ? { status } : { status, retryAfterMs }
    const error = new ScrapeError(status === 429 ? 'E_RATE_LIMITED' : 'E_SERVER', 'x', details)
    throttle.onError('a', error, requestAt(startedMs))
    return error.details.retryAfterMs
  }
  return { throttle, time, pausesMs, events, fail }
}

test('pauses longer with every 429 in a row that names no time, and finally charges an attempt', () => {
  const { time, pausesMs, fail } = given()
  const named: unknown[] = []
  for (let i = 0; i < 9; i++) {
    named.push(fail(429))
    time.nowMs += pausesMs.at(-1)! + 1
  }
  assert.deepEqual(pausesMs, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  assert.deepEqual(named, [1000, 2000, 4000, 8000, 16_000, 32_000, undefined, undefined, undefined])
})

test('believes a server that names a time, until that has lasted too long', () => {
  const { time, pausesMs, fail } = given()
  for (let i = 0; i < 7; i++) {
    fail(429, 1000)
    time.nowMs += pausesMs.at(-1)! + 1
  }
  assert.deepEqual(pausesMs, [1000, 1000, 1000, 1000, 2000, 4000, 7500])
})

test('starts over after any other response', () => {
  const { throttle, time, pausesMs, fail } = given()
  fail(429)
  time.nowMs += 5000
  fail(429)
  throttle.onAnswer('a')
  time.nowMs += 5000
  fail(429)
  time.nowMs += 5000
  fail(404)
  time.nowMs += 5000
  fail(429)
  assert.deepEqual(pausesMs, [1000, 2000, 1000, 1000])
})

test('counts responses to requests that were in flight together once', () => {
  const { time, pausesMs, events, fail } = given()
  const startedMs = time.nowMs - 100
  assert.equal(fail(429, undefined, startedMs), 1000)
  time.nowMs += 10
  assert.equal(fail(429, undefined, startedMs), 990)
  assert.equal(fail(429, 30_000, startedMs), 30_000, 'unless one of them asks for more')
  assert.deepEqual(pausesMs, [1000, 30_000])
  assert.equal(events.length, 2)
})

test('obeys an absurd wait up to the limit, and passes it on for the retry manager to judge', () => {
  const { pausesMs, fail } = given(60_000)
  assert.equal(fail(429, 1e9), 1e9)
  assert.deepEqual(pausesMs, [60_000])
})

test('pauses for a 503 only if it names a time', () => {
  const { pausesMs, events, fail } = given()
  fail(503)
  fail(503, 7000)
  assert.deepEqual(pausesMs, [7000])
  assert.deepEqual(
    events.map((event) => event.type),
    ['throttled'],
  )
})

test('blames no host for a robots.txt that cannot be read', () => {
  const { throttle, pausesMs } = given()
  throttle.onError('a', new ScrapeError('E_ROBOTS_UNREACHABLE', 'x', { status: 429, retryAfterMs: 2000 }), requestAt(0))
  assert.deepEqual(pausesMs, [])
})

test('treats a request to slow down as one, whatever its status, and finally charges an attempt', () => {
  const { throttle, time, pausesMs } = given()
  const named: unknown[] = []
  for (let i = 0; i < 7; i++) {
    const error = new ScrapeError('E_RATE_LIMITED', 'asked to slow down by cloudflare', { status: 200 })
    throttle.onError('a', error, requestAt(time.nowMs))
    named.push(error.details.retryAfterMs)
    time.nowMs += pausesMs.at(-1)! + 1
  }
  assert.deepEqual(named, [1000, 2000, 4000, 8000, 16_000, 32_000, undefined])
})

test('a block resets the count of 429s, and blocks have their own pauses', () => {
  const { throttle, time, pausesMs, fail } = given()
  fail(429)
  time.nowMs += 1001
  fail(429)
  for (const url of ['http://a/1', 'http://a/2']) {
    time.nowMs += 5000
    const error = new ScrapeError('E_CAPTCHA', 'x', { status: 200 })
    throttle.onError('a', error, { url, startedMs: time.nowMs, isAlone: true })
  }
  time.nowMs += 5000
  fail(429)
  assert.deepEqual(pausesMs, [1000, 2000, 2000, 1000])
})
