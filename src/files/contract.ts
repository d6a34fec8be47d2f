/**
 * Files: what is too large or too slow for the loop that fetches pages. A file task waits in the lane `files` of the run's own
 * frontier, under the same leases and retries as a page:
 *
 *   handler: file(url) ─▶ download ─┐
 *   browser: kept bytes ─▶ upload ──┴─▶ stored under its final name ─▶ db_update ─▶ recorded
 *
 * Storing and recording are two tasks, joined by the commit that settles the first and adds the second: a database that is
 * away costs no second download.
 */
import type { ScrapeError } from '../core/errors.ts'
import type { Json, Task } from '../core/task.ts'

/** What a file task carries as `data`. */
export type FileOrder = DownloadOrder | UploadOrder | RecordOrder

interface DownloadOrder {
  type: 'download'
  /** What to call it; default: what the server or the URL says. */
  name?: string
  /** Anything the handler wants to find in the record. */
  meta?: Json
}

export interface UploadOrder {
  type: 'upload'
  /** A file on the machine the lane is pinned to. It is removed once the task is settled: until then it may be needed again. */
  path: string
  name: string
  meta?: Json
}

export interface RecordOrder {
  type: 'db_update'
  record: FileRecord
}

/** One stored file of one run, as people find it again. Its identity is run and task. */
export interface FileRecord {
  runId: string
  /** Of the download or upload. */
  taskId: string
  scraper: string
  /** The session it belongs to; empty for nobody's. */
  user: string
  url: string
  name: string
  bytes: number
  /** Hex. */
  sha256: string
  /** Sniffed from the bytes; what the server said where they tell nothing. */
  contentType: string
  /** `file:///…` or `s3://BUCKET/KEY`. */
  where: string
  /** True when another task had stored the same bytes before: `where` is theirs. */
  isSame: boolean
  storedAtMs: number
  meta: Json
  /** What plug-in steps found out: step → result. */
  extra: Record<string, Json>
}

export interface FileRecords extends AsyncDisposable {
  /** Idempotent by run and task. */
  put(records: readonly FileRecord[]): Promise<void>
  /** Where these bytes are already, below `place` (the store's own URL). */
  findStored(sha256: string, place: string): Promise<string | undefined>
  /** Of one run. `same` are those whose bytes another task had stored. */
  count(runId: string): Promise<{ stored: number; same: number; bytes: number }>
  list(runId: string, options?: { after?: string; limit?: number }): Promise<FileRecord[]>
}

/** What a file worker is asked to do. Plain data: it is sent to another process. */
export interface FileJob {
  task: Pick<Task, 'id' | 'url' | 'session'>
  order: DownloadOrder | UploadOrder
  runId: string
  scraper: string
  /** Request headers, cookies included; they never leave the origin. */
  headers: Readonly<Record<string, string>>
}

export interface StoredFile
  extends Pick<FileRecord, 'name' | 'bytes' | 'sha256' | 'contentType' | 'where' | 'isSame' | 'extra'> {
  /** Bytes that came over the wire for it: fewer than `bytes` when an earlier try had a part. */
  fetchedBytes: number
}

/** What the one who gives a job has a say in while it runs. What these throw ends the job. */
export interface JobHooks {
  /** Before a redirect is followed: robots.txt and the rate limit of where it leads. */
  onRedirect?: (url: string) => Promise<void>
  /** All bytes are here: the host they came from has nothing to do with the rest. */
  onReceived?: () => void
  /** Before the bytes get their final name: the last chance of a job whose lease is lost. */
  beforeStore?: () => Promise<void>
  /** In a process with no other job: for one that may have killed the last. Others need not wait for it. Default false. */
  isAlone?: boolean
}

/** Processes that store files. Some always stay; they are used again and again. */
export interface FilePool extends AsyncDisposable {
  /**
   * Throws `ScrapeError`, or the signal's reason. `E_FILE_WORKER` when its process died under it: with a time to come back
   * (`retryAfterMs`) when other jobs were in there too and any of them may be to blame, without one when it was alone.
   */
  run(job: FileJob, signal: AbortSignal, hooks?: JobHooks): Promise<StoredFile>
  /** Processes, and jobs they may work on at once, and jobs they have. */
  readonly workers: number
  readonly capacity: number
  readonly busy: number
  resize(workers: number): void
}

/** Where bytes are kept. A name is visible only when all of its bytes are there. */
export interface FileStore extends AsyncDisposable {
  /** As the operator wrote it, without secrets: `file:///…/`, `s3://BUCKET/PREFIX/`. */
  readonly place: string
  /** From a complete local file, which is moved or read; returns where it is. Overwrites: a repeated task writes the same. */
  put(file: NewFile, signal: AbortSignal): Promise<string>
  /** Whether `where` is still there with that many bytes. */
  has(where: string, bytes: number): Promise<boolean>
}

export interface NewFile {
  path: string
  /** From `fileKey` (naming.ts): segments of safe characters, joined by `/`. */
  key: string
  contentType: string
  bytes: number
  /** `path` is left where it is: it is not ours until the task is settled. Default false. */
  isKept?: boolean
}

/** A further look at a stored file: text of a PDF, a thumbnail. Runs in the file worker; a failure is noted, not fatal. */
export interface FileStep {
  readonly name: string
  /** Whether it wants files of this type. */
  takes(contentType: string): boolean
  /** May write more files beside it through `put`, which returns where. */
  run(
    file: { path: string; contentType: string; bytes: number; signal: AbortSignal },
    put: (suffix: string, bytes: Uint8Array, contentType: string) => Promise<string>,
  ): Promise<Json>
}

/** What becomes of a file task that failed; see `crawl/retry.ts`. `attempt` is the try that failed, from 1. */
export type Decide = (
  error: ScrapeError,
  attempt: number,
) => { kind: 'retry'; atMs: number } | { kind: 'postpone'; atMs: number } | { kind: 'dead' } | { kind: 'halt' }
