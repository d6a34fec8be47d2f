/** Rates and pauses of a fleet on a real PostgreSQL, through a real connection pooler. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Pgbouncer, pgbouncerForTests } from '../../../test/services/pgbouncer.ts'
import { postgresForTests, startPostgres, type TestDatabase } from '../../../test/services/postgres.ts'
import { every, testFleetSlots } from './fleet-slots.test-kit.ts'
import { createLocalSlots } from './local-slots.ts'
import { openPostgresSlots } from './postgres-slots.ts'

let database: TestDatabase
let pooler: Pgbouncer

before(async () => {
  database = await postgresForTests()
  pooler = await pgbouncerForTests(database.url)
})
after(async () => {
  await pooler[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

testFleetSlots({
  url: () => pooler.url,
  open: openPostgresSlots,
  async startServer() {
    const server = await startPostgres()
    return Object.assign(server, { kill: () => server.stop('immediate') })
  },
})

describe('slots in PostgreSQL', () => {
  it('are shared by the runs of one database and created by the first worker', async () => {
    await using empty = await postgresForTests()
    const all = await Promise.all(Array.from({ length: 5 }, () => openPostgresSlots({ url: empty.url })))
    const grants = await Promise.all(all.map((slots) => slots.take(every(1000, 'a.test'))))
    assert.equal(grants.filter(({ startsInMs }) => startsInMs.length > 0).length, 1)
    for (const slots of all) await slots[Symbol.asyncDispose]()
  })

  it('are not held up by a database clock that was set back', async () => {
    await using slots = await openPostgresSlots({ url: pooler.url })
    await slots.take(every(1000, 'jump.test'))
    slots.pause('jump.test', 300)
    await slots.take(every(1000, 'jump.test')) // after the pause was stored
    const client = new pg.Client(database.url)
    await client.connect()
    await client.query(`UPDATE sluice.host_slot SET tat_ms = tat_ms + 3600000, paused_until_ms = paused_until_ms + 3600000
                        WHERE host = 'jump.test'`) // biome-ignore format: one statement
    await client.end()
    const { pausedMs } = await slots.take(every(1000, 'jump.test'))
    assert.ok(pausedMs <= 300, `paused for ${pausedMs} ms`)
    let grant = await slots.take(every(1000, 'jump.test'))
    for (let asks = 1; grant.startsInMs.length === 0; asks++) {
      assert.ok(asks < 10, `asked ${asks} times, and again in ${grant.againInMs} ms`)
      await delay(Math.max(grant.againInMs, grant.pausedMs))
      grant = await slots.take(every(1000, 'jump.test'))
    }
  })

  it('of a host without a rate are not held up by such a clock either', async () => {
    await using slots = await openPostgresSlots({ url: pooler.url })
    const client = new pg.Client(database.url)
    await client.connect()
    slots.pause('look.test', 3000)
    await slots.take(every(0, 'look.test')) // after the pause was stored
    await client.query(
      `UPDATE sluice.host_slot SET paused_until_ms = paused_until_ms + 3600000 WHERE host = 'look.test'`,
    )
    await client.end()
    const { pausedMs } = await slots.take(every(0, 'look.test'))
    assert.ok(pausedMs > 0 && pausedMs <= 3000, `paused for ${pausedMs} ms`)
    await delay(pausedMs + 5)
    assert.equal((await slots.take(every(0, 'look.test'))).pausedMs, 0)
  })

  it('cannot be opened if the database is unreachable', async () => {
    await assert.rejects(openPostgresSlots({ url: 'postgres://postgres@127.0.0.1:1/none' }), { code: 'E_SERVICE' })
    await assert.rejects(openPostgresSlots({}), { code: 'E_OPTION' })
  })
})

describe('a worker’s own share', () => {
  it('is the rate divided by the workers, and begins with a wait', () => {
    let nowMs = 1000
    const slots = createLocalSlots(() => nowMs)
    slots.workers = 4
    assert.deepEqual(slots.take(every(50, 'a.test', 5)), { startsInMs: [200], againInMs: 1, pausedMs: 0 })
    nowMs += 200
    assert.deepEqual(slots.take(every(50, 'a.test', 5)).startsInMs, [200])
    assert.deepEqual(slots.take(every(50, 'a.test', 5)), { startsInMs: [], againInMs: 150, pausedMs: 0 })
    assert.deepEqual(slots.take({ ...every(50, 'b.test'), intervalMs: 0 }), { startsInMs: [], againInMs: 0, pausedMs: 0 }) // biome-ignore format: one line reads better
  })
})
