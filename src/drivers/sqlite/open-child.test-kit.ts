/** For open.test.ts: opens the files it is sent. */
import { openSqlite } from './open.ts'

process.on('message', (path: string) => {
  const schema = { steps: ['create table t (a)'], newer: () => new Error('newer') }
  openSqlite(path, { busyMsMax: 5_000, synchronous: 'off', schema }).close()
  process.send?.('open')
})
process.send?.('ready')
