/**
 * One download into the spool: streamed, hashed and counted on the way, resumed where an earlier try ended.
 *
 *   part there? ──no──▶ GET ───────────────────────▶ 200: from the start ──▶ complete
 *        └─yes─▶ complete already: nothing to request  ▲
 *        └─yes─▶ GET Range, If-Range ─▶ 206: append    │ (changed since, or a response that does not fit the part)
 *                        └──────────────200, 416, misfit┘
 *
 * An interrupted download leaves its part for the next try. One that can never become a file (too large, gone, damaged) leaves
 * nothing.
 */
import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { ScrapeError } from '../core/errors.ts'
import type { ByteAnswer, ByteSource } from '../fetch/contract.ts'
import { nameInDisposition } from './content-disposition.ts'
import type { FileJob } from './contract.ts'
import { nameOfUrl } from './naming.ts'
import { openPart, type Part, type PartNote } from './spool.ts'
import { diskError } from './store-error.ts'
import { SNIFF_BYTES, typeOf } from './types.ts'

interface DownloadParts {
  source: ByteSource
  spool: string
  bytesMax: number
  onRedirect?: (url: string) => Promise<void>
}

/** A complete file in the spool. */
export interface Downloaded {
  part: Part
  bytes: number
  sha256: string
  contentType: string
  /** The name given by the server or the URL; may be anything, even empty. */
  name: string
  /** Bytes received this time. */
  fetchedBytes: number
}

/** Chunks are written together: one thread-pool call per this many bytes. */
const WRITE_BYTES = 262_144

export async function download(job: FileJob, parts: DownloadParts, signal: AbortSignal): Promise<Downloaded> {
  const what = `the spool ${parts.spool}`
  const part = await openPart(parts.spool, { runId: job.runId, taskId: job.task.id }).catch((error: unknown) => {
    throw diskError(error, what)
  })
  try {
    const { note, fetchedBytes, bytes } = await fill(part, job, parts, signal)
    const contentType = await typeOf(await headOf(part.path), note.servedType)
    const name = nameInDisposition(note.disposition ?? '') ?? nameOfUrl(note.finalUrl)
    return { part, bytes, sha256: note.whole!, contentType, name, fetchedBytes }
  } catch (error) {
    const known = signal.aborted ? error : diskError(error, what)
    part.release()
    if (known instanceof ScrapeError && !signal.aborted && isHopeless(known)) await part.remove()
    throw known
  }
}

/** Whether the part is useless for another try. */
function isHopeless(error: ScrapeError): boolean {
  return error.verdict === 'drop' || error.code === 'E_ENCODING' || error.code === 'E_PROTOCOL'
}

interface Filled {
  note: PartNote
  bytes: number
  fetchedBytes: number
}

async function fill(part: Part, job: FileJob, parts: DownloadParts, signal: AbortSignal): Promise<Filled> {
  const isSameUrl = part.note?.url === job.task.url
  if (isSameUrl && part.note?.whole !== undefined) return { note: part.note, bytes: part.bytes, fetchedBytes: 0 }
  await using file = await open(part.path, 'a+')
  const hash = createHash('sha256')
  let from = isSameUrl ? part.bytes : 0
  const validator = part.note === undefined ? undefined : validatorOf(part.note)
  let answer: ByteAnswer | undefined
  if (from > 0 && validator !== undefined) {
    answer = await parts.source.open(requestOf(job, parts, { from, validator }), signal)
    if (answer.status !== 200 && !isContinued(answer, from, part.note!)) {
      answer.close()
      answer = undefined
    }
  }
  answer ??= await parts.source.open(requestOf(job, parts), signal)
  try {
    if (answer.status !== 206) from = 0
    const totalBytes = answer.status === 206 ? lastOf(answer)! + 1 : answer.length
    if ((totalBytes ?? 0) > parts.bytesMax) throw tooLarge(job, parts, `${totalBytes} bytes are announced`)
    const note = noteOf(answer, job, totalBytes, answer.status === 206 ? part.note : undefined)
    if (from === 0) {
      await file.truncate(0)
      await part.save(note)
    } else await hashUpTo(file, from, hash)
    const fetchedBytes = await receive(answer, { file, hash, from, bytesMax: parts.bytesMax, job, parts })
    const bytes = from + fetchedBytes
    if (totalBytes !== undefined && bytes !== totalBytes)
      throw new ScrapeError('E_BODY_SHORT', `${bytes} of ${totalBytes} bytes came of ${job.task.url}`)
    const whole = { ...note, totalBytes: bytes, whole: hash.digest('hex') }
    await part.save(whole) // if the store is down, the next try starts here
    return { note: whole, bytes, fetchedBytes }
  } finally {
    answer.close()
  }
}

function requestOf(job: FileJob, { onRedirect }: DownloadParts, range?: { from: number; validator: string }) {
  return { url: job.task.url, headers: job.headers, range, onRedirect }
}

