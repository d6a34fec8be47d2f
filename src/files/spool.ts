/**
 * The spool: the received parts of files that are not stored yet, so that after a crash or a cut only the rest is downloaded.
 *
 *   <spool>/<run>.<task>/<owner>.part    the bytes so far
 *   <spool>/<run>.<task>/<owner>.json    what they belong to: URL, validators, length; once complete, also their hash
 *
 * A part has one owner, a process (and a counter within it), which alone writes to it. The next try takes over the part of an
 * owner that is gone, and copies that of an owner that may merely be asleep: when it wakes up, it still writes to its own file.
 */
import { hash, randomUUID } from 'node:crypto'
import { copyFile, link, mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BOOT, isProcessGone, MACHINE_MARK } from '../core/process-mark.ts'

export interface PartNote {
  url: string
  etag?: string
  lastModified?: string
  /** The server's Content-Type and Content-Disposition, and where redirects led. */
  servedType?: string
  disposition?: string
  finalUrl: string
  totalBytes?: number
  /** Hex SHA-256; present only once every byte is. */
  whole?: string
  /** Set by `save`. Parts are not synced to disk while they grow, so those from before a reboot may contain anything. */
  boot?: string
}

export interface SpoolLimits {
  /** Parts not written to for this long are removed. Default 1 day. */
  ageMsMax?: number
  /** Total size of all parts; the oldest are removed first. Default 20 GiB. */
  bytesMax?: number
  /**
   * A browser's downloads older than this are removed: those of pages that were repeated, or killed before their commit, belong
   * to no task. Default 7 days, not one: a task that waits for a store, or in a paused run, still needs its own.
   */
  keptAgeMsMax?: number
}

export interface Part {
  readonly path: string
  readonly bytes: number
  readonly note: PartNote | undefined
  save(note: PartNote): Promise<void>
  /** Also removes what other tries left of the same task. */
  remove(): Promise<void>
  /** No more writes will follow: the next try may continue without a copy. */
  release(): void
}

const DAY_MS = 86_400_000
const KEPT_MS_MAX = 7 * DAY_MS
const TIDY_BYTES_MAX = 20 * 1024 ** 3
/** A part written to within this time is in use, whatever the limits say. */
const IN_USE_MS = 600_000

const released = new Set<string>()
let count = 0

export async function openPart(spool: string, job: { runId: string; taskId: string }): Promise<Part> {
  const folder = join(spool, folderOf(job))
  await mkdir(folder, { recursive: true })
  const owner = `${MACHINE_MARK}-${process.pid}-${Date.now().toString(36)}${count++}`
  const path = join(folder, `${owner}.part`)
  const notePath = join(folder, `${owner}.json`)
  const earlier = await findBest(folder)
  let bytes = 0
  if (earlier !== undefined) {
    const isFree = isGone(earlier.owner)
    const take = isFree ? rename : copyFile
    await take(join(folder, `${earlier.owner}.part`), path)
    await take(join(folder, `${earlier.owner}.json`), notePath)
    released.delete(earlier.owner)
    bytes = (await stat(path)).size
  }
  return {
    path,
    bytes,
    note: earlier?.note,
    async save(note) {
      await writeFile(`${notePath}.new`, JSON.stringify({ ...note, boot: BOOT }))
      await rename(`${notePath}.new`, notePath)
    },
    async remove() {
      released.delete(owner)
      await removeOwner(folder, owner)
      for (const other of await owners(folder)) if (isGone(other)) await removeOwner(folder, other)
      await rmdir(folder).catch(() => {}) // it contains a part of another owner
    },
    release() {
      released.add(owner)
    },
  }
}

function folderOf({ runId, taskId }: { runId: string; taskId: string }): string {
  const isPlain = /^[\w-]{1,100}$/.test(runId) && /^[0-9a-f]{64}$/.test(taskId)
  return isPlain ? `${runId}.${taskId}` : hash('sha256', `${runId}\n${taskId}`, 'hex')
}

