/**
 * An append-only file whose confirmed part is never touched again.
 *
 *   0 ────────── confirmed ──────── durable ──────── written ──── buffered
 *     kept for good   │ cut off at the next open: the item log still has these items, and they are written again
 *
 * Writes are collected in a buffer and written in one call per 512 KiB, while the next buffer fills; `flush` makes all of it
 * durable. Every 32 MiB a sync is started in the background, so that a flush after much writing is short.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ScrapeError } from '../core/errors.ts'

const BUFFER_BYTES = 512 * 1024
/** Without it, a gigabyte written in one go made the final flush wait 0.6 s, a seventh of the total time. */
const SYNC_AHEAD_BYTES = 32 * 1024 * 1024
/** UTF-8 needs at most this many bytes for one UTF-16 unit. */
const UTF8_BYTES_MAX = 3
const LINE_END_BYTES_MAX = 2

type LineEnd = '' | '\n' | '\r\n'

/** How far a file is confirmed: in bytes and in records. */
interface FilePosition {
  bytes: number
  rows: number
}

export class AppendFile implements AsyncDisposable {
  readonly path: string
  readonly #handle: FileHandle
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #spare = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #buffered = 0
  /** Bytes passed to the operating system, or about to be. */
  #written: number
  /** Bytes that survive a power cut. */
  #durable: number
  #writing: Promise<void> | undefined
  /** A background sync in progress, and where the last one started. */
  #syncing: Promise<void> | undefined
  #syncedFrom: number
  #failure: ScrapeError | undefined

  private constructor(path: string, handle: FileHandle, bytes: number) {
    this.path = path
    this.#handle = handle
    this.#written = bytes
    this.#durable = bytes
    this.#syncedFrom = bytes
  }

  /** A new, empty file; whatever was at the path is overwritten. */
  static async create(path: string): Promise<AppendFile> {
    try {
      await mkdir(dirname(path), { recursive: true })
      const handle = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o644)
      await syncFolder(dirname(path))
      return new AppendFile(path, handle, 0)
    } catch (error) {
      throw outputError(path, error)
    }
  }

  /** The file as it was when `bytes` of it were confirmed: everything written after that is cut off. */
  static async reopen(path: string, bytes: number): Promise<AppendFile> {
    let handle: FileHandle | undefined
    try {
      handle = await open(path, constants.O_RDWR)
      const { size } = await handle.stat()
      if (size < bytes) throw outputLost(path, `it has ${size} bytes, but ${bytes} were confirmed as written`)
      if (bytes > 0) {
        const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, bytes - 1)
        if (buffer[0] !== 0x0a) throw outputLost(path, `byte ${bytes} should end a record and does not`)
      }
      if (size > bytes) {
        await handle.truncate(bytes)
        await handle.datasync()
      }
      return new AppendFile(path, handle, bytes)
    } catch (error) {
      await handle?.close()
      if (isMissing(error)) throw outputLost(path, `it is gone, but ${bytes} bytes of it were confirmed as written`)
      throw outputError(path, error)
    }
  }

  /** Length of the file once everything appended so far has reached it. */
  get bytes(): number {
    return this.#written + this.#buffered
  }

  /** Adds a record. One caller at a time: while it waits for the disk, another could get in first. */
  async append(record: string, lineEnd: LineEnd): Promise<void> {
    while (!this.tryAppend(record, lineEnd)) await this.#writing
  }

  /**
   * Adds a record if that needs no wait; false while the disk is behind. Records and line ends are added separately: joining
   * texts costs an extra copy (200 ns a record), and a single character beyond Latin-1 makes V8 encode the whole joined text at a
   * fifth of the speed.
   */
  tryAppend(record: string, lineEnd: LineEnd): boolean {
    if (this.#failure !== undefined) throw this.#failure
    const bytesMax = record.length * UTF8_BYTES_MAX + LINE_END_BYTES_MAX
    if (bytesMax > BUFFER_BYTES - this.#buffered) {
      if (this.#writing !== undefined) return false
      if (this.#buffered === 0) {
        this.#start(Buffer.from(record + lineEnd, 'utf8')) // larger than a buffer: written separately
        return true
      }
      this.#spill()
      if (bytesMax > BUFFER_BYTES) return false // separately, once everything before it is written
    }
    let to = this.#buffered + this.#buffer.write(record, this.#buffered, 'utf8')
    if (lineEnd === '\r\n') this.#buffer[to++] = 0x0d
    if (lineEnd !== '') this.#buffer[to++] = 0x0a
    this.#buffered = to
    return true
  }

  /** Everything appended so far is on disk when this resolves; returns the file's length. */
  async flush(): Promise<number> {
    await this.#writing
    if (this.#failure === undefined && this.#buffered > 0) {
      this.#spill()
      await this.#writing
    }
    if (this.#failure !== undefined) throw this.#failure
    if (this.#written > this.#durable) {
      const bytes = this.#written
      await this.#syncing
      await this.#handle.datasync().catch((error: unknown) => this.#fail(error))
      if (this.#failure !== undefined) throw this.#failure
      this.#durable = bytes
    }
    return this.#durable
  }

  async read(bytes: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(bytes), 0, bytes, 0)
    return buffer.subarray(0, bytesRead)
  }

  /** Closes the file. Records appended after the last flush may or may not be in it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing
    await this.#syncing
    await this.#handle.close()
  }

  /** Starts writing the full buffer and continues with the other one. */
  #spill(): void {
    const full = this.#buffer.subarray(0, this.#buffered)
    const next = this.#spare
    this.#spare = this.#buffer
    this.#buffer = next
    this.#buffered = 0
    this.#start(full)
  }

  /** One write at a time. It never rejects: the failure is kept, and the next call throws it. */
  #start(bytes: Buffer): void {
    this.#writing = this.#write(bytes)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#writing = undefined
      })
  }

  async #write(bytes: Buffer): Promise<void> {
    let at = this.#written
    this.#written += bytes.length
    for (let rest = bytes; rest.length > 0; ) {
      const { bytesWritten } = await this.#handle.write(rest, 0, rest.length, at)
      at += bytesWritten
      rest = rest.subarray(bytesWritten)
    }
    if (at - this.#syncedFrom >= SYNC_AHEAD_BYTES) this.#syncAhead(at)
  }

  /** Its failure is kept like that of a write: it is reported only once, and a later sync would call the lost bytes durable. */
  #syncAhead(bytes: number): void {
    if (this.#syncing !== undefined) return
    this.#syncedFrom = bytes
    this.#syncing = this.#handle
      .datasync()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#syncing = undefined
      })
  }

  /** This process can no longer use the file. Best effort: cut off what is half written, so that no reader sees it. */
  async #fail(error: unknown): Promise<void> {
    this.#failure = outputError(this.path, error)
    await this.#handle.truncate(this.#durable).catch(() => undefined)
  }
}

