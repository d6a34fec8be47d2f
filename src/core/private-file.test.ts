/** Which databases other users can read. */
import assert from 'node:assert/strict'
import { chmodSync, globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { openSqlite } from '../drivers/sqlite/open.ts'
import { openSqliteRecords } from '../files/records.ts'
import { openSqliteFrontier } from '../frontier/sqlite/engine.ts'
import { openSqliteDatabase } from '../store/sqlite.ts'
import { makeOwnerOnly } from './private-file.ts'

const OPEN: Readonly<Record<string, (path: string) => Promise<() => unknown>>> = {
  'the queue': async (path) => {
    const frontier = await openSqliteFrontier(path)
    await frontier.add([{ url: 'https://shop.example/', route: 'list', depth: 0 }])
    return () => frontier[Symbol.asyncDispose]()
  },
  'the store': async (path) => {
    const db = openSqliteDatabase(path)
    return () => db.close()
  },
  'the records of files': async (path) => {
    const records = openSqliteRecords(path)
    return () => records[Symbol.asyncDispose]()
  },
  'the cache and the rates': async (path) => {
    const db = openSqlite(path, {
      busyMsMax: 5_000,
      synchronous: 'off',
      setUp: (opened) => opened.exec('create table if not exists t (x); insert into t values (1)'),
    })
    return () => db.close()
  },
}

const modesIn = (folder: string) =>
  Object.fromEntries(
    globSync('*', { cwd: folder }).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  )

for (const [what, open] of Object.entries(OPEN))
  test(`${what} is only readable by its owner, including the files SQLite puts beside it, new or from an earlier version`, async () => {
    using folder = temporaryFolder()
    const umask = process.umask(0)
    try {
      const path = join(folder.path, 'x.db')
      const close = await open(path)
      const made = modesIn(folder.path)
      assert.ok('x.db-wal' in made, Object.keys(made).join())
      assert.deepEqual([...new Set(Object.values(made))], ['600'])
      for (const name of Object.keys(made)) chmodSync(join(folder.path, name), 0o644)
      const again = await open(path)
      assert.deepEqual([...new Set(Object.values(modesIn(folder.path)))], ['600'])
      await again()
      await close()
    } finally {
      process.umask(umask)
    }
  })

test('does not drop the locks of a database this process has open', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.db')
  using db = new DatabaseSync(path)
  db.exec('create table t (x); begin immediate')
  makeOwnerOnly(path)
  using other = new DatabaseSync(path, { timeout: 0 })
  assert.throws(() => other.exec('begin immediate'), /locked/)
})
