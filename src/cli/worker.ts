/** `sluice worker`: one of many that work on a run of a fleet, on any machine that reaches its database. */
import type { Command } from 'commander'
import type { LoadedScraper } from '../app/author/load-scraper.ts'
import type { Config } from '../app/config.ts'
import type { FleetWorker, FleetWorkerEnd } from '../app/fleet/fleet-worker.ts'
import { exitCodeOfClass } from '../core/errors.ts'
import { addOptions, configOf, RUN_OPTIONS } from './flags.ts'
import { printJson } from './output.ts'
import { addTypeFlags, type TypeFlags, workOnType } from './worker-type.ts'

interface WorkerFlags extends TypeFlags {
  scraper?: string
  runId?: string
  batchSize: string
  forever?: boolean
  tor?: boolean
  json?: boolean
  quiet?: boolean
}

const HELP = `
Every worker of a run is the same command; start as many as you like. SIGTERM finishes or hands back what it holds.

Examples:
  SLUICE_FRONTIER=postgres://sluice@db/sluice sluice worker --scraper books --run-id 20261115_113501_x7k2
  SLUICE_FRONTIER=redis://cache SLUICE_STORE=postgres://sluice@db/sluice sluice worker --scraper books
  SLUICE_FRONTIER=amqp://mq SLUICE_REDIS=redis://cache SLUICE_STORE=postgres://sluice@db/sluice sluice worker --scraper books
  sluice worker --scraper books --forever             takes every run of this scraper, one after the other
  sluice worker --type indeed --concurrency 50 --instances 4 --frontier redis://cache
                                                      takes tasks of the task protocol from Redis streams, until it is stopped`

/** Options of a run that a worker does not decide. */
const NOT_OURS = new Set(['format', 'sink', 'processes', 'formulaSafe', 'failAt', 'time'])
const NEXT_RUN_MS = 2_000

export function defineWorker(program: Command): void {
  const command = program
    .command('worker')
    .description('work on a distributed run together with others, until nothing is left')
    .option('--scraper <name>', 'the scraper: its name, or a file that exports one')
    .option('--run-id <run>', 'the run; default: the newest one of this scraper that is going on')
    .option('--batch-size <N>', 'tasks claimed at once', '50')
    .option('--forever', 'stay when the queue is empty, and go on with the next run')
    .option('--tor', 'fetch through a Tor daemon of its own (Debian’s package tor)')
    .option('--json', 'print how it ended as JSON')
    .option('--quiet', 'print nothing but errors')
    .option('-v, --verbose', 'show stacks of errors')
    .addHelpText('after', HELP)
    .action(async (flags: WorkerFlags) => {
      process.exitCode = await worker(flags)
    })
  addTypeFlags(command)
  addOptions(
    command,
    RUN_OPTIONS.filter((name) => !NOT_OURS.has(name)),
  )
}

async function worker(flags: WorkerFlags): Promise<number> {
  const [{ loadScraper }, { ScrapeError }] = await Promise.all([
    import('../app/author/load-scraper.ts'),
    import('../core/errors.ts'),
  ])
  const config = await configOf(flags as unknown as Record<string, unknown>)
  const batchSize = Number(flags.batchSize)
  if (!Number.isSafeInteger(batchSize) || batchSize < 1 || batchSize > 10_000)
    throw new ScrapeError('E_USAGE', `--batch-size takes a whole number from 1 to 10000, got ${flags.batchSize}`)
  const { proxy, proxies } = config.values
  if (flags.tor && (proxy !== undefined || proxies !== undefined))
    throw new ScrapeError('E_USAGE', '--tor and --proxy are two ways out: choose one of them')
  const signals = listenForSignals({ isSecondTermFinal: flags.type !== undefined })
  if (flags.type !== undefined) return await workOnType({ flags, config, batchSize, signals }).finally(signals.unhook)
  if (flags.scraper === undefined)
    throw new ScrapeError('E_USAGE', 'a worker needs to know what it works on', {
      fix: '--scraper NAME for the runs of a fleet, --type NAME for tasks of the task protocol.',
    })
  const loaded = await loadScraper(flags.scraper)
  try {
    for (;;) {
      const end = await oneRun(flags, loaded, config, batchSize, signals)
      const mayGoOn = flags.forever && flags.runId === undefined && !signals.isStopped()
      if (end !== undefined && !mayGoOn) return exitCodeOf(end)
      // Whatever ended it may still be so: only a finished run is left at once for the next.
      if (end?.end.how !== 'finished') await signals.sleep(NEXT_RUN_MS)
      if (signals.isStopped()) return 4
    }
  } finally {
    signals.unhook()
  }
}

