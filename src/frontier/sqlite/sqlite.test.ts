/** The `sqlite:` engine keeps the contract, and says in our words what is wrong with a file. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { ScrapeError } from '../../core/errors.ts'
import { frontierConformance } from '../conformance.ts'
import { Database } from './database.ts'
import { frontierOn, openSqliteFrontier } from './engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-frontier-'))
after(() => rmSync(folder, { recursive: true }))

frontierConformance('sqlite:', ({ place, ...options }) => openSqliteFrontier(join(folder, `${place}.db`), options))

const isCode = (code: string) => (error: unknown) => error instanceof ScrapeError && error.code === code

test('makes the folder of its file', async () => {
  await using frontier = await openSqliteFrontier(join(folder, 'deep/er/frontier.db'))
  assert.equal((await frontier.add([{ url: 'https://a.example/', route: 'page', depth: 0 }])).added, 1)
})

test('reports a path that cannot be written as E_OUTPUT', async () => {
  await assert.rejects(openSqliteFrontier(folder), isCode('E_OUTPUT'))
  const text = join(folder, 'text.db')
  writeFileSync(text, 'this is no database, it is a text of some length'.repeat(100))
  await assert.rejects(openSqliteFrontier(text), isCode('E_OUTPUT'))
  await assert.rejects(openSqliteFrontier(join(text, 'frontier.db')), isCode('E_OUTPUT'))
})

test('reports a full disk as E_OUTPUT, loses nothing, and goes on when there is room', async () => {
  const db = await Database.open(join(folder, 'full.db'))
  await using frontier = frontierOn(db)
  const page = (n: number) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0, data: 'x'.repeat(5000) })
  await frontier.add([page(1)])
  // max_page_count makes SQLite answer exactly as a full disk does (SQLITE_FULL), without filling one.
  db.prepare('pragma max_page_count = 100').get()
  const many = Array.from({ length: 1000 }, (_, i) => page(i))
  await assert.rejects(frontier.add(many), isCode('E_OUTPUT'))
  assert.equal((await frontier.stats()).seen, 1)
  db.prepare('pragma max_page_count = 1000000').get()
  assert.deepEqual(await frontier.add(many), { added: 999, seen: 1 })
})

test('refuses the database of another program', async () => {
  const path = join(folder, 'other.db')
  const other = new DatabaseSync(path)
  other.exec('create table customer (name text)')
  other.close()
  await assert.rejects(openSqliteFrontier(path), isCode('E_OPTION'))
})

test('refuses a file of a newer version', async () => {
  const path = join(folder, 'newer.db')
  await (await openSqliteFrontier(path))[Symbol.asyncDispose]()
  const file = new DatabaseSync(path)
  file.exec('pragma user_version = 999')
  file.close()
  await assert.rejects(openSqliteFrontier(path), isCode('E_OPTION'))
})
