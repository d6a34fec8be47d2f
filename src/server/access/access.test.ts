/** API keys: rotation and expiry; and an audit log that a flood of requests cannot fill. One suite for both stores. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Pool } from 'pg'
import { until } from '../../../test/fleet.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import { databases } from '../../../test/stores.ts'
import { migrate } from '../../drivers/postgres/migrate.ts'
import type { SqlDatabase } from '../../drivers/sql.ts'
import { openPostgresDatabase, POSTGRES } from '../../store/postgres.ts'
import { STORE_STEPS } from '../../store/schema.ts'
import { openSqliteDatabase, SQLITE } from '../../store/sqlite.ts'
import { Audit, type AuditEntry } from './audit.ts'
import { ApiKeys, hashOfKey } from './keys.ts'
import { BoundedRefusals, type Refusal } from './refusals.ts'

const found = async (keys: ApiKeys, key: string) => (await keys.inUse()).get(hashOfKey(key))

for (const [name, withDatabase] of Object.entries(databases(postgresForTests))) {
  test(`${name} a rotated key keeps working during its grace period, its successor works at once`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const old = await keys.create('grafana', 'read')
      const next = (await keys.rotate(old.id, { graceMs: 3_600_000 }))!
      assert.deepEqual([next.name, next.role], ['grafana', 'read'])
      assert.equal((await found(keys, old.key))?.id, old.id)
      assert.equal((await found(keys, next.key))?.role, 'read')
      const listed = await keys.list()
      const [first, second] = [old, next].map(({ id }) => listed.find((one) => one.id === id))
      assert.equal(first!.expiresAtMs, next.oldUntilMs)
      assert.equal(first!.successorId, next.id)
      assert.deepEqual([second!.name, second!.expiresAtMs, second!.successorId], ['grafana', undefined, undefined])
      assert.equal(await keys.rotate(old.id, { graceMs: 1 }), undefined, 'it has a successor')
      await assert.rejects(keys.create('grafana', 'admin'), /there is a key named/)
      const last = (await keys.rotate(next.id, { graceMs: 0 }))!
      await until('its grace is over', async () => (await found(keys, next.key)) === undefined)
      assert.notEqual(await found(keys, last.key), undefined)
    }))

  test(`${name} an expired key is refused and cannot be rotated`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const short = await keys.create('short', 'operate', { lifeMs: 0 })
      await until('it is over', async () => (await found(keys, short.key)) === undefined)
      assert.equal(await keys.rotate(short.id, { graceMs: 1000 }), undefined)
      const long = await keys.create('long', 'operate', { lifeMs: 3_600_000 })
      const next = (await keys.rotate(long.id, { graceMs: 86_400_000 }))!
      const kept = (await keys.list()).find(({ id }) => id === long.id)!
      assert.ok(kept.expiresAtMs! - kept.createdAtMs <= 3_601_000, 'a grace does not lengthen a life')
      assert.equal(next.oldUntilMs, kept.expiresAtMs)
    }))

  test(`${name} the name of an expired or revoked key can be reused, that of a key in use cannot`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const expired = await keys.create('ci', 'operate', { lifeMs: 0 })
      await until('it is over', async () => (await found(keys, expired.key)) === undefined)
      const revoked = await keys.create('ci', 'operate')
      await assert.rejects(keys.create('ci', 'read'), /there is a key named "ci"/)
      await keys.revoke(revoked.id)
      const first = await keys.create('ci', 'read')
      const next = (await keys.rotate(first.id, { graceMs: 3_600_000 }))!
      await keys.revoke(next.id)
      await assert.rejects(keys.create('ci', 'admin'), /there is a key named/, 'the first is in its grace')
      await keys.revoke(first.id)
      const made = await Promise.allSettled(Array.from({ length: 5 }, () => keys.create('ci', 'read')))
      assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1, 'one of those who want it at once')
      assert.equal(await found(keys, revoked.key), undefined)
      assert.equal((await keys.list()).filter(({ successorId }) => successorId === undefined).length, 1)
    }))

  test(`${name} a store that once had a key still counts as having keys`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      assert.equal(await keys.haveExisted(), false)
      await keys.revoke((await keys.create('ci', 'read')).id)
      assert.deepEqual([(await keys.inUse()).size, await keys.haveExisted()], [0, true])
    }))

  test(`${name} a successor lives as long as the key it replaces, unless told otherwise`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const lives = async (id: string) => {
        const { expiresAtMs, createdAtMs } = (await keys.list()).find((key) => key.id === id)!
        return expiresAtMs === undefined ? undefined : Math.round((expiresAtMs - createdAtMs) / 3_600_000)
      }
      const old = await keys.create('grafana', 'read', { lifeMs: 90 * 3_600_000 })
      const second = (await keys.rotate(old.id, { graceMs: 3_600_000 }))!
      assert.equal(await lives(second.id), 90)
      const third = (await keys.rotate(second.id, { graceMs: 3_600_000, lifeMs: 7 * 3_600_000 }))!
      assert.equal(await lives(third.id), 7)
      const last = (await keys.rotate(third.id, { graceMs: 0, lifeMs: Number.POSITIVE_INFINITY }))!
      assert.equal(await lives(last.id), undefined)
    }))

  test(`${name} the audit log keeps who did what, from where, and the result, page by page`, () =>
    withDatabase(async (db) => {
      const audit = new Audit(db)
      const entry = { caller: 'ci', role: 'operate', address: '10.0.0.7', action: 'POST /v1/runs', detail: '{}' }
      for (const status of [201, 403, 500]) await audit.add({ ...entry, status })
      const [newest, ...rest] = await audit.list({ limit: 1 })
      assert.deepEqual([newest!.status, newest!.address, rest.length], [500, '10.0.0.7', 0])
      const before = await audit.list({ limit: 10, before: newest!.id })
      assert.deepEqual(
        before.map(({ status }) => status),
        [403, 201],
      )
    }))
}

const REFUSAL = { caller: 'x', role: 'none', address: '10.0.0.1', action: 'GET /v1/runs', status: 401 }

test('a flood of refused requests writes one line per minute, caller and address, and at most 60 in all', () => {
  let nowMs = 0
  const lines: AuditEntry[] = []
  using refusals = new BoundedRefusals({ write: (line) => lines.push(line), now: () => nowMs })
  const flood = (count: number, of: (i: number) => Partial<Refusal>) => {
    for (let i = 0; i < count; i++) refusals.add({ ...REFUSAL, ...of(i) })
    return lines.splice(0)
  }
  assert.equal(flood(1000, () => ({})).length, 1)
  assert.deepEqual(
    flood(10, (i) => ({ caller: i % 2 === 0 ? 'y' : 'x', status: i % 2 === 0 ? 403 : 401 })).map(
      ({ caller }) => caller,
    ),
    ['y'],
    'one caller does not hide another of the same address',
  )
  assert.equal(flood(5000, (i) => ({ address: `10.1.${i >> 8}.${i & 255}` })).length, 58)
  nowMs = 60_000
  const after = flood(100, () => ({ address: '10.9.9.9' }))
  assert.deepEqual(
    after.map(({ caller, detail }) => [caller, detail]),
    [
      ['others', '4942 refused for whom there was no line'],
      ['x', 'and 1004 more since the last line'],
      ['y', 'and 4 more since the last line'],
      ['x', ''],
    ],
  )
  for (nowMs = 120_000; nowMs < 300_000; nowMs += 60_000) refusals.flush()
  assert.deepEqual(
    lines.splice(0).map(({ address, detail }) => [address, detail]),
    [['10.9.9.9', 'and 99 more since the last line']],
    'also when the flood has stopped',
  )
})

test('a flood under ever-changing names writes at most 60 lines a minute, indefinitely', () => {
  let nowMs = 0
  let lines = 0
  using refusals = new BoundedRefusals({ write: () => lines++, now: () => nowMs })
  for (let minute = 0; minute < 10; minute++, nowMs += 60_000) {
    lines = 0
    for (let i = 0; i < 3000; i++) refusals.add({ ...REFUSAL, caller: `${minute % 2}-${i % 1500}` })
    assert.ok(lines <= 60, `${lines} in minute ${minute}`)
  }
})

test('counts that were not reported yet are written on disposal', () => {
  const lines: AuditEntry[] = []
  {
    using refusals = new BoundedRefusals({ write: (line) => lines.push(line), now: () => 0 })
    for (let i = 0; i < 5; i++) refusals.add(REFUSAL)
  }
  assert.deepEqual(
    lines.map(({ detail }) => detail),
    ['', 'and 4 more since the last line'],
  )
})

test('keys created before expiry and rotation existed still work', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'store.db')
  const before = STORE_STEPS(SQLITE).slice(0, STEPS_BEFORE_ROTATION)
  const old = new DatabaseSync(file)
  old.exec(`${before.join(';\n')}; pragma user_version = ${before.length}`)
  old.prepare('insert into api_key (id, name, hash, role) values (?, ?, ?, ?)').run(...OLD_KEY)
  old.close()
  const sqlite = openSqliteDatabase(file)
  await assertOldKeyWorks(sqlite).finally(() => sqlite.close())

  await using database = await postgresForTests()
  const pool = new Pool({ connectionString: database.url })
  await migrate(pool, { part: 'store', steps: STORE_STEPS(POSTGRES).slice(0, STEPS_BEFORE_ROTATION) })
  await pool.query('insert into sluice.api_key (id, name, hash, role) values ($1, $2, $3, $4)', OLD_KEY)
  await pool.end()
  const postgres = await openPostgresDatabase(database.url)
  await assertOldKeyWorks(postgres).finally(() => postgres.close())
})

const STEPS_BEFORE_ROTATION = 8
const KEY = 'slk_an-old-one'
const OLD_KEY = ['aaaabbbbcccc', 'grafana', createHash('sha256').update(KEY).digest('hex'), 'read']

async function assertOldKeyWorks(db: SqlDatabase): Promise<void> {
  const keys = new ApiKeys(db)
  assert.equal((await found(keys, KEY))?.name, 'grafana')
  assert.ok(await keys.rotate('aaaabbbbcccc', { graceMs: 1000 }), 'and can be replaced')
}