/** Undefined when there is no run to join and the worker is one that waits. */
async function oneRun(
  flags: WorkerFlags,
  loaded: LoadedScraper,
  config: Config,
  batchSize: number,
  signals: ReturnType<typeof listenForSignals>,
): Promise<FleetWorkerEnd | undefined> {
  const [{ joinRun }, { ScrapeError }, { startProgress }, { redactText }, { printable, self }] = await Promise.all([
    import('../app/fleet/join-run.ts'),
    import('../core/errors.ts'),
    import('../observe/progress.ts'),
    import('../observe/redact.ts'),
    import('../observe/terminal.ts'),
  ])
  const isQuiet = flags.quiet === true || flags.json === true
  let progress: ReturnType<typeof startProgress> | undefined
  const say = (line: string) => (progress === undefined ? process.stderr.write(`${line}\n`) : progress.print(line))
  let joined: FleetWorker
  try {
    joined = await joinRun({
      loaded,
      config,
      batchSize,
      isForever: flags.forever === true && flags.runId !== undefined,
      useTor: flags.tor === true,
      ...(flags.runId === undefined ? {} : { runId: flags.runId }),
      onEvent: (event) => {
        if (event.type === 'log' && event.level !== 'debug' && !isQuiet) say(printable(redactText(event.message)))
      },
    })
  } catch (error) {
    if (flags.forever && flags.runId === undefined && error instanceof ScrapeError && error.code === 'E_RUN_NOT_FOUND')
      return undefined
    throw error
  }
  if (!isQuiet) say(`worker ${joined.id} on run ${joined.runId}`)
  progress = startProgress({
    name: loaded.scraper.name,
    stats: () => joined.stats(),
    tally: joined.tally,
    stream: process.stderr,
    startedAtMs: joined.startedAtMs,
    ...(isQuiet ? { mode: 'none' as const } : {}),
  })
  signals.onStop((reason) => {
    if (!isQuiet) say(`${reason}: finishing what is in flight, handing the rest back`)
    joined.stop(reason)
  })
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
  flags: WorkerFlags,
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
    process.stdout.write(
      `worker ${worker.id} ${end.how}${why}\n` +
        `  this worker  ${pages.ok} pages, ${pages.failed} failed, ${items.new} items\n` +
        // Its other numbers are added up from reports that the others may not have made yet: each of us would say something else.
        `  the run      ${record.state}, ${record.pages.remaining} left; all its numbers: ${self()} stats ${worker.runId}\n`,
    )
  } else if (end.how === 'halted') process.stderr.write(`worker ${worker.id} halted: ${end.error.message}\n`)
}

function exitCodeOf({ end, record }: FleetWorkerEnd): number {
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

export type Signals = ReturnType<typeof listenForSignals>

/**
 * First signal: drain. Second Ctrl-C: leave at once; nothing committed is lost. A second SIGTERM only where nobody passes signals on:
 * a worker of an autoscaler gets the one to the group, and the one from its parent.
 */
function listenForSignals({ isSecondTermFinal }: { isSecondTermFinal: boolean }) {
  let reason: string | undefined
  let stop: ((reason: string) => void) | undefined
  const stopped = Promise.withResolvers<void>()
  const onSignal = (signal: NodeJS.Signals) => {
    if (reason !== undefined && signal === 'SIGINT') process.exit(130)
    if (reason !== undefined && isSecondTermFinal) process.exit(143)
    reason = `${signal} received`
    stopped.resolve()
    stop?.(reason)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    isStopped: () => reason !== undefined,
    onStop(listener: (reason: string) => void) {
      stop = listener
      if (reason !== undefined) listener(reason)
    },
    async sleep(ms: number) {
      let timer: NodeJS.Timeout | undefined
      await Promise.race([stopped.promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))])
      clearTimeout(timer)
    },
    unhook() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
