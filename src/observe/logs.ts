/** The log files of a run: `log.jsonl`, everything that happened, and `errors.jsonl`, everything that failed. */
import { open } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { DestinationStream, Logger, LoggerOptions } from 'pino'
import { ScrapeError } from '../core/errors.ts'
import type { EventOf, RunEvent } from '../core/events.ts'
import { redactValue } from '../core/redact.ts'
import { redactText } from '../core/redact-text.ts'
import { blockedWords } from './trouble.ts'

type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface RunLogOptions {
  /** The run's folder; must exist. */
  folder: string
  /** Lines below this level are not written. Pages that succeeded are `debug`. Default `info`. */
  level?: LogLevel
  /** On every line of log.jsonl. */
  runId?: string
  now?: () => number
  /** Called once when a file cannot be written. The run continues: a log is not worth an item. */
  onError?: (error: ScrapeError) => void
}

interface RunLog extends AsyncDisposable {
  /** Pass it to `bus.on`. */
  readonly record: (event: RunEvent) => void
  /** When it resolves, everything recorded so far is in the files. */
  flush(): Promise<void>
  /** Flushes and closes both files. May be called twice. */
  close(): Promise<void>
}

/** One line of errors.jsonl: a page given up on, or an item that the schema rejected. */
interface ErrorLine {
  time: string
  url: string
  route: string
  code: string
  class: string
  message: string
  attempt?: number
  status?: number
  at?: string
  snapshot?: string
  problems?: string[]
  /** The rejected item as JSON. */
  item?: string
}

/** Lines are buffered up to this size and written once a second, for readers who follow the file. */
const BUFFER_BYTES = 8 * 1024
const FLUSH_EVERY_MS = 1000
/** If the disk is too slow, log lines are dropped instead of filling the memory. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024

/** Maximum number of events held until pino is loaded. */
const HELD_MAX = 100

type Destination = DestinationStream & {
  flush(done: (error?: Error) => void): void
  end(): void
  on(event: string, listener: (error: Error) => void): void
  once(event: string, listener: () => void): void
}

/** Throws `E_OUTPUT` if the files cannot be written. */
export async function openRunLog(options: RunLogOptions): Promise<RunLog> {
  for (const path of pathsIn(options.folder)) await endTornLine(path)
  return new PatientLog(options)
}

const pathsIn = (folder: string) => [join(folder, 'log.jsonl'), join(folder, 'errors.jsonl')] as const

/**
 * Buffers events until the first request is on its way, or for a second, which is how long lines may wait anyway: loading pino takes
 * 20 ms. Not later, because a busy process that may open few files could not load it.
 */
class PatientLog implements RunLog {
  readonly #options: RunLogOptions
  readonly #now: () => number
  readonly #opening: NodeJS.Timeout
  #held: { event: RunEvent; atMs: number }[] = []
  #files: LogFiles | undefined
  #closing: Promise<void> | undefined

  constructor(options: RunLogOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#opening = setTimeout(() => this.#open(), FLUSH_EVERY_MS).unref()
    leftAtExit.add(this)
  }

