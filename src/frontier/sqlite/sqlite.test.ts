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

test('creates the folder of its file', async () => {
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

test('reports a full disk as E_OUTPUT, loses nothing, and continues when there is space', async () => {
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

test('refuses a file from a newer version', async () => {
  const path = join(folder, 'newer.db')
  await (await openSqliteFrontier(path))[Symbol.asyncDispose]()
  const file = new DatabaseSync(path)
  file.exec('pragma user_version = 999')
  file.close()
  await assert.rejects(openSqliteFrontier(path), isCode('E_OPTION'))
})

/** A frontier that commits items with the given keys, each batch as one page. */
async function committer(path: string) {
  const frontier = await openSqliteFrontier(path)
  let page = 0
  return {
    frontier,
    async commit(...keys: string[]) {
      const url = `https://a.example/${process.pid}/${keys[0]}/${page++}`
      await frontier.add([{ url, route: 'page', depth: 0 }])
      const [lease] = await frontier.claim({ max: 1, workerId: `w-${keys[0]}`, leaseMs: 60_000 })
      await frontier.commit([{ kind: 'done', lease: lease!, items: keys.map((key) => ({ key, json: `"${key}"` })) }])
    },
  }
}

test('gives the reader every item once and in order, whoever committed it and however far behind the reader is', async () => {
  const path = join(folder, 'fresh.db')
  const one = await committer(path)
  const two = await committer(path)
  await using _one = one.frontier
  await using _two = two.frontier
  const log = one.frontier.items
  const written: string[] = []
  const read: string[] = []
  let seq = 0
  const readSome = async (max: number) => {
    const items = await log.read({ afterSeq: seq, max })
    for (const item of items) {
      assert.equal(item.seq, ++seq)
      assert.equal(item.json, `"${item.key}"`)
      read.push(item.key)
    }
    return items.length
  }
  for (let i = 0; i < 60; i++) {
    const keys = Array.from({ length: 1 + ((i * 7) % 90) }, (_, n) => `${i}-${n}`)
    await (i % 3 === 2 ? two : one).commit(...keys)
    written.push(...keys)
    if (i < 40 && i % 2 === 0) await readSome(1 + ((i * 13) % 100)) // then falls behind by more than is kept in memory
    if (i === 20) await log.confirm(seq, {})
  }
  for (let count = 1; count > 0; ) count = await readSome(500)
  assert.deepEqual(read, written)
})

test('gives an item again to a reader that asks again, but none that is confirmed', async () => {
  const { frontier, commit } = await committer(join(folder, 'again.db'))
  await using _ = frontier
  const keysAfter = async (afterSeq: number) => (await frontier.items.read({ afterSeq, max: 9 })).map(({ key }) => key)
  assert.deepEqual(await keysAfter(0), [])
  await commit('a', 'b')
  await commit('c')
  assert.deepEqual(await keysAfter(0), ['a', 'b', 'c'])
  assert.deepEqual(await keysAfter(0), ['a', 'b', 'c'])
  await commit('d')
  await frontier.items.confirm(4, {})
  assert.deepEqual(await keysAfter(3), [])
})

test('gives the reader nothing from a commit that was rolled back', async () => {
  const db = await Database.open(join(folder, 'rolled-back.db'))
  await using frontier = frontierOn(db)
  assert.deepEqual(await frontier.items.read({ afterSeq: 0, max: 9 }), [])
  await frontier.add([{ url: 'https://a.example/', route: 'page', depth: 0 }])
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 60_000 })
  const items = Array.from({ length: 200 }, (_, i) => ({ key: `${i}`, json: JSON.stringify('x'.repeat(5000)) }))
  db.prepare('pragma max_page_count = 50').get()
  await assert.rejects(frontier.commit([{ kind: 'done', lease: lease!, items }]), isCode('E_OUTPUT'))
  assert.deepEqual(await frontier.items.read({ afterSeq: 0, max: 9 }), [])
  db.prepare('pragma max_page_count = 1000000').get()
  await frontier.commit([{ kind: 'done', lease: lease!, items: items.slice(0, 1) }])
  assert.deepEqual(
    (await frontier.items.read({ afterSeq: 0, max: 9 })).map(({ seq, key }) => ({ seq, key })),
    [{ seq: 1, key: '0' }],
  )
})
