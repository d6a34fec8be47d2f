/** Shared by the tests of files: options of the byte stream for loopback, jobs, folders. */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { FileOrders } from '../../src/app/run/file-process.ts'
import { taskId } from '../../src/core/url.ts'
import type { ByteStreamOptions } from '../../src/fetch/http/byte-stream.ts'
import type { FileJob } from '../../src/files/contract.ts'

export const never: AbortSignal = new AbortController().signal
export const ENTRY = fileURLToPath(new URL('../../src/app/run/file-process.ts', import.meta.url))

export function streamOptions(more: Partial<ByteStreamOptions> = {}): ByteStreamOptions {
  return {
    userAgent: 'SluiceTest/1.0',
    headersMsMax: 20_000,
    idleMsMax: 20_000,
    totalMsMax: 60_000,
    connectTimeoutMs: 5000,
    redirectsMax: 5,
    connectionsPerHost: 16,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    ...more,
  }
}

export function orders(folder: string, more: Partial<FileOrders> = {}): FileOrders {
  const spool = `${folder}/spool`
  return { store: `${folder}/store`, spool, bytesMax: 100_000_000, http: streamOptions(), steps: [], ...more }
}

export function downloadJob(url: string, more: Partial<FileJob> = {}): FileJob {
  const task = { id: taskId({ url }), url, session: undefined }
  return { task, order: { type: 'download' }, runId: 'run-1', scraper: 'shop', headers: {}, ...more }
}

/** Files in a folder, as relative paths, without those in progress. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
    .sort()
}
