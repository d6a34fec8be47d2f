/** The database's clock decides; a worker's own clock may be wrong. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { Database } from '../../drivers/postgres/database.ts'
import { openPostgresFrontier } from './engine.ts'

const database = await postgresForTests()
after(() => database[Symbol.asyncDispose]())

const HOUR_MS = 3_600_000
const page = (n: number, more: object = {}) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0, ...more })
const lease = { max: 10, leaseMs: 60_000 }

for (const [name, skewMs] of [
  ['fast', HOUR_MS],
  ['slow', -HOUR_MS],
] as const) {
  test(`is not affected by a worker whose clock is an hour ${name}`, async (t) => {
    const trueNow = Date.now
    await using right = await openPostgresFrontier(database.url, { runId: name })
    await using wrong = await openPostgresFrontier(database.url, { runId: name })
    // Simulates a machine with a wrong clock: engine and worker read the same time.
    const asWrong = async <T>(body: (nowMs: number) => Promise<T>): Promise<T> => {
      t.mock.method(Date, 'now', () => trueNow() + skewMs)
      try {
        return await body(Date.now())
      } finally {
        t.mock.restoreAll()
      }
    }
    await right.add([page(1), page(2), page(3)])
    const [first, second, third] = await wrong.claim({ ...lease, workerId: 'wrong' })
    assert.deepEqual(await right.sweep({ lossesMax: 3 }), { returned: 0, dead: 0 }, 'its leases are not over')
    await asWrong(async (nowMs) => {
      await wrong.commit([
        { kind: 'retry', lease: first!, atMs: nowMs + 30_000, error: { code: 'E_SERVER', class: 'x', message: 'x' } },
        { kind: 'postpone', lease: second!, atMs: nowMs - 10, reason: 'drain' },
        { kind: 'done', lease: third!, tasks: [page(4, { notBeforeMs: nowMs + 20_000 })] },
      ])
      const dueInMs = (await wrong.nextDueMs())! - Date.now()
      assert.ok(dueInMs > 15_000 && dueInMs <= 20_000, `due in ${dueInMs} ms by its own clock`)
    })
    const dueInMs = (await right.nextDueMs())! - Date.now()
    assert.ok(dueInMs > 15_000 && dueInMs <= 20_000, `due in ${dueInMs} ms by the right clock`)
    const given = await right.claim({ ...lease, workerId: 'right' })
    assert.deepEqual(
      given.map(({ task }) => task.url),
      [page(2).url],
    )
  })
}

test('expires leases by the clock of the database', async () => {
  await using frontier = await openPostgresFrontier(database.url, { runId: 'expiry' })
  await frontier.add([page(1)])
  await frontier.claim({ max: 1, workerId: 'w', leaseMs: 50 })
  const db = new Database(database.url)
  await db.rows('select pg_sleep(0.06)', [])
  await db.close()
  assert.deepEqual(await frontier.sweep({ lossesMax: 3 }), { returned: 1, dead: 0 })
})
