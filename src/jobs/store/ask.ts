/** Runs a query that takes milliseconds, so that the database does not spend more time preparing than answering. */
import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import type { Value } from './rows.ts'

/** Over many partitions PostgreSQL would choose JIT compilation and parallel workers: 30 to 100 ms before the first row. */
const PLAINLY = `select set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`

export async function ask(db: SqlDatabase, sql: string, values: readonly Value[]): Promise<Row[]> {
  if (db.dialect.name !== 'postgres') return await db.rows(sql, values)
  return await db.transaction(async (rows) => {
    await rows(PLAINLY, [])
    return await rows(sql, values)
  })
}
