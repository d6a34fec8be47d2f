/** Stores with one defect each, which the conformance suite must reject. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { FileStore } from './contract.ts'
import { openDiskStore } from './disk-store.ts'
import { STORE_CHECKS } from './store-conformance.test-kit.ts'

const DEFECTS: Record<string, (store: FileStore, root: string) => Partial<FileStore>> = {
  'loses the last byte': (store) => ({
    put: async (file, signal) => {
      const where = await store.put(file, signal)
      const path = fileURLToPath(where)
      writeFileSync(path, readFileSync(path).subarray(0, -1))
      return where
    },
  }),
  'does not overwrite': (store) => {
    const seen = new Map<string, string>()
    return {
      put: async (file, signal) => {
        const where = seen.get(file.key) ?? (await store.put(file, signal))
        seen.set(file.key, where)
        return where
      },
    }
  },
  'believes everything is there': () => ({ has: async () => true }),
  'does not look at the length': (store) => ({
    has: async (where, bytes) => (await store.has(where, bytes)) || (where.endsWith('0f-here.txt') && bytes === 5),
  }),
  'moves kept files': (store) => ({ put: (file, signal) => store.put({ ...file, isKept: false }, signal) }),
  'writes under the final name': (store, root) => ({
    put: async (file, signal) => {
      cpSync(file.path, join(root, file.key.replaceAll('/', '_')))
      signal.throwIfAborted()
      await new Promise(setImmediate)
      signal.throwIfAborted()
      return await store.put(file, signal)
    },
  }),
  'takes any key': (_store, root) => ({
    put: async ({ path, key }) => {
      const target = join(root, key.replaceAll('/', '_'))
      renameSync(path, target)
      return pathToFileURL(target).href
    },
  }),
}

for (const [defect, breakIt] of Object.entries(DEFECTS)) {
  test(`rejects a store that ${defect}`, async () => {
    const root = mkdtempSync(join(tmpdir(), 'sluice-broken-store-'))
    try {
      const rig = {
        async open(): Promise<FileStore> {
          const store = await openDiskStore(root)
          const broken = breakIt(store, root)
          return { ...store, ...broken, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
        },
        read: async (where: string) => readFileSync(fileURLToPath(where)),
        list: async () => readdirSync(root, { recursive: true }).map(String).sort(),
      }
      const answers = await Promise.all(STORE_CHECKS.map(({ run }) => run(rig).then(() => 'fine', () => 'refused'))) // biome-ignore format: one line reads better
      assert.ok(answers.includes('refused'), 'the suite found nothing wrong')
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })
}
