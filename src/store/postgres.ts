/** The store on PostgreSQL: any number of orchestrators and workers of any machine. Its clock is the only one that counts. */
import { Database } from '../drivers/postgres/database.ts'
import { migrate } from '../drivers/postgres/migrate.ts'
import type { Dialect, Row, Rows, SqlDatabase } from '../drivers/sql.ts'
import type { Store } from './contract.ts'
import { STORE_STEPS } from './schema.ts'
import { sqlStore } from './sql-store.ts'

export const POSTGRES: Dialect = {
  name: 'postgres',
  prefix: 'sluice.',
  now: '(extract(epoch from statement_timestamp()) * 1000)::bigint',
  bytes: 'bytea',
  identity: 'bigint generated always as identity primary key',
  skipLocked: 'for update skip locked',
  inTurn: '(select pg_advisory_xact_lock(hashtextextended($1, 0))) as turn (taken),',
  oneOf: (column, parameter) => `${column} in (select json_array_elements_text(cast(${parameter} as json)))`,
}

interface PostgresDatabase extends SqlDatabase {
  readonly database: Database
}

/** Brought to the version this program knows. */
export async function openPostgresDatabase(url: string, { connectionsMax = 2 } = {}): Promise<PostgresDatabase> {
  const database = new Database(url, { connectionsMax })
  try {
    await database.attempt(() => migrate(database.pool, { part: 'store', steps: STORE_STEPS(POSTGRES) }))
  } catch (error) {
    await database.close()
    throw error
  }
  return {
    dialect: POSTGRES,
    place: database.place,
    database,
    rows: (sql, values) => database.attempt(async () => (await database.pool.query(sql, [...values])).rows as Row[]),
    transaction: (work) => database.attempt(() => inTransaction(database, work)),
    close: () => database.close(),
  }
}

async function inTransaction<T>({ pool }: Database, work: (rows: Rows) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(async (sql, values) => (await client.query(sql, [...values])).rows as Row[])
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    const isBack = await client.query('rollback').then(
      () => true,
      () => false,
    )
    client.release(!isBack)
    throw error
  }
}

/** `dropQueue` removes the queue and the items of a run: they are the frontier's, in the same database. */
export async function openPostgresStore(
  url: string,
  dropQueue: (db: Database, runId: string) => Promise<void>,
): Promise<Store> {
  const db = await openPostgresDatabase(url)
  return sqlStore(db, (runId) => dropQueue(db.database, runId))
}
