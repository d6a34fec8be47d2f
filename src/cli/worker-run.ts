/** A worker on one run: joins it, shows progress, reports how it ended. */

import type { FleetWorker, FleetWorkerEnd } from '../app/fleet/fleet-worker.ts'
import type { Vitals } from '../app/fleet/worker-vitals.ts'
import type { Config } from '../config/config.ts'
import type { LoadedScraper } from '../config/load-scraper.ts'
import { exitCodeOfClass } from '../core/errors.ts'
import type { WorkPart } from '../store/contract.ts'
import { note, print, printJson } from './output.ts'
import type { Signals } from './worker-signals.ts'

export interface RunFlags {
  runId?: string
  forever?: boolean
  tor?: boolean
  json?: boolean
  quiet?: boolean
}

/** What applies to all runs of a process. */
export interface WorkerProcess {
  flags: RunFlags
  config: Config
  batchSize: number
  only: WorkPart | undefined
  signals: Signals
  vitals: Vitals
}

/** Works on the named run, or the newest one of this scraper. */
export async function workOnScraper(name: string, place: WorkerProcess): Promise<number> {
  const { loadScraper } = await import('../config/load-scraper.ts')
  return exitCodeOf(await workOnRun(await loadScraper(name), place.flags.runId, place))
}

/** `whileAtWork` is called with the worker once it has joined; the returned object is disposed of when the worker ends. */
export async function workOnRun(
  loaded: LoadedScraper,
  runId: string | undefined,
  { flags, config, batchSize, only, signals, vitals }: WorkerProcess,
  whileAtWork?: (worker: FleetWorker) => Disposable,
): Promise<FleetWorkerEnd> {
  const [{ joinRun }, { startProgress }, { printable, self }] = await Promise.all([
    import('../app/fleet/join-run.ts'),
    import('../observe/progress.ts'),
    import('../observe/terminal.ts'),
  ])
  const isQuiet = flags.quiet === true || flags.json === true
  let progress: ReturnType<typeof startProgress> | undefined
  const say = (line: string) => (progress === undefined ? note(`${line}`) : progress.print(line))
  const joined = await joinRun({
    loaded,
    config,
    batchSize,
    only,
    vitals,
    isForever: flags.forever === true && flags.runId !== undefined,
    keepsWaiting: flags.forever === true,
    useTor: flags.tor === true,
    ...(runId === undefined ? {} : { runId }),
    onEvent: (event) => {
      if (event.type === 'log' && event.level !== 'debug' && !isQuiet) say(printable(event.message))
    },
  })
  if (!isQuiet) say(`worker ${joined.id} on run ${joined.runId}`)
  progress = startProgress({
    name: loaded.scraper.name,
    stats: () => joined.stats(),
    tally: joined.tally,
    stream: process.stderr,
    startedAtMs: joined.startedAtMs,
    ...(isQuiet ? { mode: 'none' as const } : {}),
  })
  using _stopping = signals.onStop((reason) => {
    if (!isQuiet) say(`${reason}: finishing pages in flight, returning the rest`)
    joined.stop(reason)
  })
  using _watching = whileAtWork?.(joined)
  let end: FleetWorkerEnd
  try {
    end = await joined.result
  } finally {
    await progress.stop()
  }
  report(joined, end, flags, self)
  return end
}

function report(
  worker: FleetWorker,
  { end, reason, record }: FleetWorkerEnd,
  flags: RunFlags,
  self: () => string,
): void {
  const { pages, items } = worker.tally.snapshot()
  if (flags.json)
    printJson({
      worker: worker.id,
      run_id: worker.runId,
      end: end.how,
      reason: end.how === 'halted' ? end.error.message : (reason ?? null),
      pages: pages.ok,
      failed: pages.failed,
      items: items.new,
      run: { state: record.state, reason: record.reason, remaining: record.pages.remaining },
    })
  else if (!flags.quiet) {
    const why =
      end.how === 'halted' ? `: ${end.error.code} ${end.error.message}` : reason === undefined ? '' : `: ${reason}`
    print(
      `worker ${worker.id} ${end.how}${why}\n` +
        `  this worker  ${pages.ok} pages, ${pages.failed} failed, ${items.new} items\n` +
        // The other figures are added up from reports that other workers may not have sent yet: each worker would print different
        // ones.
        `  the run      ${record.state}, ${record.pages.remaining} left; all its numbers: ${self()} stats ${worker.runId}\n`,
    )
  } else if (end.how === 'halted') note(`worker ${worker.id} halted: ${end.error.message}`)
}

export function exitCodeOf({ end, record }: FleetWorkerEnd): number {
  switch (end.how) {
    case 'finished':
      return record.exitCode ?? 0
    case 'stopped':
    case 'limit':
      return 4
    case 'halted':
      return exitCodeOfClass(end.error.class)
    default:
      return end satisfies never
  }
}
