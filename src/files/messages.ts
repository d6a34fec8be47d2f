/** What travels between the pool and its processes. Plain data, so that it survives the trip. */
import type { ErrorCode } from '../core/error-table.ts'
import { ERRORS } from '../core/error-table.ts'
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import type { FileJob, StoredFile } from './contract.ts'

/** Pool → process. */
export type ToWorker =
  /** First, once: what the composition root's entry needs to put its parts together. */
  | { kind: 'open'; orders: unknown }
  | { kind: 'job'; id: number; job: FileJob }
  | { kind: 'abort'; id: number }
  | { kind: 'answer'; ask: number; value?: string; error?: SentError }
  /** Are you there? A process in an endless loop is not. */
  | { kind: 'ping' }

/** Process → pool. */
export type FromWorker =
  /** It has its parts: if it dies from now on, a job may be to blame. */
  | { kind: 'ready' }
  | { kind: 'pong' }
  /** All bytes of a download have come. */
  | { kind: 'received'; id: number }
  | { kind: 'ask'; ask: number; id: number; question: Question }
  | { kind: 'done'; id: number; stored: StoredFile }
  | { kind: 'failed'; id: number; error: SentError }
  /** It cannot work at all: a store that cannot be opened. */
  | { kind: 'broken'; error: SentError }

export type Question =
  | { what: 'redirect'; url: string }
  | { what: 'known'; sha256: string; place: string }
  | { what: 'store' }

/** The two ends of a process's channel. */
export interface WorkerChannel {
  send(message: FromWorker): void
  onMessage(listener: (message: ToWorker) => void): void
}

interface SentError {
  code: ErrorCode
  message: string
  details: { url?: string; status?: number; retryAfterMs?: number; notes?: readonly string[]; fix?: string }
}

export function toSentError(error: unknown): SentError {
  const { code, message, details } = toScrapeError(error, 'E_FILE_WORKER')
  const { url, status, retryAfterMs, notes, fix } = details
  return { code, message: message.slice(0, 1000), details: { url, status, retryAfterMs, notes, fix } }
}

export function fromSentError({ code, message, details }: SentError): ScrapeError {
  return new ScrapeError(Object.hasOwn(ERRORS, code) ? code : 'E_FILE_WORKER', message, details)
}