/** A weak ETag says that the meaning is the same, not the bytes (RFC 9110 § 13.1.5). */
function validatorOf({ etag, lastModified }: PartNote): string | undefined {
  if (etag !== undefined) return etag.startsWith('W/') ? undefined : etag
  return lastModified
}

const CONTENT_RANGE = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/

function lastOf({ headers }: ByteAnswer): number | undefined {
  const range = CONTENT_RANGE.exec(headers['content-range'] ?? '')
  return range === null ? undefined : Number(range[2])
}

/** Whether the response is exactly the rest of our part. If neither response states a total, it may be any piece. */
function isContinued({ status, headers, isEncoded }: ByteAnswer, from: number, note: PartNote): boolean {
  const range = CONTENT_RANGE.exec(headers['content-range'] ?? '')
  if (status !== 206 || isEncoded || range === null) return false
  const [first, last, total] = [Number(range[1]), Number(range[2]), range[3] === '*' ? undefined : Number(range[3])]
  const length = headers['content-length']
  return (
    first === from &&
    last + 1 === (total ?? note.totalBytes) &&
    (total === undefined || note.totalBytes === undefined || total === note.totalBytes) &&
    (length === undefined || Number(length) === last - first + 1) &&
    (headers['etag'] === undefined || note.etag === undefined || headers['etag'] === note.etag)
  )
}

/** `earlier` is the note of the part that this response completes. A server need not repeat those headers (RFC 9110 § 15.3.7). */
function noteOf(
  { headers, url, isEncoded }: ByteAnswer,
  job: FileJob,
  totalBytes: number | undefined,
  earlier?: PartNote,
): PartNote {
  return {
    url: job.task.url,
    finalUrl: earlier?.finalUrl ?? url,
    servedType: headers['content-type']?.slice(0, 300) ?? earlier?.servedType,
    disposition: headers['content-disposition']?.slice(0, 4096) ?? earlier?.disposition,
    totalBytes,
    // Without a validator the next try starts over, as it must if the body was decoded on the way.
    etag: isEncoded ? undefined : (headers['etag'] ?? earlier?.etag),
    lastModified: isEncoded ? undefined : (sureDateOf(headers) ?? earlier?.lastModified),
  }
}

/** A file changed twice within the same second has one date for two contents (RFC 9110 § 8.8.2.2). */
function sureDateOf(headers: ByteAnswer['headers']): string | undefined {
  const lastModified = headers['last-modified']
  const ageMs = Date.parse(headers['date'] ?? '') - Date.parse(lastModified ?? '')
  return ageMs >= 1000 ? lastModified : undefined
}

interface Receiving {
  file: FileHandle
  hash: Hash
  from: number
  bytesMax: number
  job: FileJob
  parts: DownloadParts
}

/** Returns how many bytes were received. They are in the file when it resolves, and most of them when it throws. */
async function receive(answer: ByteAnswer, { file, hash, from, bytesMax, job, parts }: Receiving): Promise<number> {
  let bytes = 0
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  const write = async () => {
    const chunks = waiting
    waiting = []
    waitingBytes = 0
    if (chunks.length > 0) await writeAll(file, chunks)
  }
  try {
    for await (const chunk of answer.body) {
      bytes += chunk.length
      if (from + bytes > bytesMax) throw tooLarge(job, parts, 'more came')
      hash.update(chunk)
      waiting.push(chunk)
      waitingBytes += chunk.length
      if (waitingBytes >= WRITE_BYTES) await write()
    }
  } catch (error) {
    await write().catch(() => {}) // the next try continues after it
    throw error
  }
  await write()
  return bytes
}

/** `writev` may write less than it was given: a full disk takes a part, and fails only at the next call. */
async function writeAll(file: FileHandle, chunks: Uint8Array[]): Promise<void> {
  const total = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  const { bytesWritten } = await file.writev(chunks)
  if (bytesWritten === total) return
  const rest = Buffer.concat(chunks).subarray(bytesWritten)
  await file.appendFile(rest)
}

/** Hashes the part left by an earlier try; the file is open for appending, so new bytes go to its end. */
async function hashUpTo(file: FileHandle, end: number, hash: Hash): Promise<void> {
  const buffer = Buffer.allocUnsafe(WRITE_BYTES)
  for (let at = 0; at < end; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) throw new ScrapeError('E_FILE_WORKER', 'the part became shorter while it was read')
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
}

export async function headOf(path: string): Promise<Uint8Array> {
  await using file = await open(path, 'r')
  const buffer = Buffer.alloc(SNIFF_BYTES)
  const { bytesRead } = await file.read(buffer, 0, SNIFF_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}

function tooLarge({ task }: FileJob, { bytesMax }: DownloadParts, why: string): ScrapeError {
  return new ScrapeError('E_FILE_TOO_LARGE', `${task.url} is larger than ${bytesMax} bytes: ${why}`, { url: task.url })
}
