/** The folder of a run: its location, its lock, its contents. Never deleted automatically. */
import {
  type Dirent,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, isAbsolute, join, resolve, sep } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import type { Page } from '../core/page.ts'
import { redactAll, verbatim } from '../core/redact.ts'
import { newRunId, type RunRecord } from '../core/run.ts'
import type { Task } from '../core/task.ts'

const SNAPSHOT_BYTES_MAX = 1024 ** 2

export class RunFolder implements Disposable {
  readonly path: string
  readonly scraper: string
  readonly runId: string
  #lock: DatabaseSync | undefined

  constructor(path: string) {
    this.path = resolve(path)
    this.runId = basename(this.path)
    this.scraper = basename(resolve(this.path, '..'))
  }

  /** Creates a new folder. */
  static create(out: string, scraper: string, nowMs: number): RunFolder {
    const base = join(out, scraper)
    try {
      makeFolders(base)
      for (;;) {
        const folder = new RunFolder(join(base, newRunId(nowMs)))
        if (makeFolder(folder.path)) return folder // false: two runs in one millisecond drew the same letters
      }
    } catch (cause) {
      throw new ScrapeError('E_OUTPUT', `no run folder can be made in ${base}: ${(cause as Error).message}`, {
        cause,
        fix: 'Make it writable, or choose another with --out.',
      })
    }
  }

  file(name: string): string {
    return join(this.path, name)
  }

  /** Allows one process at a time. The lock is an open SQLite transaction, which the system releases however the process ends. */
  lock(): void {
    const lock = new DatabaseSync(this.file('lock.db'))
    try {
      lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
      this.#lock = lock
    } catch (cause) {
      lock.close()
      if (!String((cause as Error).message).includes('locked'))
        throw new ScrapeError('E_OUTPUT', `${this.path} is not writable`, { cause })
      throw new ScrapeError('E_RUN_LOCKED', `run ${this.runId} is being worked on by another process`, {
        notes: [this.path],
      })
    }
  }

  /** Throws `E_RUN_RECORD`. */
  readRecord(): RunRecord | undefined {
    const path = this.file('run.json')
    if (!existsSync(path)) return undefined
    const record = recordIn(path)
    return { ...record, notFetched: record.notFetched ?? {} } // missing in runs of earlier versions
  }

  /** Also undefined for a broken record: code that compares with earlier runs must not fail because of one. */
  tryReadRecord(): RunRecord | undefined {
    try {
      return this.readRecord()
    } catch {
      return undefined
    }
  }

  /** Masks secrets, and replaces the file atomically: a reader never sees half of it. */
  writeRecord(record: RunRecord): void {
    const path = this.file('run.json')
    try {
      // Two field names would be mistaken for a pair, and the one after `token` for its value.
      const fields = record.fields === undefined ? {} : { fields: verbatim([...record.fields]) }
      writeFileSync(`${path}.tmp`, `${JSON.stringify(redactAll({ ...record, ...fields }), null, 2)}\n`)
      renameSync(`${path}.tmp`, path)
    } catch (cause) {
      throw new ScrapeError('E_OUTPUT', `${path} cannot be written: ${(cause as Error).message}`, { cause })
    }
  }

  /** Saves the response of a dead letter. A full disk must not hide the error it belongs to. */
  keepSnapshot = (task: Task, page: Page | undefined, screenshot = page?.screenshot): string | undefined => {
    const kept = snapshotsOf(task, page, screenshot)
    try {
      if (kept.length > 0) mkdirSync(this.file('snapshots'), { recursive: true })
      for (const { name, bytes } of kept) writeFileSync(this.file(name), bytes)
      return kept[0]?.name
    } catch {
      return undefined
    }
  }

  /** `files/<task>-<safe name>`: names from the web never choose their own folder. */
  save = async (task: Task, name: string, bytes: Uint8Array | string): Promise<string> => {
    const safe =
      basename(name)
        .replace(/[^\w.-]+/g, '_')
        .replace(/^\.+/, '_')
        .slice(-100) || 'file'
    const path = join('files', `${task.id.slice(0, 12)}-${safe}`)
    mkdirSync(this.file('files'), { recursive: true })
    await writeFile(this.file(path), bytes)
    return path
  }

