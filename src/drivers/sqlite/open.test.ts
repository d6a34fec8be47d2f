import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openSqlite, openSqliteAsync, type SqliteFile } from './open.ts'

const STEPS = ['create table a (x); insert into a values (1)', 'create table b (x); insert into b select x from a']

function fileOf(steps: readonly string[]): SqliteFile {
  const newer = (version: number) => new Error(`version ${version}`)
  const mark = { applicationId: 0x51, foreign: () => new Error('foreign') }
  return { busyMsMax: 5_000, synchronous: 'off', schema: { steps, newer, mark } }
}

const OPENERS = {
  openSqlite: async (path: string, file: SqliteFile) => openSqlite(path, file),
  openSqliteAsync: (path: string, file: SqliteFile) => openSqliteAsync(path, { ...file, blockingMsMax: 1 }),
}

for (const [name, open] of Object.entries(OPENERS)) {
  const inFolder = async (body: (path: string) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-open-'))
    try {
      await body(join(folder, 'new', 'x.db'))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  test(`${name} applies the steps that an older file lacks, each only once`, () =>
    inFolder(async (path) => {
      for (const steps of [STEPS.slice(0, 1), STEPS, STEPS]) (await open(path, fileOf(steps))).close()
      using db = await open(path, fileOf(STEPS))
      assert.deepEqual({ ...db.prepare('select count(*) as n from b').get() }, { n: 1 })
      assert.equal(db.prepare('pragma journal_mode').get()!['journal_mode'], 'wal')
    }))

  test(`${name} rejects newer and foreign files, and leaves them unchanged`, () =>
    inFolder(async (path) => {
      ;(await open(path, fileOf(STEPS))).close()
      await assert.rejects(open(path, fileOf(STEPS.slice(0, 1))), /version 2/)
      using foreign = new DatabaseSync(`${path}-foreign`)
      foreign.exec('create table customer (x)')
      await assert.rejects(open(`${path}-foreign`, fileOf(STEPS)), /foreign/)
      assert.equal(foreign.prepare('pragma user_version').get()!['user_version'], 0)
    }))

  test(`${name} leaves nothing behind of a migration that fails`, () =>
    inFolder(async (path) => {
      await assert.rejects(open(path, fileOf([...STEPS, 'create nonsense'])), /syntax error/)
      ;(await open(path, fileOf(STEPS))).close()
    }))
}

test('processes that open a new file at the same moment all succeed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-wal-'))
  const children = Array.from({ length: 4 }, () =>
    fork(new URL('./open-child.test-kit.ts', import.meta.url), { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] }),
  )
  try {
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('message', resolve))))
    for (let i = 0; i < 25; i++) {
      const answers = children.map(
        (child) =>
          new Promise((resolve) => {
            child.once('message', resolve)
            child.once('exit', (code) => resolve(`exit ${code}`))
          }),
      )
      for (const child of children) child.send(join(folder, `${i}.db`))
      assert.deepEqual(await Promise.all(answers), ['open', 'open', 'open', 'open'])
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})
