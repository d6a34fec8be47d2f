/** The rate limit per caller. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle } from './request-throttle.ts'

test('lets a caller through at its rate limit, however many requests are rejected', () => {
  let nowMs = 0
  const wait = createThrottle({ perSecond: 10, now: () => nowMs })
  for (let i = 0; i < 20; i++) assert.equal(wait('a'), 0, 'two seconds’ worth at once')
  assert.ok(wait('a') > 0)
  let passed = 0
  for (; nowMs < 10_000; nowMs += 20) if (wait('a') === 0) passed++
  assert.ok(passed >= 99 && passed <= 101, `${passed} of 500 in ten seconds`)
  assert.equal(wait('b'), 0, 'another is not held up by it')
})
