/** Runs a scraper in the foreground: progress, signals, summary, exit code. Shared by `run` and `crawl`. */

import { type Run, startRun } from '../app/run/run.ts'
import type { Config } from '../config/config.ts'
import { ScrapeError } from '../core/errors.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { Scraper } from '../core/scraper.ts'
import type { Progress } from '../observe/progress.ts'
import { paintFor, printable } from '../observe/terminal.ts'
import { findRun, listRuns, type RunFolder } from '../runs/run-folder.ts'
import { note, print, printJson } from './output.ts'

interface RunHereRequest {
  scraper: Scraper
  file?: string
  /** The scraper as named on the command line. */
  source?: string
  config: Config
  args: Record<string, unknown>
  /** A run id, or true for the latest unfinished run of this scraper. */
  resume?: string | true | undefined
  recordTo?: string | undefined
  isQuiet: boolean
  isJson: boolean
}

export async function runHere(request: RunHereRequest): Promise<number> {
  const { scraper, file, config, args, isQuiet } = request
  const resume = request.resume === undefined ? undefined : runToResume(config.values.out, scraper.name, request.resume)
  const warn = (line: string) => (progress === undefined ? note(`${line}`) : progress.print(line))
  let progress: Progress | undefined
  const run = await startRun({
    scraper,
    config,
    file,
    source: request.source,
    ...(resume !== undefined && Object.keys(args).length === 0 ? {} : { args }),
    resume,
    recordTo: request.recordTo,
    onEvent: (event) => {
      if (event.type === 'log' && event.level !== 'debug' && !isQuiet) warn(printable(event.message))
    },
  })
  if (!isQuiet) progress = await showProgress(run, scraper.name)
  const unhook = stopOnSignals(run, (line) => warn(line))
  let record: RunRecord
  try {
    record = await run.result
  } finally {
    unhook()
    await progress?.stop()
  }
  await report(record, request)
  return record.exitCode ?? 1
}

async function showProgress(run: Run, name: string): Promise<Progress> {
  const { startProgress } = await import('../observe/progress.ts')
  return startProgress({
    name,
    stats: () => run.stats(),
    tally: run.tally,
    stream: process.stderr,
    startedAtMs: run.startedAtMs,
    pagesMax: run.limits.pages,
  })
}

async function report(record: RunRecord, { isQuiet, isJson, config }: RunHereRequest): Promise<void> {
  if (isJson) printJson(record)
  else if (isQuiet) {
    if (record.exitCode !== 0) note(`${record.scraper} ${record.state}: ${record.reason}`)
  } else {
    const { out } = config.values
    const { summaryText } = await import('../observe/summary.ts')
    const text = summaryText(record, {
      paint: paintFor(process.stdout),
      columns: process.stdout.columns ?? 100,
      ...(out === 'runs' ? {} : { out }),
    })
    print(text)
  }
}

function runToResume(out: string, scraper: string, word: string | true): RunFolder {
  if (word !== true) return findRun(out, word)
  const unfinished = listRuns(out, scraper).find((folder) => !isComplete(folder.readRecord() ?? { state: 'running' }))
  if (unfinished !== undefined) return unfinished
  throw new ScrapeError('E_RUN_NOT_FOUND', `no unfinished run of "${scraper}" under ${out}`, {
    fix: 'Start a new one without --resume.',
  })
}

/** First signal: drain. Second Ctrl-C: exit at once; nothing committed is lost. */
function stopOnSignals(run: Run, say: (line: string) => void): () => void {
  let count = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (++count > 1 && signal === 'SIGINT') process.exit(130)
    say(
      `${signal}: finishing pages in flight; continue later with --resume${signal === 'SIGINT' ? ' (Ctrl-C again to leave at once)' : ''}`,
    )
    run.stop(`${signal} received`)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return () => {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}
