/** For open-wal.test.ts: opens the files it is told to. */
import { openWal } from './open-wal.ts'

process.on('message', (path: string) => {
  openWal(path, (db) => db.exec('BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS t (a); COMMIT')).close()
  process.send?.('open')
})
process.send?.('ready')
