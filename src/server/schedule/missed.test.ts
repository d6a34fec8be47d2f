/** What is reported for fires that were missed while no server was running. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missedReason } from './missed.ts'

const MINUTE = 60_000
const START = Date.UTC(2026, 10, 15, 6, 32)
const minutely = { cron: '* * * * *', tz: 'UTC', nextAtMs: START }

test('several missed fires are one entry that says how many there were, and from when to when', () => {
  const reason = missedReason(minutely, START + 2.5 * MINUTE)
  assert.equal(reason, '3 fires missed, 06:32 to 06:34 UTC: nobody was there')
  const days = missedReason(
    { ...minutely, cron: '32 6 * * *', tz: 'Asia/Tokyo', nextAtMs: START - 9 * 60 * MINUTE },
    START + 15 * 60 * MINUTE,
  )
  assert.equal(days, '2 fires missed, 2026-11-15 06:32 to 2026-11-16 06:32 Asia/Tokyo: nobody was there')
})

test('one missed fire says when it was', () => {
  assert.equal(
    missedReason({ ...minutely, cron: '32 * * * *' }, START + 5 * MINUTE),
    'nobody was there at 2026-11-15T06:32:00.000Z',
  )
})

test('months of missed fires are not counted one by one', () => {
  const reason = missedReason(minutely, START + 60 * 24 * 60 * MINUTE)
  assert.equal(reason, 'more than 1000 fires missed, 2026-11-15 06:32 to 2027-01-14 06:32 UTC: nobody was there')
})