  /** Makes this the scraper's `latest` run. */
  pointLatest(): void {
    const link = join(this.path, '..', 'latest')
    const temporary = `${link}.${this.runId}`
    symlinkSync(this.runId, temporary)
    renameSync(temporary, link)
  }

  /** For a run that could not start. */
  discard(): void {
    rmSync(this.path, { recursive: true, force: true })
  }

  /** The lock file stays: deleting it could take it away from its next holder. */
  [Symbol.dispose](): void {
    this.#lock?.close()
    this.#lock = undefined
  }
}

/** Checks only what all readers of a run rely on. */
function recordIn(path: string): RunRecord {
  const unreadable = (why: string, cause?: unknown) =>
    new ScrapeError('E_RUN_RECORD', `${path} cannot be read: ${why}`, { cause })
  let record: Partial<RunRecord> | null
  try {
    record = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw unreadable((cause as Error).message, cause)
  }
  const isWhole =
    typeof record?.id === 'string' &&
    typeof record.state === 'string' &&
    typeof record.frontier === 'string' &&
    [record.pages, record.items, record.files].every((counts) => typeof counts === 'object' && counts !== null)
  if (!isWhole) throw unreadable('it is not the record of a run')
  return record as RunRecord
}

/** The screenshot taken together with a snapshot, if there is one. */
export const pictureOf = (snapshot: string) => snapshot.replace(/\.\w+$/, '.png')

/** The document first, then its screenshot. */
export function snapshotsOf(
  { id }: Task,
  page: Page | undefined,
  screenshot: Buffer | undefined,
  bytesMax: number = SNAPSHOT_BYTES_MAX,
): { name: string; bytes: Uint8Array }[] {
  const name = (ending: string) => `snapshots/${id.slice(0, 16)}.${ending}`
  const ending = page?.contentType.includes('json') ? 'json' : 'html'
  const body = page?.body.subarray(0, bytesMax)
  return [
    ...(body === undefined ? [] : [{ name: name(ending), bytes: body }]),
    ...(screenshot === undefined ? [] : [{ name: name('png'), bytes: screenshot }]),
  ]
}

/** One by one: Node's own `recursive` never returns if a parent exists but refuses children with ENOENT, as /proc does. */
function makeFolders(path: string): void {
  if (existsSync(path)) return
  makeFolders(resolve(path, '..'))
  makeFolder(path)
}

/** False if it already exists. */
function makeFolder(path: string): boolean {
  try {
    mkdirSync(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Newest first. */
export function listRuns(out: string, scraper?: string): RunFolder[] {
  const scrapers = scraper === undefined ? folders(out) : [scraper]
  return scrapers
    .flatMap((name) => folders(join(out, name)).map((id) => new RunFolder(join(out, name, id))))
    .filter((folder) => existsSync(folder.file('run.json')))
    .sort((a, b) => (a.runId < b.runId ? 1 : -1))
}

/** A run by id, by `scraper/id`, by scraper (its latest), by path, or the latest of all by default. */
export function findRun(out: string, word?: string): RunFolder {
  const runs = listRuns(out)
  const found =
    word === undefined || word === 'latest'
      ? runs[0]
      : isAbsolute(word) || word.includes(sep)
        ? [new RunFolder(word), new RunFolder(join(out, word))].find((folder) => existsSync(folder.file('run.json')))
        : runs.find((folder) => folder.runId === word || folder.scraper === word)
  if (found !== undefined) return found
  const known = runs.slice(0, 5).map((folder) => `${folder.scraper}/${folder.runId}`)
  throw new ScrapeError(
    'E_RUN_NOT_FOUND',
    word === undefined ? `no run under ${out}` : `no run "${word}" under ${out}`,
    {
      notes: known.length > 0 ? [`latest: ${known.join(' · ')}`] : [],
    },
  )
}

function folders(path: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(path, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}
