/** Records of stored files in one SQLite file, for single runs: several processes of one machine may open it. */
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import { makeOwnerOnly } from '../core/private-file.ts'
import type { FileRecords } from './contract.ts'
import { fileTable, sqlFileRecords } from './records-sql.ts'

const BUSY_MS_MAX = 10_000
const VERSION = 1

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
  let db: DatabaseSync | undefined
  try {
    mkdirSync(dirname(file), { recursive: true })
    makeOwnerOnly(file)
    db = new DatabaseSync(file, { timeout: BUSY_MS_MAX })
    db.exec('pragma journal_mode = wal; pragma synchronous = full; begin immediate')
    const version = Number(db.prepare('pragma user_version').get()!['user_version'])
    if (version > VERSION) throw new Error(`it has version ${version}, this Sluice knows ${VERSION}`)
    if (version < VERSION) db.exec(`${fileTable('')} pragma user_version = ${VERSION};`)
    db.exec('commit')
    return db
  } catch (cause) {
    db?.close()
    throw new ScrapeError('E_OUTPUT', `the records of files in ${file} cannot be opened: ${(cause as Error).message}`, {
      cause,
    })
  }
}
