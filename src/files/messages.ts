/** Messages between the pool and its processes. Plain data, so that it can be serialised. */
import type { ErrorCode } from '../core/error-table.ts'
import { ERRORS } from '../core/error-table.ts'
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import type { FileJob, StoredFile } from './contract.ts'

/** Pool → process. */
export type ToWorker =
  /** Sent first, once: what the entry module needs to assemble its parts. */
  | { kind: 'open'; orders: unknown }
  | { kind: 'job'; id: number; job: FileJob }
  | { kind: 'abort'; id: number }
  | { kind: 'answer'; ask: number; value?: string; error?: SentError }
  /** Is the process responsive? One in an endless loop is not. */
  | { kind: 'ping' }

/** Process → pool. */
export type FromWorker =
  /** The process has its parts: if it dies from now on, a job may be to blame. */
  | { kind: 'ready' }
  | { kind: 'pong' }
  /** All bytes of a download have arrived. */
  | { kind: 'received'; id: number }
  | { kind: 'ask'; ask: number; id: number; question: Question }
  | { kind: 'done'; id: number; stored: StoredFile }
  | { kind: 'failed'; id: number; error: SentError }
  /** The process cannot work at all: the store cannot be opened. */
  | { kind: 'broken'; error: SentError }

export type Question =
  | { what: 'redirect'; url: string }
  | { what: 'known'; sha256: string; place: string }
  | { what: 'store' }

/** The process's end of the channel. */
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
