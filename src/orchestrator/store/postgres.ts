/** The store on PostgreSQL: any number of orchestrators and workers of any machine. Its clock is the only one that counts. */
import { Database } from '../../postgres/database.ts'
import { migrate } from '../../postgres/migrate.ts'
import type { Store } from '../contract.ts'
import { STORE_STEPS } from './schema.ts'
import { type Dialect, type Row, sqlStore } from './sql-store.ts'

const POSTGRES: Dialect = {
  prefix: 'sluice.',
  now: '(extract(epoch from statement_timestamp()) * 1000)::bigint',
  bytes: 'bytea',
  identity: 'bigint generated always as identity primary key',
  oneOf: (column, parameter) => `${column} in (select json_array_elements_text(cast(${parameter} as json)))`,
}

/** `dropQueue` removes the queue and the items of a run: they are the frontier's, in the same database. */
export async function openPostgresStore(
  url: string,
  dropQueue: (db: Database, runId: string) => Promise<void>,
): Promise<Store> {
  const db = new Database(url, { connectionsMax: 2 })
  try {
    await db.attempt(() => migrate(db.pool, { part: 'store', steps: STORE_STEPS(POSTGRES) }))
  } catch (error) {
    await db.close()
    throw error
  }
  return sqlStore({
    dialect: POSTGRES,
    place: db.place,
    rows: (sql, values) => db.attempt(async () => (await db.pool.query(sql, [...values])).rows as Row[]),
    dropQueue: (runId) => dropQueue(db, runId),
    close: () => db.close(),
  })
}
