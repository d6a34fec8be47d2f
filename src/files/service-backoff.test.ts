import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceBackoff } from './service-backoff.ts'

const LIMITS = { waitMsMin: 100, waitMsMax: 1000, awayMsMax: 10_000 }

test('counts concurrent failures as one; each further attempt waits longer, within a bound', () => {
  const patience = new ServiceBackoff(LIMITS)
  assert.equal(patience.waitMs(0), 0)
  assert.deepEqual([patience.failed(0), patience.failed(10), patience.failed(99)], [100, 90, 1])
  assert.equal(patience.waitMs(60), 40)
  assert.equal(patience.failed(100), 200)
  assert.equal(patience.failed(300), 400)
  assert.equal(patience.failed(700), 800)
  assert.equal(patience.failed(1500), 1000)
})

test('forgets an outage that ended, and gives up on one that does not', () => {
  const patience = new ServiceBackoff(LIMITS)
  patience.failed(0)
  assert.equal(patience.failed(10_001), undefined)
  patience.succeeded()
  assert.equal(patience.waitMs(10_001), 0)
  assert.equal(patience.failed(20_000), 100)
})
