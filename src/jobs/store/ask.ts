/** A question that takes milliseconds, asked so that the database does not spend more on getting ready than on answering. */
import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import type { Value } from './rows.ts'

/** Over many partitions PostgreSQL expects work for compiled code and several processes: 30 to 100 ms before the first row. */
const PLAINLY = `select set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`

export async function ask(db: SqlDatabase, sql: string, values: readonly Value[]): Promise<Row[]> {
  if (db.dialect.name !== 'postgres') return await db.rows(sql, values)
  return await db.transaction(async (rows) => {
    await rows(PLAINLY, [])
    return await rows(sql, values)
  })
}
