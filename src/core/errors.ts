/**
 * The one family of errors. A code says what happened, its verdict says what to do; `error-table.ts` has every code.
 */
import { ERRORS, type ErrorCode, type ErrorKind, type Verdict } from './error-table.ts'

export interface ErrorDetails {
  url?: string
  /** HTTP status, if there was one. */
  status?: number
  /** The server's Retry-After, or our own wait, in milliseconds from now. */
  retryAfterMs?: number
  /** A proxy rejects our user name or password: retrying will not change that. */
  isLoginRefused?: true
  /** Where in the user's scraper: `scrapers/jobs.ts:31 (handler "list")`. */
  at?: string
  /** More lines for the user, each without a newline. */
  notes?: readonly string[]
  /** Replaces the table's advice if there is better advice for this case. */
  fix?: string
  cause?: unknown
}

/** An error with a code, whose verdict says how to react. */
export class ScrapeError extends Error {
  override readonly name = 'ScrapeError'
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.details = details
  }

  get kind(): ErrorKind {
    return ERRORS[this.code]
  }

  get class(): string {
    return this.kind.class
  }

  get verdict(): Verdict {
    return this.kind.verdict
  }

  get fix(): string {
    return this.details.fix ?? this.kind.fix
  }
}

/** The part of a failure that is stored in the frontier, the error log and events. */
export interface ErrorRecord {
  code: ErrorCode
  class: string
  message: string
  status?: number
  at?: string
}

export function toErrorRecord(error: ScrapeError): ErrorRecord {
  const { status, at } = error.details
  return {
    code: error.code,
    class: error.class,
    message: error.message.slice(0, 1000),
    ...(status === undefined ? {} : { status }),
    ...(at === undefined ? {} : { at }),
  }
}

/** Known errors are returned unchanged; anything else is a bug in a handler, kept as the cause. */
export function toScrapeError(error: unknown, fallback: ErrorCode, details: ErrorDetails = {}): ScrapeError {
  if (error instanceof ScrapeError) return error
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new ScrapeError(fallback, message, { ...details, cause: error })
}

/** The exit code of a process that ends with this error; the whole list is in docs/reference/errors.md. */
export function exitCodeOfClass(cls: string): 1 | 2 | 3 | 4 {
  switch (cls) {
    case 'usage':
    case 'definition':
    case 'proxy-login':
      return 2
    case 'service':
      return 3
    case 'stopped':
    case 'output': // nothing was lost: --resume continues once there is space
      return 4
    default:
      return 1
  }
}
