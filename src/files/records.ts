/** Records of stored files in one SQLite file, for single runs: several processes on one machine may open it. */
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import { openSqlite } from '../drivers/sqlite/open.ts'
import type { FileRecords } from './contract.ts'
import { fileTable, sqlFileRecords } from './records-sql.ts'

const BUSY_MS_MAX = 10_000

export function openSqliteRecords(path: string): FileRecords {
  const file = resolve(path)
  const db = opened(file)
  return sqlFileRecords({
    prefix: '',
    async rows(sql, values) {
      try {
        return db.prepare(sql).all(Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value])))
      } catch (cause) {
        throw new ScrapeError('E_FILE_RECORD', `the records in ${file}: ${(cause as Error).message}`, { cause })
      }
    },
    async close() {
      if (db.isOpen) db.close()
    },
  })
}

function opened(file: string): DatabaseSync {
  const steps = [fileTable('')]
  const newer = (version: number) => new Error(`it has version ${version}, this Sluice knows ${steps.length}`)
  try {
    return openSqlite(file, { busyMsMax: BUSY_MS_MAX, synchronous: 'full', schema: { steps, newer } })
  } catch (cause) {
    throw new ScrapeError('E_OUTPUT', `the records of files in ${file} cannot be opened: ${(cause as Error).message}`, {
      cause,
    })
  }
}
