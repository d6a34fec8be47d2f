/**
 * One file job from start to end, in a file process:
 *
 *   download · kept file ──▶ hash, type, name ──▶ known? ──no──▶ run the steps ──▶ still wanted? ──▶ stored
 *                                                    └──yes─▶ run the steps, whose files go beside the existing ones
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ScrapeError } from '../core/errors.ts'
import type { Json } from '../core/task.ts'
import type { ByteSource } from '../fetch/contract.ts'
import type { FileJob, FileStep, FileStore, StoredFile, UploadOrder } from './contract.ts'
import { download, headOf } from './download.ts'
import { fileKey, isPlain } from './naming.ts'
import type { SpoolLimits } from './spool.ts'
import { diskError } from './store-error.ts'
import { typeOf } from './types.ts'

export interface WorkerParts {
  source: ByteSource
  store: FileStore
  /** A folder, ideally on the disk of the store: then storing is a rename. */
  spool: string
  steps: readonly FileStep[]
  /** Maximum file size. */
  bytesMax: number
  /** Time limit for one step on one file. Default 30 s. */
  stepMsMax?: number
  spoolLimits?: SpoolLimits
}

/** Questions that only the job's owner can answer. */
interface JobQuestions {
  onRedirect(url: string): Promise<void>
  /** All bytes of a download are here. */
  onReceived?(): void
  findStored(sha256: string, place: string): Promise<string | undefined>
  beforeStore(): Promise<void>
}

/** A complete local file. */
interface Local {
  path: string
  bytes: number
  sha256: string
  contentType: string
  name: string
  fetchedBytes: number
  isKept: boolean
  /** `isStored`: nothing of it is needed any more. */
  close(isStored: boolean): Promise<void>
}

const STEP_MS_MAX = 30_000
const NOTE_CHARS_MAX = 500
const NAME_CHARS_MAX = 300

export async function workOn(
  job: FileJob,
  parts: WorkerParts,
  asks: JobQuestions,
  signal: AbortSignal,
): Promise<StoredFile> {
  const local = await (job.order.type === 'upload' ? kept(job.order, parts) : downloaded(job, parts, asks, signal))
  let isStored = false
  try {
    const { runId, scraper, task } = job
    const { bytes, sha256, contentType, fetchedBytes } = local
    const name = job.order.name ?? local.name
    const key = fileKey({ scraper, runId, user: task.session ?? '', taskId: task.id, name, contentType })
    const known = await findKnown(local, parts, asks)
    const extra = await look(local, known === undefined ? key : keyOf(known, parts.store, key), parts, signal)
    const where = known ?? (await store(local, key, parts, asks, signal))
    const isSame = known !== undefined
    isStored = true
    const said = name.toWellFormed().slice(0, NAME_CHARS_MAX) || key.slice(key.lastIndexOf('/') + 1)
    return { name: said, bytes, sha256, contentType, where, isSame, extra, fetchedBytes }
  } finally {
    await local.close(isStored)
  }
}

async function downloaded(job: FileJob, parts: WorkerParts, asks: JobQuestions, signal: AbortSignal): Promise<Local> {
  const { part, ...file } = await download(job, { ...parts, onRedirect: (url) => asks.onRedirect(url) }, signal)
  asks.onReceived?.()
  const close = async (isStored: boolean) => {
    if (isStored) await part.remove().catch(() => part.release())
    else part.release()
  }
  return { ...file, path: part.path, isKept: false, close }
}

async function kept({ path, name }: UploadOrder, { bytesMax }: WorkerParts): Promise<Local> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() !== true) throw new ScrapeError('E_FILE_MISSING', `${path} is not there any more`)
  if (found.size > bytesMax)
    throw new ScrapeError('E_FILE_TOO_LARGE', `${path} has ${found.size} bytes, more than ${bytesMax}`)
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path, { highWaterMark: 262_144 })) {
    hash.update(chunk as Buffer)
    bytes += (chunk as Buffer).length
  }
  const contentType = await typeOf(await headOf(path), undefined)
  return {
    path,
    bytes,
    sha256: hash.digest('hex'),
    contentType,
    name,
    fetchedBytes: 0,
    isKept: true,
    close: async () => {},
  }
}

async function findKnown({ sha256, bytes }: Local, { store }: WorkerParts, asks: JobQuestions) {
  const known = await asks.findStored(sha256, store.place)
  return known !== undefined && (await store.has(known, bytes)) ? known : undefined
}

/** The key of the file already stored: a second thumbnail of the same image gets the name of the first. */
function keyOf(where: string, { place }: FileStore, otherwise: string): string {
  if (!where.startsWith(place)) return otherwise
  const key = decodeURI(where.slice(place.length))
  return isPlain(key) ? key : otherwise
}

async function store(local: Local, key: string, { store }: WorkerParts, asks: JobQuestions, signal: AbortSignal) {
  const { path, bytes, contentType, isKept } = local
  await asks.beforeStore()
  return await store.put({ path, key, contentType, bytes, isKept }, signal)
}

/** The result of every step under its name. A failed step leaves a note there: the file itself is fine. */
async function look(local: Local, key: string, parts: WorkerParts, signal: AbortSignal): Promise<Record<string, Json>> {
  const { path, contentType, bytes } = local
  const extra: Record<string, Json> = {}
  for (const step of parts.steps) {
    if (!step.takes(contentType)) continue
    const limited = AbortSignal.any([signal, AbortSignal.timeout(parts.stepMsMax ?? STEP_MS_MAX)])
    const put = (suffix: string, content: Uint8Array, type: string) =>
      putBeside(key, suffix, content, type, parts, limited)
    try {
      extra[step.name] = await ended(step.run({ path, contentType, bytes, signal: limited }, put), limited)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof ScrapeError && error.code !== 'E_OPTION') throw error // an error of the store, not of the step
      extra[step.name] = { error: String((error as Error).message ?? error).slice(0, NOTE_CHARS_MAX) }
    }
  }
  return extra
}

function ended<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

async function putBeside(
  key: string,
  suffix: string,
  content: Uint8Array,
  contentType: string,
  { store, spool }: WorkerParts,
  signal: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(join(spool, 'step-'))
  try {
    const path = join(folder, 'file')
    await writeFile(path, content)
    const safe = suffix.replace(/[^a-z0-9.-]+/gi, '-').slice(0, 60)
    return await store.put({ path, key: `${key}.${safe}`, contentType, bytes: content.length }, signal)
  } catch (error) {
    throw signal.aborted ? error : diskError(error, `the spool ${spool}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
