/** What every file store must do. An adapter's test is four lines; `broken-stores.test.ts` shows that the suite can fail. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { FileStore } from './contract.ts'

export interface StoreRig {
  open(): Promise<FileStore>
  /** The bytes at `where`, read without the store; undefined if there are none. */
  read(where: string): Promise<Buffer | undefined>
  /** Every name under the store's place, whatever created it. */
  list(): Promise<string[]>
}

export interface StoreCheck {
  title: string
  run(rig: StoreRig): Promise<void>
}

const never = new AbortController().signal

/** Larger than one part of a multipart upload, so that it is uploaded in several. */
const LARGE_BYTES = 12 * 1024 ** 2

async function withFile<T>(content: Uint8Array | string, use: (path: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-store-'))
  try {
    const path = join(folder, 'file')
    writeFileSync(path, content)
    return await use(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function put(store: FileStore, key: string, content: Uint8Array | string, more: object = {}): Promise<string> {
  const bytes = Buffer.byteLength(content)
  return withFile(content, (path) => store.put({ path, key, contentType: 'text/plain', bytes, ...more }, never))
}

export const STORE_CHECKS: readonly StoreCheck[] = [
  {
    title: 'keeps every byte of a small file',
    async run(rig) {
      await using store = await rig.open()
      const where = await put(store, 'shop/run-1/_/0a-note.txt', 'hello')
      assert.ok(where.startsWith(store.place), `${where} is below ${store.place}`)
      assert.equal((await rig.read(where))?.toString(), 'hello')
      assert.equal(await store.has(where, 5), true)
    },
  },
  {
    title: 'keeps an empty file',
    async run(rig) {
      await using store = await rig.open()
      const where = await put(store, 'shop/run-1/_/0b-empty.txt', '')
      assert.equal((await rig.read(where))?.length, 0)
      assert.equal(await store.has(where, 0), true)
    },
  },
  {
    title: 'keeps every byte of a large file',
    async run(rig) {
      await using store = await rig.open()
      const content = Buffer.alloc(LARGE_BYTES, 'abcdefghijklmnopqrstuvwxyz-')
      const where = await put(store, 'shop/run-1/_/0c-large.bin', content)
      assert.ok((await rig.read(where))?.equals(content), 'the same bytes')
      assert.equal(await store.has(where, LARGE_BYTES), true)
    },
  },
  {
    title: 'takes names that are not ASCII',
    async run(rig) {
      await using store = await rig.open()
      const where = await put(store, 'shop/run-1/_/0d-naïve-日本語.txt', 'ü')
      assert.match(where, /^[\x20-\x7e]+$/, 'a URL')
      assert.equal((await rig.read(where))?.toString(), 'ü')
      assert.equal(await store.has(where, 2), true)
    },
  },
  {
    title: 'writes a repeated key over the first',
    async run(rig) {
      await using store = await rig.open()
      const first = await put(store, 'shop/run-1/_/0e-twice.txt', 'one')
      const second = await put(store, 'shop/run-1/_/0e-twice.txt', 'other')
      assert.equal(first, second)
      assert.equal((await rig.read(second))?.toString(), 'other')
    },
  },
  {
    title: 'says no to what is not there, or has another length',
    async run(rig) {
      await using store = await rig.open()
      const where = await put(store, 'shop/run-1/_/0f-here.txt', 'here')
      assert.equal(await store.has(where, 5), false)
      assert.equal(await store.has(where.replace('here', 'gone'), 4), false)
      assert.equal(await store.has('file:///etc/passwd', 1), false)
      assert.equal(await store.has('s3://another-bucket/x', 1), false)
    },
  },
  {
    title: 'finds again what it stored before it was opened anew',
    async run(rig) {
      let where: string
      {
        await using store = await rig.open()
        where = await put(store, 'shop/run-1/_/10-kept.txt', 'kept')
      }
      await using again = await rig.open()
      assert.equal(await again.has(where, 4), true)
    },
  },
  {
    title: 'leaves a kept file where it was',
    async run(rig) {
      await using store = await rig.open()
      await withFile('kept', async (path) => {
        const file = { path, key: 'shop/run-1/_/11-kept.txt', contentType: 'text/plain', bytes: 4, isKept: true }
        const where = await store.put(file, never)
        assert.ok(existsSync(path), 'it is still there')
        writeFileSync(path, 'changed')
        assert.equal((await rig.read(where))?.toString(), 'kept', 'and the stored one is another')
      })
    },
  },
  {
    title: 'shows nothing under the name of a file that was given up',
    async run(rig) {
      await using store = await rig.open()
      const given = new AbortController()
      const content = Buffer.alloc(LARGE_BYTES, 'x')
      await withFile(content, async (path) => {
        const file = { path, key: 'shop/run-1/_/12-cut.bin', contentType: 'text/plain', bytes: content.length }
        const putting = store.put(file, given.signal)
        given.abort(new Error('given up'))
        await assert.rejects(putting, /given up/)
      })
      assert.deepEqual(
        (await rig.list()).filter((name) => name.includes('12-cut')),
        [],
      )
    },
  },
  {
    title: 'does not follow a key out of its place',
    async run(rig) {
      await using store = await rig.open()
      const before = await rig.list()
      for (const key of ['../outside.txt', 'a/../../outside.txt', '/outside.txt', 'a//b.txt']) {
        const where = await put(store, key, 'x').catch(() => undefined)
        assert.ok(where === undefined, `${key} was stored at ${where}`)
      }
      assert.deepEqual(await rig.list(), before)
    },
  },
]

export function testFileStore(name: string, rig: () => Promise<StoreRig>): void {
  describe(name, () => {
    for (const { title, run } of STORE_CHECKS) it(title, async () => run(await rig()))
  })
}
