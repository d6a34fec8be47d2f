/** The spec of a worker, and its pool sizes derived from the options: browser pages and file processes. */
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import type { ConfigValues } from '../../config/option-table.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import type { WorkPart } from '../../store/contract.ts'
import type { EgressSpec } from './egress-options.ts'
import type { FileSpec } from './worker-files.ts'

/** Plain data, so that it can be sent to another process. */
export interface WorkerSpec {
  workerId: string
  args: unknown
  /** Its share of the run's concurrency, overall and per host. */
  concurrency: number
  perHostConcurrency: number
  pagesMax: number
  leaseMs: number
  drainMs: number
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  cacheStore: string
  /** Batch size for claims. Default: twice the concurrency. */
  claimMax?: number
  /** URL of the worker's own Tor daemon. */
  proxy?: string | undefined
  /** Proxies and identities; undefined: none. */
  ways?: EgressSpec
  browsers: BrowserSpec
  files: FileSpec
  /** Undefined: pages and files. */
  only?: WorkPart
  /** Memory left free for other programs. */
  memoryReserve: number
  /** Several processes share the rate limits per host. */
  isOneOfMany: boolean
  /** See `CrawlParts`. */
  isFirstStart?: boolean
  /** Share of traces to keep; undefined: nothing is traced. */
  traceRatio?: number | undefined
  /** Where to save pages as fixtures, if anywhere. */
  recordTo: string | undefined
}

/** Pages in browsers. */
interface BrowserSpec {
  /** Initial and maximum number of pages. */
  pages: number
  pagesMax: number
  executable: string | undefined
}

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
