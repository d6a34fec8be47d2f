import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ScrapeError } from '../core/errors.ts'
import { openDiskStore } from './disk-store.ts'
import { openFileStore } from './open-store.ts'
import { testFileStore } from './store-conformance.test-kit.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-store-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const never = new AbortController().signal

testFileStore('a folder', async () => ({
  open: () => openFileStore(join(folder, 'store')),
  read: async (where) => readFileSync(fileURLToPath(where)),
  list: async () => readdirSync(join(folder, 'store'), { recursive: true }).map(String).sort(),
}))

test('does not follow a symbolic link out of the folder', async () => {
  const root = join(folder, 'linked')
  const outside = join(folder, 'outside')
  mkdirSync(root)
  mkdirSync(outside)
  symlinkSync(outside, join(root, 'shop'))
  await using store = await openDiskStore(root)
  const path = join(folder, 'file')
  writeFileSync(path, 'x')
  const file = { path, key: 'shop/x.txt', contentType: 'text/plain', bytes: 1 }
  await assert.rejects(store.put(file, never), (error: ScrapeError) => error.code === 'E_OUTPUT')
  assert.deepEqual(readdirSync(outside), [])
})

test('copies a file from another mount of the same disk', async () => {
  const path = join(folder, 'elsewhere')
  writeFileSync(path, 'hello')
  const move = async () => {
    throw Object.assign(new Error('cross-device link not permitted'), { code: 'EXDEV' })
  }
  const root = join(folder, 'mounted')
  await using store = await openDiskStore(root, { move })
  const where = await store.put({ path, key: 'shop/x.txt', contentType: 'text/plain', bytes: 5 }, never)
  assert.equal(readFileSync(fileURLToPath(where), 'utf8'), 'hello')
  assert.deepEqual(readdirSync(join(root, '.incoming')), [])
  assert.equal(existsSync(path), false)
})

test('removes half-copied files of a crash a day later', async () => {
  const root = join(folder, 'crashed')
  mkdirSync(join(root, '.incoming'), { recursive: true })
  for (const name of ['old', 'new']) writeFileSync(join(root, '.incoming', name), 'x')
  utimesSync(join(root, '.incoming', 'old'), 1, 1)
  await using _store = await openDiskStore(root)
  assert.deepEqual(readdirSync(join(root, '.incoming')), ['new'])
})

test('ends the run if the folder is not writable, and names it', async () => {
  writeFileSync(join(folder, 'a-file'), 'x')
  await assert.rejects(
    openFileStore(join(folder, 'a-file', 'store')),
    (error: ScrapeError) => error.code === 'E_OUTPUT',
  )
  await assert.rejects(openFileStore('ftp://host/x'), (error: ScrapeError) => error.code === 'E_OPTION')
})
