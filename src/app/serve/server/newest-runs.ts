/** The newest run folders, for frequent readers: a scraper's folder is listed again only when it has changed. */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { RunFolder } from '../../../runs/run-folder.ts'

export class NewestRuns {
  readonly #out: string
  readonly #max: number
  readonly #listed = new Map<string, { changedMs: number; ids: string[] }>()

  constructor(out: string, max: number) {
    this.#out = out
    this.#max = max
  }

  /** Newest first. */
  list(): RunFolder[] {
    return foldersIn(this.#out)
      .flatMap((scraper) => this.#idsOf(scraper).map((id) => ({ scraper, id })))
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, this.#max)
      .map(({ scraper, id }) => new RunFolder(join(this.#out, scraper, id)))
  }

  #idsOf(scraper: string): string[] {
    const path = join(this.#out, scraper)
    const changedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    const known = this.#listed.get(scraper)
    if (known?.changedMs === changedMs) return known.ids
    const ids = foldersIn(path).sort().slice(-this.#max)
    this.#listed.set(scraper, { changedMs, ids })
    return ids
  }
}

function foldersIn(path: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(path, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}