/** A new name in a folder survives a power cut only once the folder itself is synced. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } catch (error) {
    if (errnoOf(error) !== 'EINVAL') throw error // not supported by this file system (/dev, some network mounts)
  } finally {
    await handle.close()
  }
}

/** Describes failures of the file system for people. */
export function outputError(path: string, error: unknown): ScrapeError {
  if (error instanceof ScrapeError) return error
  const code = errnoOf(error)
  const known = ADVICE[code]
  const message = error instanceof Error ? error.message : String(error)
  return new ScrapeError('E_OUTPUT', `cannot write ${path}: ${known?.what ?? message}`, {
    cause: error,
    fix: known?.fix,
  })
}

/** The output is not what was confirmed: continuing would leave a gap in it. */
export function outputLost(path: string, what: string): ScrapeError {
  return new ScrapeError('E_OUTPUT', `cannot resume ${path}: ${what}`, {
    fix: 'Put the file back as the run left it, or start a new run: the items that were in it are not kept elsewhere.',
  })
}

const FULL = {
  what: 'the disk is full',
  fix: 'Make room or choose another --out; then --resume: every confirmed item is in the file, the others are in the run’s log.',
}
const READONLY = {
  what: 'not allowed to write there',
  fix: 'Give this user the right to write the folder, or choose another --out; then --resume.',
}
const ADVICE: Record<string, { what: string; fix: string }> = {
  ENOSPC: FULL,
  EDQUOT: { ...FULL, what: 'the disk quota is used up' },
  EFBIG: { ...FULL, what: 'the file is larger than allowed here' },
  EACCES: READONLY,
  EPERM: READONLY,
  EROFS: { ...READONLY, what: 'the file system is read-only' },
  EIO: { what: 'the disk reports an error', fix: 'Check the disk (dmesg); choose another --out on a healthy one.' },
  EISDIR: { what: 'a folder has this name', fix: 'Choose another name, or move the folder away.' },
  ENOTDIR: { what: 'a part of the path is a file', fix: 'Choose another folder with --out.' },
}

export function errnoOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function isMissing(error: unknown): boolean {
  return errnoOf(error) === 'ENOENT'
}

/** A file's position as stored in the frontier. */
export function formatPosition({ bytes, rows }: FilePosition): string {
  return `${bytes}:${rows}`
}

export function parsePosition(path: string, position: string): FilePosition {
  const match = /^(\d+):(\d+)$/.exec(position)
  if (match === null) throw outputLost(path, `its confirmed position reads "${position}"`)
  return { bytes: Number(match[1]), rows: Number(match[2]) }
}
