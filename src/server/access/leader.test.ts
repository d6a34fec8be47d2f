/** Leader election, and how others see the leader. One suite for both stores. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../test/fleet.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { databases } from '../../../test/stores.ts'
import { lead, leaderSeen, SCHEDULER } from './leader.ts'

for (const [name, withDatabase] of Object.entries(databases(postgresForTests))) {
  test(`${name} anyone can see whether there is a leader, and since when there is none`, () =>
    withDatabase(async (db) => {
      const seen = () => leaderSeen(db, SCHEDULER)
      assert.deepEqual(await seen(), { isThere: false, atMs: undefined })
      const one = lead(db, { name: SCHEDULER, holder: 'one', onChange() {} })
      await until('it leads', () => one.isLeader)
      const { isThere, atMs } = await seen()
      assert.equal(isThere, true)
      assert.ok(Math.abs(atMs! - Date.now()) < 60_000)
      assert.deepEqual(await leaderSeen(db, 'other'), { isThere: false, atMs: undefined })
      await one[Symbol.asyncDispose]()
      const after = await seen()
      assert.equal(after.isThere, false)
      assert.ok(after.atMs !== undefined, 'its last heartbeat stays known')
      await using next = lead(db, { name: SCHEDULER, holder: 'next', onChange() {} })
      await until('another leads at once', () => next.isLeader)
    }))
}
