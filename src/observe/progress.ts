/**
 * The progress display of a run: up to three lines redrawn in place on a terminal, a plain line every 10 s if the cursor cannot
 * be moved, nothing when quiet. Log lines go through `print`, so that the two never mix.
 */
import type { Clock } from '../core/clock.ts'
import { systemClock } from '../core/clock.ts'
import { type ProgressStats, progressLines, progressText } from './progress-lines.ts'
import type { Tally } from './tally.ts'
import { displayWidth, isTerminal, type OutputStream, paintFor } from './terminal.ts'

const REDRAW_MS = 200
const PLAIN_LINE_MS = 10_000
const COLUMNS_DEFAULT = 80

/** bar: redrawn in place · lines: a plain line now and then · none: only what is passed to `print`. */
type ProgressMode = 'bar' | 'lines' | 'none'

export interface ProgressOptions {
  /** The scraper's name. */
  name: string
  stats: () => Promise<ProgressStats>
  tally: Tally
  /** Standard error, so that standard output contains only data. */
  stream: OutputStream
  /** Default: bar on a terminal, lines elsewhere. */
  mode?: ProgressMode
  /** `limits.pages`: the run ends there, whatever is still queued. */
  pagesMax?: number
  /** When the run began (epoch ms). Default: now. */
  startedAtMs?: number
  clock?: Clock
  env?: NodeJS.ProcessEnv
}

export interface Progress extends AsyncDisposable {
  /** Writes a line above the progress. */
  print(line: string): void
  /** Clears the lines and restores the cursor. May be called twice. */
  stop(): Promise<void>
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

export function startProgress(options: ProgressOptions): Progress {
  const { stream, tally, clock = systemClock, env = process.env } = options
  const mode = options.mode ?? (isTerminal(stream, env) ? 'bar' : 'lines')
  const startedAtMs = options.startedAtMs ?? clock.now()
  const paint = paintFor(stream, env)
  const stopping = new AbortController()
  let drawn: string[] = []

  const columns = () => Math.max(20, stream.columns ?? COLUMNS_DEFAULT)

  /**
   * Moves to the start of what is drawn. If the window was made narrower since, our lines have wrapped, so rows are counted
   * again.
   */
  function home(): string {
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(displayWidth(line) / columns())), 0)
    return rows === 0 ? '' : `\r\x1b[${rows}A`
  }

  /** A single write: a terminal that shows half a frame flickers. */
  function redraw(lines: string[], above = ''): void {
    const frame = lines.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')
    stream.write(`${home()}${above}${frame}${CLEAR_BELOW}`)
    drawn = lines
  }

  function print(line: string): void {
    if (mode !== 'bar' || stopping.signal.aborted) return void stream.write(`${line}\n`)
    redraw(drawn, `${line.replaceAll('\n', `${CLEAR_LINE_END}\n`)}${CLEAR_LINE_END}\n`)
  }

  async function view() {
    return {
      name: options.name,
      stats: await options.stats(),
      tally: tally.snapshot(),
      nowMs: clock.now(),
      startedAtMs,
      pagesMax: options.pagesMax,
    }
  }

  async function loop(): Promise<void> {
    const everyMs = mode === 'bar' ? REDRAW_MS : PLAIN_LINE_MS
    if (mode === 'lines') await pause(everyMs)
    while (!stopping.signal.aborted) {
      // If the frontier cannot answer now, the old figures stay.
      const now = await view().catch(() => undefined)
      if (stopping.signal.aborted) return
      if (now !== undefined && mode === 'bar') redraw(progressLines(now, columns() - 1, paint))
      else if (now !== undefined) stream.write(`${progressText(now)}\n`)
      await pause(everyMs)
    }
  }

  const pause = (ms: number) => clock.sleep(ms, stopping.signal).catch(() => {})

  const showCursor = () => void stream.write(SHOW_CURSOR)
  if (mode === 'bar') {
    stream.write(HIDE_CURSOR)
    process.once('exit', showCursor) // a crash must not leave the shell without a cursor
  }
  const running = mode === 'none' ? Promise.resolve() : loop()

  async function stop(): Promise<void> {
    if (!stopping.signal.aborted) {
      stopping.abort()
      if (mode === 'bar') {
        process.off('exit', showCursor)
        stream.write(`${home()}${CLEAR_BELOW}${SHOW_CURSOR}`)
        drawn = []
      }
    }
    await running
  }

  return { print, stop, [Symbol.asyncDispose]: stop }
}
