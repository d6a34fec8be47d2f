/** Keys that are replaced and expire, and an audit that nobody can fill. One suite for both stores. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Pool } from 'pg'
import { until } from '../../../test/fleet.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { temporaryFolder } from '../../../test/sluice.ts'
import { migrate } from '../../postgres/migrate.ts'
import { openPostgresDatabase, POSTGRES } from '../store/postgres.ts'
import { STORE_STEPS } from '../store/schema.ts'
import type { SqlDatabase } from '../store/sql.ts'
import { openSqliteDatabase, SQLITE } from '../store/sqlite.ts'
import { Audit } from './audit.ts'
import { ApiKeys } from './keys.ts'
import { boundedRefusals } from './refusals.ts'

const ENGINES: Record<string, (work: (db: SqlDatabase) => Promise<void>) => Promise<void>> = {
  'sqlite:': async (work) => {
    using folder = temporaryFolder()
    const db = openSqliteDatabase(join(folder.path, 'store.db'))
    await work(db).finally(() => db.close())
  },
  'postgres:': async (work) => {
    await using database = await postgresForTests()
    const db = await openPostgresDatabase(database.url)
    await work(db).finally(() => db.close())
  },
}

for (const [name, withDatabase] of Object.entries(ENGINES)) {
  test(`${name} a replaced key works on during its grace, its successor at once`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const old = await keys.create('grafana', 'read')
      const next = (await keys.rotate(old.id, { graceMs: 3_600_000 }))!
      assert.deepEqual([next.name, next.role], ['grafana', 'read'])
      assert.equal((await keys.find(old.key))?.id, old.id)
      assert.equal((await keys.find(next.key))?.role, 'read')
      const [first, second] = await keys.list()
      assert.equal(first!.expiresAtMs, next.oldUntilMs)
      assert.equal(first!.successorId, next.id)
      assert.deepEqual([second!.name, second!.expiresAtMs, second!.successorId], ['grafana', undefined, undefined])
      assert.equal(await keys.rotate(old.id, { graceMs: 1 }), undefined, 'it has a successor')
      await assert.rejects(keys.create('grafana', 'admin'), /there is a key named/)
      const last = (await keys.rotate(next.id, { graceMs: 0 }))!
      await until('its grace is over', async () => (await keys.find(next.key)) === undefined)
      assert.notEqual(await keys.find(last.key), undefined)
    }))

  test(`${name} a key with an end is refused after it, and not replaced`, () =>
    withDatabase(async (db) => {
      const keys = new ApiKeys(db)
      const short = await keys.create('short', 'operate', { lifeMs: 0 })
      await until('it is over', async () => (await keys.find(short.key)) === undefined)
      assert.equal(await keys.rotate(short.id, { graceMs: 1000 }), undefined)
      const long = await keys.create('long', 'operate', { lifeMs: 3_600_000 })
      const next = (await keys.rotate(long.id, { graceMs: 86_400_000 }))!
      const kept = (await keys.list()).find(({ id }) => id === long.id)!
      assert.ok(kept.expiresAtMs! - kept.createdAtMs <= 3_601_000, 'a grace does not lengthen a life')
      assert.equal(next.oldUntilMs, kept.expiresAtMs)
    }))

  test(`${name} the audit keeps who, what, from where and how it ended, page by page`, () =>
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

test('a flood of refused requests is a line a minute and address, and at most 60 in all', () => {
  let nowMs = 0
  const lineOf = boundedRefusals(() => nowMs)
  const refusal = { caller: 'x', role: 'none', address: '10.0.0.1', action: 'GET /v1/runs', status: 401 }
  const lines = Array.from({ length: 1000 }, () => lineOf(refusal)).filter((line) => line !== undefined)
  assert.equal(lines.length, 1)
  const many = Array.from({ length: 5000 }, (_, i) => lineOf({ ...refusal, address: `10.1.${i >> 8}.${i & 255}` }))
  assert.equal(many.filter((line) => line !== undefined).length, 59)
  nowMs = 60_000
  const again = Array.from({ length: 100 }, () => lineOf({ ...refusal, address: '10.9.9.9' }))
  assert.equal(again.filter((line) => line !== undefined).length, 1)
  nowMs = 120_000
  assert.equal(lineOf({ ...refusal, address: '10.9.9.9' })?.detail, 'and 99 more since the last line')
})

test('keys of before expiry and successors were known still open the door', async () => {
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
  assert.equal((await keys.find(KEY))?.name, 'grafana')
  assert.ok(await keys.rotate('aaaabbbbcccc', { graceMs: 1000 }), 'and can be replaced')
}
