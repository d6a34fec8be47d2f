/** The longest expected gap between two fires of a schedule. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longestGapMs } from './cron.ts'

const HOUR_MS = 3_600_000
/** A Wednesday. */
const FROM_MS = Date.UTC(2026, 5, 3, 7)

test('the longest gap of a schedule without nights and weekends is its weekend', () => {
  for (const [cron, hours] of [
    ['0 9-17 * * 1-5', 64],
    ['*/5 9-17 * * 1-5', 63 + 5 / 60],
    ['* 9-17 * * 1-5', 63 + 1 / 60],
    ['*/20 8-18 * * *', 13 + 20 / 60],
  ] as const)
    for (let day = 0; day < 7; day++)
      assert.equal(longestGapMs(cron, 'Europe/Rome', FROM_MS + day * 24 * HOUR_MS) / HOUR_MS, hours, cron)
})

test('for a regular schedule it is the time between two fires, even if that is more than a week', () => {
  const hours = (cron: string) => longestGapMs(cron, 'UTC', FROM_MS) / HOUR_MS
  assert.equal(hours('* * * * *'), 1 / 60)
  assert.equal(hours('0 * * * *'), 1)
  assert.equal(hours('0 6 * * *'), 24)
  assert.equal(hours('0 6 * * 1'), 168)
  assert.equal(hours('0 6 1 * *'), 31 * 24)
})
