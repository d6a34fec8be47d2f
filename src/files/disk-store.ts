/**
 * Files in a folder. A file is written and synced elsewhere on the same disk, then renamed: under its final name there is either
 * all of it or nothing, even after a power failure.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ScrapeError } from '../core/errors.ts'
import type { FileStore, NewFile } from './contract.ts'
import { mustBePlain } from './naming.ts'
import { diskError } from './store-error.ts'

/** Copies in progress from another disk. Leftovers of a crash are removed after a day. */
const INCOMING = '.incoming'
const INCOMING_MS_MAX = 86_400_000

/** `move` is for tests. */
export async function openDiskStore(folder: string, { move = rename } = {}): Promise<FileStore> {
  const root = resolve(folder)
  const incoming = join(root, INCOMING)
  const what = `the file store ${root}`
  try {
    await mkdir(incoming, { recursive: true })
    await removeOld(incoming)
  } catch (error) {
    throw diskError(error, what)
  }
  const trueRoot = await realpath(root)
  const place = pathToFileURL(root + sep).href

  async function storeFile({ path, key, isKept = false }: NewFile, signal: AbortSignal): Promise<string> {
    mustBePlain(key)
    const target = join(root, ...key.split('/'))
    const parent = dirname(target)
    await mkdir(parent, { recursive: true })
    // A symbolic link must not lead out of the folder.
    if (!`${await realpath(parent)}${sep}`.startsWith(trueRoot + sep))
      throw new ScrapeError('E_OUTPUT', `${parent} leads out of the file store ${root}`)
    signal.throwIfAborted()
    if (isKept || !(await isMoved(path, target))) await copyIn(path, target, signal)
    await sync(parent)
    if (!isKept) await rm(path, { force: true })
    return pathToFileURL(target).href
  }

  /** False if it is on another disk. Two mounts of one disk have the same device number, but rename treats them as two. */
  async function isMoved(path: string, target: string): Promise<boolean> {
    if (!(await isSameDisk(path, root))) return false
    await sync(path)
    try {
      await move(path, target)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
      return false
    }
  }

  async function copyIn(path: string, target: string, signal: AbortSignal): Promise<void> {
    const copy = join(incoming, `${process.pid}-${randomBytes(8).toString('hex')}`)
    try {
      await copyFile(path, copy, constants.COPYFILE_FICLONE)
      signal.throwIfAborted()
      await sync(copy)
      await rename(copy, target)
    } catch (error) {
      await rm(copy, { force: true })
      throw error
    }
  }

  return {
    place,
    async put(file, signal) {
      try {
        return await storeFile(file, signal)
      } catch (error) {
        throw error === signal.reason ? error : diskError(error, what)
      }
    },
    async has(where, bytes) {
      if (!where.startsWith(place)) return false
      const found = await stat(fileURLToPath(where)).catch(() => undefined)
      return found?.isFile() === true && found.size === bytes
    },
    async [Symbol.asyncDispose]() {},
  }
}

async function isSameDisk(path: string, root: string): Promise<boolean> {
  return (await stat(path)).dev === (await stat(root)).dev
}

async function sync(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && Date.now() - found.mtimeMs > INCOMING_MS_MAX) await rm(path, { force: true })
  }
}
