/** The `postgres:` engine keeps the contract, and rejects a database it does not understand. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Pool } from 'pg'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { migrate } from '../../drivers/postgres/migrate.ts'
import { frontierConformance } from '../conformance.ts'
import { openPostgresFrontier } from './engine.ts'
import { FRONTIER_MIGRATIONS } from './migrations.ts'

const database = await postgresForTests()
after(() => database[Symbol.asyncDispose]())

frontierConformance('postgres:', ({ place, ...options }) =>
  openPostgresFrontier(database.url, { runId: place, ...options }),
)

test('migrates each part of the schema separately, and refuses one that is newer than it knows', async () => {
  await using other = await postgresForTests()
  const pool = new Pool({ connectionString: other.url, max: 1 })
  try {
    await migrate(pool, FRONTIER_MIGRATIONS)
    const steps = ['create table sluice.extra (id int)', 'alter table sluice.extra add name text']
    await migrate(pool, { part: 'extra', steps: steps.slice(0, 1) })
    await migrate(pool, { part: 'extra', steps })
    await migrate(pool, { part: 'extra', steps })
    await pool.query(`insert into sluice.extra values (1, 'a')`)
    await assert.rejects(migrate(pool, { part: 'extra', steps: steps.slice(0, 1) }), { code: 'E_OPTION' })
    await pool.query(`update sluice.migration set version = 999 where part = 'frontier'`)
  } finally {
    await pool.end()
  }
  await assert.rejects(openPostgresFrontier(other.url), { code: 'E_OPTION' })
})
