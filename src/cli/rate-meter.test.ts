import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRateMeter } from './rate-meter.ts'

test('computes the rate over the last ten seconds of looks', () => {
  let nowMs = 0
  const meter = createRateMeter(() => nowMs)
  assert.equal(meter.rate(100), undefined)
  nowMs = 2_000
  assert.equal(meter.rate(120), 10)
  for (nowMs = 3_000; nowMs <= 20_000; nowMs += 1_000) meter.rate(120)
  assert.equal(meter.rate(150), 3)
  nowMs = 22_000
  assert.ok(meter.rate(0)! === 0, 'a count that was set back is no negative rate')
})
