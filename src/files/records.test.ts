/** Records in SQLite; the same checks run on PostgreSQL if available. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { postgresForTests } from '../../test/services/postgres.ts'
import { temporaryFolder } from '../../test/sluice.ts'
import type { ScrapeError } from '../core/errors.ts'
import type { FileRecord, FileRecords } from './contract.ts'
import { openPostgresRecords } from './postgres-records.ts'
import { openSqliteRecords } from './records.ts'

function record(taskId: string, more: Partial<FileRecord> = {}): FileRecord {
  return {
    runId: 'run-1',
    taskId,
    scraper: 'shop',
    user: '',
    url: `http://shop.example/${taskId}`,
    name: 'a.pdf',
    bytes: 5,
    sha256: 'ab'.repeat(32),
    contentType: 'application/pdf',
    where: `s3://bucket/x/${taskId}`,
    isSame: false,
    storedAtMs: 1_800_000_000_000,
    meta: null,
    extra: {},
    ...more,
  }
}

function testRecords(name: string, open: () => Promise<FileRecords & { again?(): Promise<FileRecords> }>): void {
  describe(`records in ${name}`, () => {
    it('are read as they were written', async () => {
      await using records = await open()
      const full = record('a', {
        user: 'änna',
        meta: { page: [1, 'x'] },
        extra: { 'pdf-text': { pages: 2 } },
        bytes: 5e12,
      })
      await records.put([full])
      assert.deepEqual(await records.list('run-1'), [full])
      assert.deepEqual(await records.list('run-2'), [])
    })

    it('are unique per run and task, however often they are written', async () => {
      await using records = await open()
      await records.put([record('a'), record('b'), record('a', { bytes: 6 })])
      await records.put([record('a', { bytes: 7 }), record('a', { runId: 'run-2' })])
      assert.deepEqual((await records.list('run-1')).map(({ taskId, bytes }) => [taskId, bytes]), [['a', 7], ['b', 5]]) // biome-ignore format: one line reads better
    })

    it('know where bytes are stored, below the requested place', async () => {
      await using records = await open()
      const sha256 = 'cd'.repeat(32)
      await records.put([
        record('same', { sha256, where: 's3://bucket/x/first', isSame: true, storedAtMs: 1 }),
        record('first', { sha256, where: 's3://bucket/x/first', storedAtMs: 2 }),
        record('other', { sha256: 'ef'.repeat(32), where: 'file:///a%5Fb/c' }),
      ])
      assert.equal(await records.findStored(sha256, 's3://bucket/x/'), 's3://bucket/x/first')
      assert.equal(await records.findStored(sha256, 's3://bucket/y/'), undefined)
      assert.equal(await records.findStored(sha256, 's3://bucket/%/'), undefined, 'no patterns')
      assert.equal(await records.findStored('00', 's3://bucket/x/'), undefined)
    })

    it('are listed in pages', async () => {
      await using records = await open()
      const ids = Array.from({ length: 130 }, (_, i) => String(i).padStart(4, '0'))
      await records.put(ids.map((id) => record(id)))
      const first = await records.list('run-1', { limit: 100 })
      const second = await records.list('run-1', { limit: 100, after: first.at(-1)!.taskId })
      assert.deepEqual(
        [...first, ...second].map(({ taskId }) => taskId),
        ids,
      )
    })

    it('accept any text from untrusted sources', async () => {
      await using records = await open()
      await records.put([
        record('a', { name: 'nul\0, \ud800 and ’ " \\', meta: { 'k\0': '\0' }, url: `http://h/'; drop table files` }),
      ])
      const [found] = await records.list('run-1')
      assert.match(found!.name, /^nul, . and ’ " \\$/)
      assert.equal(found!.url, `http://h/'; drop table files`)
    })
  })
}

testRecords('SQLite', async () => {
  const folder = temporaryFolder()
  const records = openSqliteRecords(join(folder.path, 'deep', 'files.db'))
  return {
    ...records,
    async [Symbol.asyncDispose]() {
      await records[Symbol.asyncDispose]()
      await records[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
})

testRecords('PostgreSQL', async () => {
  const database = await postgresForTests()
  const records = await openPostgresRecords(database.url)
  return {
    ...records,
    async [Symbol.asyncDispose]() {
      await records[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
})

describe('records in SQLite', () => {
  it('are visible to two connections at once', async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'files.db')
    await using one = openSqliteRecords(path)
    await using two = openSqliteRecords(path)
    await one.put([record('a')])
    assert.equal((await two.list('run-1')).length, 1)
  })

  it('report why they cannot be opened', () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'a-file'), '')
    const isSaid = (error: ScrapeError) => error.code === 'E_OUTPUT'
    assert.throws(() => openSqliteRecords(join(folder.path, 'a-file', 'files.db')), isSaid)
  })
})
