/** Records of stored files in PostgreSQL, alongside the runs of a fleet. */
import { ScrapeError } from '../core/errors.ts'
import { Database } from '../drivers/postgres/database.ts'
import { migrate } from '../drivers/postgres/migrate.ts'
import type { FileRecords } from './contract.ts'
import { fileTable, sqlFileRecords } from './records-sql.ts'

export async function openPostgresRecords(url: string): Promise<FileRecords> {
  // If the database is down, the record costs a try instead of blocking the worker: its task waits in the queue.
  const db = new Database(url, { connectionsMax: 1, outageMs: 0 })
  try {
    await db.attempt(() => migrate(db.pool, { part: 'files', steps: [fileTable('sluice.')] }))
  } catch (error) {
    await db.close()
    throw error
  }
  return sqlFileRecords({
    prefix: 'sluice.',
    async rows(sql, values) {
      try {
        return (await db.attempt(() => db.pool.query(sql, [...values]))).rows
      } catch (cause) {
        throw new ScrapeError('E_FILE_RECORD', `the records in ${db.place}: ${(cause as Error).message}`, { cause })
      }
    },
    close: () => db.close(),
  })
}
