/** What is too old goes, and nothing else, on both databases. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { onBothDatabases } from '../../test/history.ts'
import type { RunRecord } from '../core/run.ts'
import type { SqlDatabase } from '../drivers/sql.ts'
import { parseKeepMs, purge } from './retention.ts'
import { sqlStore } from './sql-store.ts'

const DAY = 86_400_000
const KEEP = { logs: 30 * DAY, history: 730 * DAY, runs: 180 * DAY }

async function countOf({ rows, dialect: { prefix } }: SqlDatabase, table: string): Promise<number> {
  return Number((await rows(`select count(*) as count from ${prefix}${table}`, []))[0]!['count'])
}

onBothDatabases('retention', (check) => {
  check('changes and gone items go after two years, items that are there stay', async (db) => {
    const { prefix } = db.dialect
    const nowMs = Date.now()
    for (const [key, status, atMs] of [
      ['old', 'gone', nowMs - 800 * DAY],
      ['there', 'active', nowMs - 800 * DAY],
      ['young', 'gone', nowMs - 700 * DAY],
    ] as const) {
      await db.rows(
        `insert into ${prefix}entity (scraper, key, json, content, status, first_seen_ms, last_seen_ms, last_run, scopes)
           values ('books', $1, '{}', '', $2, $3, $3, 'r1', '')`,
        [key, status, atMs],
      )
      await db.rows(
        `insert into ${prefix}entity_change (scraper, key, at_ms, run_id, kind, fields)
           values ('books', $1, $2, 'r1', 'new', '[]')`,
        [key, atMs],
      )
    }
    const store = sqlStore(db)
    assert.deepEqual(await purge(db, store, { keep: { ...KEEP, history: 0 }, nowMs }), {}, '0 keeps all')
    assert.deepEqual(await purge(db, store, { keep: KEEP, nowMs }), { entity_change: 2, entity: 1 })
    assert.deepEqual([await countOf(db, 'entity'), await countOf(db, 'entity_change')], [2, 1])
  })

  check('logs go before their runs, and a run that goes on keeps everything', async (db) => {
    const store = sqlStore(db)
    for (const [id, state, days] of [
      ['r1', 'finished', 200],
      ['r2', 'finished', 40],
      ['r3', 'running', 200],
      ['r4', 'finished', 1],
    ] as const) {
      const record = { id, scraper: 'books', state } as RunRecord
      const options = { limits: {}, allowPrivate: false, allowAddress: [], userAgent: 'x' }
      await store.createRun({ record, definitionHash: 'x', options })
      await store.addLogs(
        id,
        Array.from({ length: 1200 }, () => '{}'),
      )
      await store.putItems(id, [{ key: 'a', json: '{}' }])
      await db.rows(`update ${db.dialect.prefix}run_record set woken_ms = $2 where id = $1`, [
        id,
        Date.now() - days * DAY,
      ])
    }
    const purged = await purge(db, store, { keep: KEEP, nowMs: Date.now() })
    assert.deepEqual(purged, { run_log: 2400, run_record: 1 })
    assert.deepEqual([await countOf(db, 'run_log'), await countOf(db, 'run_item')], [2400, 3])
  })

  check('an event that is still to be delivered stays', async (db) => {
    const { prefix } = db.dialect
    const oldMs = Date.now() - 40 * DAY
    for (const id of ['told', 'waiting', 'digest'])
      await db.rows(`insert into ${prefix}event (id, type, created_ms, data, dedupe) values ($1, 'x', $2, '{}', $1)`, [
        id,
        oldMs,
      ])
    for (const [id, state] of [
      ['told', 'delivered'],
      ['waiting', 'failed'],
    ] as const)
      await db.rows(
        `insert into ${prefix}delivery (webhook_id, event_id, state, created_ms, next_ms) values ('w', $1, $2, $3, $3)`,
        [id, state, oldMs],
      )
    await db.rows(`insert into ${prefix}digest_event (webhook_id, event_id, due_ms) values ('w', 'digest', 0)`, [])
    await purge(db, sqlStore(db), { keep: KEEP, nowMs: Date.now() })
    const left = await db.rows(`select id from ${prefix}event order by id`, [])
    assert.deepEqual(
      left.map(({ id }) => id),
      ['digest', 'waiting'],
    )
  })
})

describe('how long', () => {
  it('is said in days or years, and never by accident as nothing', () => {
    assert.deepEqual(['30d', '2y', 'forever', '1h'].map(parseKeepMs), [30 * DAY, 730 * DAY, 0, 3_600_000])
    for (const wrong of ['30', '0', '', 'ever', '5m', '-1d']) assert.ok(Number.isNaN(parseKeepMs(wrong)), wrong)
  })
})
