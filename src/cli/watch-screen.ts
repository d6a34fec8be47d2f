/** The output of `sluice watch`: frames redrawn in place on a terminal, otherwise a plain line now and then, or JSON. */

import type { FrontierStats } from '../frontier/contract.ts'
import type { ProgressView } from '../observe/progress-lines.ts'
import type { TallySnapshot } from '../observe/tally.ts'
import type { OpenRun } from '../runs/run-view.ts'
import type { StoredWorker } from '../store/contract.ts'
import { print } from './output.ts'
import type { RateMeter } from './rate-meter.ts'
import type { Paint } from './style.ts'

const JSON_LINE_MS = 1_000
const PLAIN_LINE_MS = 10_000
const ERRORS_SHOWN_MAX = 5
const ROWS_DEFAULT = 24

/** The result of one look. */
export interface Look {
  run: OpenRun
  numbers: FrontierStats
  rate: number
  why: string | undefined
}

interface Screen extends Disposable {
  show(look: Look): void
  /** Removes what is redrawn. */
  clear(): void
}

export async function createScreen(flags: { json?: boolean; quiet?: boolean }): Promise<Screen> {
  if (flags.json) return await lines(JSON_LINE_MS, await jsonLine(), () => true)
  if (flags.quiet) return { show: () => {}, clear: () => {}, [Symbol.dispose]: () => {} }
  const { isTerminal } = await import('../observe/terminal.ts')
  if (isTerminal(process.stdout)) return await redrawn()
  const [{ progressText }, { brokerRows }, viewOf] = await Promise.all([
    import('../observe/progress-lines.ts'),
    import('./stats-text.ts'),
    viewMaker(),
  ])
  const queueLines = (run: OpenRun) => brokerRows(run).map(([queue, text]) => `\n  ${queue}: ${text}`)
  return await lines(
    PLAIN_LINE_MS,
    (look) => `${progressText(viewOf(look))}${queueLines(look.run).join('')}`,
    ({ run }) => !run.isOver,
  )
}

/** If the cursor cannot be moved: a line now and then. */
async function lines(
  everyMs: number,
  lineOf: (look: Look) => string,
  isShown: (look: Look) => boolean,
): Promise<Screen> {
  let lastMs = Number.NEGATIVE_INFINITY
  return {
    show(look) {
      const nowMs = performance.now()
      if (!isShown(look) || (nowMs - lastMs < everyMs && !look.run.isOver)) return
      lastMs = nowMs
      print(lineOf(look))
    },
    clear: () => {},
    [Symbol.dispose]: () => {},
  }
}

async function jsonLine(): Promise<(look: Look) => string> {
  const { statsJson } = await import('./stats-text.ts')
  return ({ run, numbers, rate, why }) => JSON.stringify({ ...statsJson(run, numbers, rate), why: why ?? null })
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

/** A single write: a terminal that shows half a frame flickers. */
async function redrawn(): Promise<Screen> {
  const [{ progressLines }, { brokerRows, workerLines }, { paintFor, table, truncate }, viewOf] = await Promise.all([
    import('../observe/progress-lines.ts'),
    import('./stats-text.ts'),
    import('./style.ts'),
    viewMaker(),
  ])
  const paint = paintFor(process.stdout)
  let drawn = 0
  const showCursor = () => void process.stdout.write(SHOW_CURSOR)
  process.stdout.write(HIDE_CURSOR)
  process.once('exit', showCursor) // a crash must not leave the shell without a cursor
  const brokerLines = (run: OpenRun) => {
    const rows = brokerRows(run).map(([queue, text]) => [paint('dim', queue), text])
    return rows.length === 0 ? [] : table(rows, { indent: 4 }).split('\n')
  }
  const home = () => (drawn === 0 ? '' : `\r\x1b[${drawn}A`)
  return {
    show(look) {
      const columns = (process.stdout.columns ?? 80) - 1
      const rowsMax = (process.stdout.rows ?? ROWS_DEFAULT) - 1
      const all = [
        ...progressLines(viewOf(look), columns, paint),
        ...(look.why === undefined || look.numbers.isPaused ? [] : [paint('yellow', `  ! ${look.why}`)]),
        ...workerLines(look.run, paint).flatMap((block) => block.split('\n')),
        ...brokerLines(look.run),
        ...errorLines(look.run, paint),
      ].slice(0, rowsMax)
      const frame = all.map((line) => `${truncate(line, columns)}${CLEAR_LINE_END}\n`).join('')
      process.stdout.write(`${home()}${frame}${CLEAR_BELOW}`)
      drawn = all.length
    },
    clear() {
      process.stdout.write(`${home()}${CLEAR_BELOW}`)
      drawn = 0
    },
    [Symbol.dispose]() {
      process.off('exit', showCursor)
      showCursor()
    },
  }
}

function errorLines({ record }: OpenRun, paint: Paint): string[] {
  return record.errors
    .slice(0, ERRORS_SHOWN_MAX)
    .map(
      ({ code, count, example }) => `    ${paint('red', `${count}× ${code}`)}  ${example.replace(/[\p{Cc}]/gu, ' ')}`,
    )
}

/** Turns looks into the progress view of a run: what only the run itself can count is omitted. */
async function viewMaker(): Promise<(look: Look) => ProgressView> {
  const [{ createTally }, { livingWorkers }, { createRateMeter }] = await Promise.all([
    import('../observe/tally.ts'),
    import('../runs/run-numbers.ts'),
    import('./rate-meter.ts'),
  ])
  const empty = createTally().snapshot()
  const bytes = createRateMeter()
  const added = createRateMeter()
  const cpu = createRateMeter()
  return ({ run, numbers, rate }) => ({
    name: run.record.scraper,
    stats: numbers,
    tally: { ...empty, ...seen(run, numbers, { bytes, added, cpu }, rate, livingWorkers(run) ?? []) },
    nowMs: Date.now(),
    startedAtMs: Date.parse(run.record.startedAt),
    pagesMax: undefined,
  })
}

function seen(
  { record }: OpenRun,
  { seen: all }: FrontierStats,
  meters: Record<'bytes' | 'added' | 'cpu', RateMeter>,
  pages: number,
  living: readonly StoredWorker[],
): Partial<TallySnapshot> {
  return {
    files: record.files,
    latencyMs: record.latencyMs,
    rate: { pages, bytes: meters.bytes.rate(record.bytes) ?? 0, added: meters.added.rate(all) ?? 0 },
    workers: living.map(({ id, silentMs, report }) => ({
      workerId: id,
      inFlight: report?.inFlight ?? 0,
      rssBytes: report?.rssBytes ?? 0,
      cpuMs: 0,
      atMs: Date.now() - silentMs,
    })),
    inFlight: living.reduce((sum, { report }) => sum + (report?.inFlight ?? 0), 0),
    rssBytes: living.reduce((sum, { report }) => sum + (report?.rssBytes ?? 0), 0),
    cpuRatio: (meters.cpu.rate(record.cpuMs) ?? 0) / 1000,
  }
}
