/** An error as text: what, where, why, what to do. Also the exit code it ends the process with. */
import { exitCodeOfClass, ScrapeError } from '../core/errors.ts'
import { redactText } from '../core/redact-text.ts'
import { displayWidth, type Paint, plain, printable, self } from '../observe/terminal.ts'

/** Exit codes. Scripts rely on these numbers. */
export const EXIT_CODES = {
  0: 'finished within its thresholds',
  1: 'finished, but over `failAt`, below `expect`, or a check or test failed',
  2: 'usage, configuration or definition error',
  3: 'a required service is unreachable',
  4: 'stopped early, resumable (limit, SIGTERM, first Ctrl-C)',
  130: 'second Ctrl-C',
} as const

type ExitCode = keyof typeof EXIT_CODES

interface PrintErrorOptions {
  paint?: Paint
  /** `-v`: with the stack trace and the chain of causes. */
  verbose?: boolean
  columns?: number
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof AggregateError && error.errors.length > 0) return exitCodeOf(error.errors[0])
  if (!(error instanceof ScrapeError)) return 1
  // If the error gets here, the run never began. A full disk is temporary; any other problem with --out means a wrong --out.
  return error.class === 'output' && !isDiskFull(error) ? 2 : exitCodeOfClass(error.class)
}

/** Disk full, and the I/O error of a disk with too little space for SQLite's shared memory. */
const SQLITE_NO_ROOM = new Set([13, 10])

function isDiskFull({ cause }: Error): boolean {
  if (!(cause instanceof Error)) return false
  const { code, errcode } = cause as NodeJS.ErrnoException & { errcode?: number }
  return code === 'ENOSPC' || code === 'EDQUOT' || SQLITE_NO_ROOM.has((errcode ?? 0) & 0xff) || isDiskFull(cause)
}

/** Several lines without a newline at the end. Shows every error of an `AggregateError`: all problems in one message. */
export function errorText(error: unknown, options: PrintErrorOptions = {}): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.map((one) => errorText(one, options)).join('\n\n')
  }
  return error instanceof ScrapeError ? namedErrorText(error, options) : bugText(error, options)
}

function namedErrorText(
  error: ScrapeError,
  { paint = plain, verbose = false, columns = 100 }: PrintErrorOptions,
): string {
  const [what = '', ...problems] = safeLines(error.message)
  const { at, notes = [], url } = error.details
  const lines = [`${paint(['red', 'bold'], `error ${error.code}`)}  ${what}`, ...problems.map((line) => `  ${line}`)]
  if (at !== undefined) lines.push(paint('dim', `  at ${safe(at)}`))
  if (url !== undefined && !error.message.includes(url)) lines.push(`  url: ${safe(url)}`)
  lines.push(...notes.map((note) => `  ${safe(note)}`))
  const fix = `  ${paint('green', 'fix:')} ${safe(error.fix)}`
  const explain = paint('dim', `${self()} explain ${error.code}`)
  // Beside the advice if there is room, otherwise below it.
  const isWide = displayWidth(fix) + displayWidth(explain) + 4 <= columns
  lines.push(isWide ? `${fix}         ${explain}` : `${fix}\n  ${explain}`)
  if (verbose) lines.push(...stackLines(error, paint))
  return lines.join('\n')
}

/** An error without a code is a bug, ours or the scraper's, and is shown as one. */
function bugText(error: unknown, { paint = plain, verbose = false }: PrintErrorOptions): string {
  const [what = '', ...more] = safeLines(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
  const lines = [`${paint(['red', 'bold'], 'error')}  ${what}`, ...more.map((line) => `  ${line}`)]
  if (verbose) lines.push(...stackLines(error, paint))
  else lines.push(`  ${paint('green', 'fix:')} this error has no name, so it is a bug; run again with -v to see where`)
  return lines.join('\n')
}

const CAUSES_MAX = 8

function stackLines(error: unknown, paint: Paint): string[] {
  const lines: string[] = []
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth++) {
    const [head = '', ...frames] = safeLines(current.stack ?? String(current))
    if (depth > 0) lines.push(paint('dim', `  caused by ${head}`))
    lines.push(...frames.map((frame) => paint('dim', `    ${frame.trim()}`)))
    current = current.cause
  }
  return lines
}

const safe = (text: string) => printable(text)
/** Redacted as a whole, since a private key spans many lines. */
const safeLines = (text: string) => redactText(text).split('\n').map(safe)
