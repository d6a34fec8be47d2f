/** Derives the pool sizes of a worker from the options: browser pages and file processes. */
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import type { ConfigValues } from '../../config/option-table.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import type { BrowserSpec } from './worker.ts'
import type { FileSpec } from './worker-files.ts'

/** An explicit number is used as is; otherwise one page per core at first, and two under load. */
export function browserSpecOf({ browsers, chrome }: Pick<ConfigValues, 'browsers' | 'chrome'>): BrowserSpec {
  const cores = availableParallelism()
  return { pages: browsers ?? cores, pagesMax: browsers ?? 2 * cores, executable: chrome }
}

type FileValues = Pick<ConfigValues, 'files' | 'fileWorkers' | 'fileMax' | 'fileSteps'>

export function fileSpecOf(values: FileValues, folder: RunFolder, records: string): FileSpec {
  return {
    store: values.files === undefined ? resolve(folder.file('files')) : values.files,
    spool: resolve(folder.file('spool')),
    records,
    workersMax: values.fileWorkers ?? Math.min(8, Math.max(2, availableParallelism())),
    bytesMax: values.fileMax,
    steps: values.fileSteps,
  }
}