async function findBest(folder: string): Promise<{ owner: string; note: PartNote } | undefined> {
  let best: { owner: string; note: PartNote; bytes: number } | undefined
  for (const owner of await owners(folder)) {
    try {
      const note = JSON.parse(await readFile(join(folder, `${owner}.json`), 'utf8')) as PartNote
      if (note.boot !== BOOT) throw new Error('from before a reboot, or of another machine')
      const { size } = await stat(join(folder, `${owner}.part`))
      const isBetter =
        note.whole === undefined
          ? best?.note.whole === undefined && size > (best?.bytes ?? 0)
          : best?.note.whole === undefined
      if (isBetter) best = { owner, note, bytes: size }
    } catch {
      if (isGone(owner)) await removeOwner(folder, owner) // it is unknown what it is a part of
    }
  }
  return best
}

async function owners(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  return [...new Set(names.map((name) => name.split('.')[0]!))]
}

async function removeOwner(folder: string, owner: string): Promise<void> {
  for (const ending of ['part', 'json', 'json.new']) await rm(join(folder, `${owner}.${ending}`), { force: true })
}

/**
 * Whether the owner belongs to this process and was released, or to a local process that no longer exists. A reused pid only
 * costs a copy.
 */
function isGone(owner: string): boolean {
  const [machine = '', pid] = owner.split('-')
  return released.has(owner) || isProcessGone({ machine, pid: Number(pid) })
}

/** Parts and the outputs of steps. */
const OURS = /(?:^|\.)[0-9a-f]{64}$|^step-/

/** Where a browser's downloads are kept until their tasks are done. */
export const UPLOADS = 'uploads'
const ID = 'id'

/**
 * Identifies this spool among those of all machines; created once. A host name would not do: containers get a new one each time.
 */
export async function spoolId(spool: string): Promise<string> {
  const path = join(spool, ID)
  const known = await readFile(path, 'utf8').catch(() => '')
  if (known !== '') return known
  await mkdir(spool, { recursive: true })
  const draft = join(spool, `${ID}-${process.pid}-${count++}`)
  await writeFile(draft, randomUUID())
  // Of several concurrent processes, one sets the id.
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft, { force: true })
  return await readFile(path, 'utf8')
}

/** Removes what is too old, then the oldest beyond the size limit. Returns how many bytes it freed. */
export async function tidySpool(
  spool: string,
  { ageMsMax = DAY_MS, bytesMax = TIDY_BYTES_MAX, keptAgeMsMax = KEPT_MS_MAX }: SpoolLimits = {},
  nowMs: number = Date.now(),
): Promise<number> {
  const found: { folder: string; bytes: number; atMs: number }[] = []
  for (const name of await readdir(spool).catch(() => [])) {
    if (!OURS.test(name)) continue
    const folder = join(spool, name)
    let bytes = 0
    let atMs = 0
    for (const file of await readdir(folder).catch(() => [])) {
      const { size, mtimeMs } = await stat(join(folder, file)).catch(() => ({ size: 0, mtimeMs: 0 }))
      bytes += size
      atMs = Math.max(atMs, mtimeMs)
    }
    if (atMs > 0) found.push({ folder, bytes, atMs })
  }
  found.sort((a, b) => a.atMs - b.atMs)
  let left = found.reduce((sum, { bytes }) => sum + bytes, 0)
  let freed = await removeOld(join(spool, UPLOADS), nowMs - keptAgeMsMax)
  for (const { folder, bytes, atMs } of found) {
    if (nowMs - atMs < IN_USE_MS || (nowMs - atMs < ageMsMax && left <= bytesMax)) continue
    await rm(folder, { recursive: true, force: true })
    left -= bytes
    freed += bytes
  }
  return freed
}

async function removeOld(folder: string, beforeMs: number): Promise<number> {
  let freed = 0
  for (const name of await readdir(folder).catch(() => [])) {
    const found = await stat(join(folder, name)).catch(() => undefined)
    if (found?.isFile() !== true || found.mtimeMs >= beforeMs) continue
    await rm(join(folder, name), { force: true })
    freed += found.size
  }
  return freed
}
