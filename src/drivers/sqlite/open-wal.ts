/** Opens a small SQLite file that several processes share and that is not worth an fsync. */
import { DatabaseSync } from 'node:sqlite'
import { makeOwnerOnly } from '../../core/private-file.ts'

const BUSY_MS_MAX = 5_000
const LOOK_AGAIN_MS = 5

/**
 * The switch to WAL is not covered by SQLite's busy timeout: of two processes that open a new file in the same moment one is
 * told "database is locked" at once. It looks again until the other is done.
 */
export function openWal(path: string, setUp: (db: DatabaseSync) => void): DatabaseSync {
  makeOwnerOnly(path)
  const db = new DatabaseSync(path, { timeout: BUSY_MS_MAX })
  for (const startMs = performance.now(); ; ) {
    try {
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
      setUp(db)
      return db
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      if (!/locked|busy/i.test(String(error)) || performance.now() - startMs > BUSY_MS_MAX) {
        db.close()
        throw error
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_AGAIN_MS)
    }
  }
}
