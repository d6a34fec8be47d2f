/**
 * Files: downloads that are too large or too slow for the loop that fetches pages. A file task waits in the lane `files` of the
 * run's own frontier, under the same leases and retries as a page:
 *
 *   handler: file(url) ─▶ download ─┐
 *   browser: kept bytes ─▶ upload ──┴─▶ stored under its final name ─▶ db_update ─▶ recorded
 *
 * Storing and recording are two tasks, joined by the commit that settles the first and adds the second, so that a database outage
 * does not cost a second download.
 */
import type { ScrapeError } from '../core/errors.ts'
import type { Json, Task } from '../core/task.ts'

/** The `data` of a file task. */
export type FileOrder = DownloadOrder | UploadOrder | RecordOrder

interface DownloadOrder {
  type: 'download'
  /** The file's name; default: from the server or the URL. */
  name?: string
  /** Anything the handler wants to find in the record. */
  meta?: Json
}

export interface UploadOrder {
  type: 'upload'
  /** A file on the machine the lane is pinned to. It is removed once the task is settled; until then it may be needed again. */
  path: string
  name: string
  meta?: Json
}

export interface RecordOrder {
  type: 'db_update'
  record: FileRecord
}

/** The searchable record of one stored file of one run. Identified by run and task. */
export interface FileRecord {
  runId: string
  /** Task of the download or upload. */
  taskId: string
  scraper: string
  /** The session it belongs to; empty for none. */
  user: string
  url: string
  name: string
  bytes: number
  /** Hex. */
  sha256: string
  /** Sniffed from the bytes; if they are inconclusive, the server's Content-Type. */
  contentType: string
  /** `file:///…` or `s3://BUCKET/KEY`. */
  where: string
  /** True if another task had already stored the same bytes: `where` is theirs. */
  isSame: boolean
  storedAtMs: number
  meta: Json
  /** Results of plug-in steps: step → result. */
  extra: Record<string, Json>
}

export interface FileRecords extends AsyncDisposable {
  /** Idempotent by run and task. */
  put(records: readonly FileRecord[]): Promise<void>
  /** Where these bytes are already stored, below `place` (the store's own URL). */
  findStored(sha256: string, place: string): Promise<string | undefined>
  /** Counts for one run. `same` are files whose bytes another task had stored. */
  count(runId: string): Promise<{ stored: number; same: number; bytes: number }>
  list(runId: string, options?: { after?: string; limit?: number }): Promise<FileRecord[]>
}

/** A job for a file worker. Plain data: it is sent to another process. */
export interface FileJob {
  task: Pick<Task, 'id' | 'url' | 'session'>
  order: DownloadOrder | UploadOrder
  runId: string
  scraper: string
  /** Request headers, including cookies; they are only sent to the file's own origin. */
  headers: Readonly<Record<string, string>>
}

export interface StoredFile
  extends Pick<FileRecord, 'name' | 'bytes' | 'sha256' | 'contentType' | 'where' | 'isSame' | 'extra'> {
  /** Bytes received for it: fewer than `bytes` if an earlier try left a part. */
  fetchedBytes: number
}

/** Callbacks to the job's owner while it runs. Errors they throw end the job. */
export interface JobHooks {
  /** Before a redirect is followed: checks robots.txt and the rate limit of its target. */
  onRedirect?: (url: string) => Promise<void>
  /** All bytes are here: the host's slot is no longer needed. */
  onReceived?: () => void
  /** Before the bytes get their final name: the last chance to stop a job whose lease is lost. */
  beforeStore?: () => Promise<void>
  /** Run in a process without other jobs, because it may have killed the last one. Others need not wait for it. Default false. */
  isAlone?: boolean
}

/** Processes that store files. They are started once and reused. */
export interface FilePool extends AsyncDisposable {
  /**
   * Throws `ScrapeError`, or the signal's reason. `E_FILE_WORKER` if its process died: with `retryAfterMs` if other jobs were in
   * it and any of them may be to blame, without if it was alone.
   */
  run(job: FileJob, signal: AbortSignal, hooks?: JobHooks): Promise<StoredFile>
  /** Processes, how many jobs they can run at once, and how many they have. */
  readonly workers: number
  readonly capacity: number
  readonly busy: number
  resize(workers: number): void
}

/** Where bytes are stored. A name becomes visible only when all of its bytes are there. */
export interface FileStore extends AsyncDisposable {
  /** As the operator wrote it, without secrets: `file:///…/`, `s3://BUCKET/PREFIX/`. */
  readonly place: string
  /** Stores a complete local file, which is moved or read; returns its location. Overwrites: a repeated task writes the same. */
  put(file: NewFile, signal: AbortSignal): Promise<string>
  /** Whether `where` still exists with this many bytes. */
  has(where: string, bytes: number): Promise<boolean>
}

export interface NewFile {
  path: string
  /** From `fileKey` (naming.ts): segments of safe characters, joined by `/`. */
  key: string
  contentType: string
  bytes: number
  /** Leave `path` in place: it is not ours until the task is settled. Default false. */
  isKept?: boolean
}

/**
 * Further processing of a stored file: the text of a PDF, a thumbnail. Runs in the file worker; a failure is noted, not fatal.
 */
export interface FileStep {
  readonly name: string
  /** Whether it handles files of this type. */
  takes(contentType: string): boolean
  /** May write more files beside it through `put`, which returns their location. */
  run(
    file: { path: string; contentType: string; bytes: number; signal: AbortSignal },
    put: (suffix: string, bytes: Uint8Array, contentType: string) => Promise<string>,
  ): Promise<Json>
}

/** The outcome of a failed file task; see `crawl/retry.ts`. `attempt` is the try that failed, from 1. */
export type Decide = (
  error: ScrapeError,
  attempt: number,
) => { kind: 'retry'; atMs: number } | { kind: 'postpone'; atMs: number } | { kind: 'dead' } | { kind: 'halt' }
