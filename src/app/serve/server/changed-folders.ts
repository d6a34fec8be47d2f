/**
 * Run folders that changed since they were read. With ten thousand old ones, only their parent folders are checked, not each of
 * them.
 */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import type { RunRecord } from '../../../core/run.ts'
import { listRuns, type RunFolder } from '../../../runs/run-folder.ts'

/** Resuming a run changes only its own folder, so all folders are checked this often. */
const FULL_LOOK_MS = 15_000
/** A new folder exists before its record does. */
const PARENT_RESTS_MS = 10_000
const FOLDERS_AT_ONCE = 50

interface FolderOfNews {
  folder: RunFolder
  settle: () => void
}

export class ChangedFolders {
  readonly #out: string
  /** Folder → modification time of its record when it was read. */
  readonly #settled = new Map<string, number>()
  readonly #open = new Map<string, RunFolder>()
  readonly #parents = new Map<string, number>()
  #fullLookAtMs = Number.NEGATIVE_INFINITY

  constructor(out: string) {
    this.#out = out
  }

  /** `doneOf` returns the runs whose end has already been read, for example by an earlier server. */
  async look(doneOf: (records: readonly RunRecord[]) => Promise<ReadonlySet<string>>): Promise<FolderOfNews[]> {
    const isFull = performance.now() - this.#fullLookAtMs > FULL_LOOK_MS
    if (isFull) this.#fullLookAtMs = performance.now()
    const changed = foldersIn(this.#out)
      .filter((scraper) => this.#isChanged(scraper) || isFull)
      .flatMap((scraper) => listRuns(this.#out, scraper))
      .filter(({ path }) => !this.#open.has(path))
    for (let at = 0; at < changed.length; at += FOLDERS_AT_ONCE) {
      await this.#sort(changed.slice(at, at + FOLDERS_AT_ONCE), doneOf)
      await breathe()
    }
    return [...this.#open.values()].flatMap((folder) => this.#newsOf(folder) ?? [])
  }

  /** Undefined for a deleted folder. */
  #newsOf(folder: RunFolder): FolderOfNews | undefined {
    const changedMs = changedAtMs(folder.file('run.json'))
    if (changedMs === 0) {
      this.#open.delete(folder.path)
      return undefined
    }
    return {
      folder,
      settle: () => {
        this.#open.delete(folder.path)
        this.#settled.set(folder.path, changedMs)
      },
    }
  }

  #isChanged(scraper: string): boolean {
    const changedMs = changedAtMs(join(this.#out, scraper))
    const isNews = this.#parents.get(scraper) !== changedMs || Date.now() - changedMs < PARENT_RESTS_MS
    this.#parents.set(scraper, changedMs)
    return isNews
  }

  async #sort(
    folders: readonly RunFolder[],
    doneOf: (records: readonly RunRecord[]) => Promise<ReadonlySet<string>>,
  ): Promise<void> {
    const found = folders.flatMap((folder) => {
      const changedMs = changedAtMs(folder.file('run.json'))
      if (this.#settled.get(folder.path) === changedMs) return []
      const record = folder.tryReadRecord()
      return record === undefined ? [] : [{ folder, record, changedMs }]
    })
    const done = await doneOf(found.map(({ record }) => record))
    for (const { folder, record, changedMs } of found) {
      if (done.has(record.id)) this.#settled.set(folder.path, changedMs)
      else this.#open.set(folder.path, folder)
    }
  }
}

/** 0 if the file does not exist. */
function changedAtMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function foldersIn(path: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(path, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}