  readonly record = (event: RunEvent): void => {
    if (this.#closing !== undefined) return
    const atMs = this.#now()
    if (this.#files !== undefined) this.#files.write(event, atMs)
    else if (this.#held.push({ event, atMs }) >= HELD_MAX || isFirstRequest(event)) this.#open()
  }

  flush(): Promise<void> {
    return this.#open().flush()
  }

  close(): Promise<void> {
    this.#closing ??= this.#open().close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Called when the process exits; pino itself writes the lines it has. */
  writeHeld(): void {
    this.#open({ sync: true })
  }

  #open(how: { sync: boolean } = { sync: false }): LogFiles {
    if (this.#files !== undefined) return this.#files
    clearTimeout(this.#opening)
    leftAtExit.delete(this)
    this.#files = new LogFiles(this.#options, how)
    for (const { event, atMs } of this.#held.splice(0)) this.#files.write(event, atMs)
    return this.#files
  }
}

const isFirstRequest = (event: RunEvent): boolean => event.type === 'worker.in-flight' && event.inFlight > 0

const leftAtExit = new Set<PatientLog>()
process.on('exit', () => {
  for (const log of leftAtExit) {
    try {
      log.writeHeld()
    } catch {} // its folder may be gone: a log is not worth another exit code
  }
})

class LogFiles {
  readonly #log: Destination
  readonly #errors: Destination
  readonly #writeEvent: (event: RunEvent) => void
  #atMs = 0
  #hasFailed = false

  /** `sync`: every line is written to its file at once. */
  constructor({ folder, level = 'info', runId, onError }: RunLogOptions, { sync }: { sync: boolean }) {
    const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino')
    const open = (dest: string): Destination => {
      const file = pino.destination({
        dest,
        append: true,
        sync, // if false, pino itself flushes its buffer when the process exits
        minLength: sync ? 0 : BUFFER_BYTES,
        maxLength: WAITING_BYTES_MAX,
        periodicFlush: FLUSH_EVERY_MS,
      }) as unknown as Destination
      file.on('error', (cause) => {
        if (this.#hasFailed) return
        this.#hasFailed = true
        onError?.(new ScrapeError('E_OUTPUT', `cannot write ${dest}: ${cause.message}`, { cause }))
      })
      return file
    }
    const [log, errors] = pathsIn(folder)
    this.#log = open(log)
    this.#errors = open(errors)
    const base: Record<string, string> = runId === undefined ? {} : { run: runId }
    this.#writeEvent = eventWriter(
      pino(
        lineFormat(level, base, () => this.#atMs),
        this.#log,
      ),
    )
  }

  write(event: RunEvent, atMs: number): void {
    this.#atMs = atMs
    this.#writeEvent(event)
    if (event.type === 'page' && event.outcome === 'failed') this.#writeError(failedPageLine(event))
    else if (event.type === 'item.invalid') this.#writeError(invalidItemLine(event))
  }

  #writeError(line: Omit<ErrorLine, 'time'>): void {
    this.#errors.write(`${JSON.stringify({ time: new Date(this.#atMs).toISOString(), ...line })}\n`)
  }

  async flush(): Promise<void> {
    await Promise.all([flushed(this.#log), flushed(this.#errors)])
  }

  async close(): Promise<void> {
    await this.flush()
    await Promise.all([ended(this.#log), ended(this.#errors)])
  }
}

interface LineLogOptions {
  level: LogLevel
  /** On every line. */
  base: Record<string, string>
  /** Receives a line of JSON, without a newline. Must not block. */
  write: (line: string) => void
  now?: () => number
}

/** The same lines as in log.jsonl, for another destination. */
export async function openLineLog({ level, base, write, now = Date.now }: LineLogOptions) {
  const { pino } = await import('pino')
  return eventWriter(pino(lineFormat(level, base, now), { write: (line: string) => write(line.trimEnd()) }))
}

function lineFormat(level: LogLevel, base: Record<string, string>, now: () => number): LoggerOptions {
  return {
    level,
    base,
    messageKey: 'message',
    formatters: { level: (label) => ({ level: label }) },
    timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
  }
}

/** A crash may have cut the last line; the next one must not be appended to it. */
async function endTornLine(path: string): Promise<void> {
  try {
    await using file = await open(path, 'a+')
    const { size } = await file.stat()
    if (size === 0) return
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
    if (buffer[0] !== 0x0a) await file.appendFile('\n')
  } catch (cause) {
    throw new ScrapeError('E_OUTPUT', `cannot write ${path}: ${(cause as Error).message}`, { cause })
  }
}

/** Twice: a flush during a write ends with that write, and leaves what came after it. */
async function flushed(file: Destination): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise<void>((resolve) => file.flush(() => resolve()))
}

function ended(file: Destination): Promise<void> {
  return new Promise((resolve) => {
    file.once('close', resolve)
    file.on('error', () => resolve())
    file.end()
  })
}

function failedPageLine(event: EventOf<'page'>): Omit<ErrorLine, 'time'> {
  const { error, snapshot } = event
  const status = event.status ?? error?.status
  return {
    url: redactText(event.url),
    route: event.route,
    code: error?.code ?? 'E_HANDLER',
    class: error?.class ?? 'handler',
    message: redactText(error?.message ?? 'no reason given'),
    attempt: event.attempt,
    status,
    at: error?.at,
    snapshot,
  }
}

function invalidItemLine(event: EventOf<'item.invalid'>): Omit<ErrorLine, 'time'> {
  return {
    url: redactText(event.url),
    route: event.route,
    code: 'E_ITEM_INVALID',
    class: 'item',
    message: redactText(event.problems[0] ?? 'the item breaks the schema'),
    problems: event.problems.map(redactText),
    item: redactText(event.item),
  }
}

/** Assigns a level to each event. Events below the logger's level are never formatted. */
function eventWriter(logger: Logger): (event: RunEvent) => void {
  const isDebug = logger.isLevelEnabled('debug')

  /** The only path to the logger, so that nothing bypasses the redaction. */
  function say(level: 'debug' | 'info' | 'warn', { type, ...rest }: RunEvent, message: string): void {
    logger[level]({ event: type, ...(redactValue(rest) as object) }, redactText(message))
  }

  return (event) => {
    switch (event.type) {
      case 'page':
        if (event.outcome === 'failed') say('warn', event, `failed: ${event.error?.message ?? 'no reason given'}`)
        else if (event.suspicion !== undefined) say('warn', event, `suspect: ${event.suspicion}`)
        else if (isDebug) say('debug', event, `page ${event.outcome}`)
        break
      case 'file':
        if (event.outcome === 'failed') say('warn', event, `file failed: ${event.error?.message ?? 'no reason given'}`)
        else if (isDebug) say('debug', event, `file ${event.outcome}`)
        break
      case 'browser': {
        const level = event.what === 'crashed' || event.what === 'hung' ? 'warn' : 'info'
        say(level, event, `browser ${event.what}: ${event.reason}`)
        break
      }
      case 'scaled':
        if (event.what !== 'batch' || isDebug)
          say(
            event.what === 'batch' ? 'debug' : 'info',
            event,
            `${event.what} ${event.from} → ${event.to}: ${event.reason}`,
          )
        break
      case 'not-fetched':
        if (isDebug)
          say('debug', event, `not fetched: ${Object.entries(event.counts).map(([reason, by]) => `${by} ${reason}`)}`)
        break
      case 'item.invalid':
        say('warn', { ...event, item: '(in errors.jsonl)' }, `invalid item: ${event.problems[0] ?? 'no reason given'}`)
        break
      case 'throttled':
        say('warn', event, `${event.host} throttled: ${event.reason}`)
        break
      case 'blocked':
        // Rate limiting is reported as `throttled`.
        if (event.class !== 'rate_limit') say('warn', event, `${event.host}: ${blockedWords(event)} (${event.signal})`)
        else if (isDebug) say('debug', event, `${event.host}: ${blockedWords(event)} (${event.signal})`)
        break
      case 'circuit':
        say(event.state === 'open' ? 'warn' : 'info', event, `circuit of ${event.host} ${event.state}: ${event.reason}`)
        break
      case 'proxy': {
        const where = event.host === undefined ? '' : ` for ${event.host}`
        say(
          event.state === 'down' ? 'warn' : 'info',
          event,
          `proxy ${event.proxy} ${event.state}${where}: ${event.reason}`,
        )
        break
      }
      case 'identity.retired':
        if (isDebug) say('debug', event, `identity ${event.id} retired: ${event.reason}`)
        break
      case 'lease.lost':
        say('warn', event, 'lease lost: the page took longer than its lease, or this worker slept')
        break
      case 'leases.expired':
        say('warn', event, `${event.returned + event.dead} leases of dead workers expired`)
        break
      case 'run.started':
        say('info', event, event.resumed ? 'run resumed' : 'run started')
        break
      case 'run.finished':
        say('info', event, `run ${event.state}${event.reason === undefined ? '' : `: ${event.reason}`}`)
        break
      case 'committed':
      case 'fields':
      case 'sinks.flushed':
      case 'worker.in-flight':
      case 'pools':
        if (isDebug) say('debug', event, event.type)
        break
      case 'log': {
        const { level, message, url, extra } = event
        if (logger.isLevelEnabled(level)) logger[level](redactValue({ url, extra }) as object, redactText(message))
        break
      }
      default:
        event satisfies never
    }
  }
}
