/** `sluice worker`: one of many workers on the runs of a fleet, on any machine that can reach its database. */
import type { Command } from 'commander'
import { addOptions, collect, configOf, RUN_OPTIONS } from './flags.ts'
import { note } from './output.ts'
import type { RunFlags, WorkerProcess } from './worker-run.ts'
import { listenForSignals } from './worker-signals.ts'
import { addTypeFlags, type TypeFlags, workOnType } from './worker-type.ts'

interface WorkerFlags extends Omit<TypeFlags, 'scraper'>, RunFlags {
  scraper?: string[]
  batchSize: string
  only?: string
}

const HELP = `
All workers of a run use the same command; start as many as you like. On SIGTERM a worker finishes or returns its tasks.
With several --scraper, with none, or with --forever it takes the run that needs it most, and moves on when other runs have
no worker. A scraper that does not load here only delays its own runs, by a minute.
With --metrics, /metrics and /healthz respond from start to end, also with --type: 200, or 503 with the reason while it drains or when
its store or queue has been unreachable for more than 60 s.

Examples:
  SLUICE_FRONTIER=postgres://sluice@db/sluice sluice worker --scraper books --run-id 20261115_113501_x7k2
  SLUICE_FRONTIER=redis://cache SLUICE_STORE=postgres://sluice@db/sluice sluice worker --scraper books
  SLUICE_FRONTIER=amqp://mq SLUICE_REDIS=redis://cache SLUICE_STORE=postgres://sluice@db/sluice sluice worker --scraper books
  sluice worker --scraper books --forever             takes every run of this scraper, one after the other
  sluice worker --forever --metrics 0.0.0.0:9090      takes runs of every scraper that is known here
  sluice worker --scraper books --scraper jobs --forever
  sluice worker --forever --only files                stores files, and leaves pages to others (--only pages)
  sluice worker --forever --region eu                 takes runs started with --region eu, and those that name none
  sluice worker --type indeed --concurrency 50 --instances 4 --frontier redis://cache
                                                      takes tasks of the task protocol from Redis streams until stopped`

/** Options of a run that a worker does not set. */
const NOT_OURS = new Set(['format', 'sink', 'processes', 'formulaSafe', 'failAt', 'time'])

export function defineWorker(program: Command): void {
  const command = program
    .command('worker')
    .description('work on distributed runs until the queue is empty')
    .option(
      '--scraper <name>',
      'the scraper: a name, or a file that exports one (may be repeated); default: every scraper known here',
      collect,
    )
    .option('--run-id <run>', 'the run; default: the latest active run of this scraper')
    .option('--batch-size <N>', 'tasks claimed at once', '50')
    .option('--forever', 'keep running when the queue is empty, and take the next run')
    .option('--only <pages|files>', 'only fetch pages, or only download files')
    .option('--tor', 'fetch through its own Tor daemon (needs the Debian package tor)')
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
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
  const { ScrapeError } = await import('../core/errors.ts')
  const config = await configOf(flags as unknown as Record<string, unknown>)
  const batchSize = Number(flags.batchSize)
  if (!Number.isSafeInteger(batchSize) || batchSize < 1 || batchSize > 10_000)
    throw new ScrapeError('E_USAGE', `--batch-size takes a whole number from 1 to 10000, got ${flags.batchSize}`)
  const { proxy, proxies } = config.values
  if (flags.tor && (proxy !== undefined || proxies !== undefined))
    throw new ScrapeError('E_USAGE', '--tor and --proxy are two ways out: choose one of them')
  const { scraper: scrapers = [], ...rest } = flags
  const { type } = flags
  const only = await partOf(flags)
  const signals = listenForSignals({ isSecondTermFinal: type !== undefined })
  try {
    if (type === undefined && flags.runId !== undefined && scrapers.length !== 1)
      throw new ScrapeError('E_USAGE', '--run-id names one run: name its scraper with one --scraper')
    const { openVitals } = await import('../app/fleet/worker-vitals.ts')
    const say = (line: string) => void (flags.quiet || flags.json || note(`${line}`))
    const { metrics: address, region, out: disk } = config.values
    await using vitals = await openVitals({ address, region, type, disk, say: (_, line) => say(line) })
    using _ = signals.onStop(vitals.drain)
    if (type !== undefined)
      return await workOnType({ flags: { ...rest, ...namedOne(scrapers) }, config, batchSize, signals, vitals })
    const place: WorkerProcess = { flags, config, batchSize, only, signals, vitals }
    if (scrapers.length === 1 && (flags.runId !== undefined || !flags.forever)) {
      const { workOnScraper } = await import('./worker-run.ts')
      return await workOnScraper(scrapers[0]!, place)
    }
    const { workOnAny } = await import('./worker-any.ts')
    return await workOnAny(scrapers, place)
  } finally {
    signals.unhook()
  }
}

const namedOne = ([scraper]: readonly string[]) => (scraper === undefined ? {} : { scraper })

async function partOf({ only, type }: WorkerFlags) {
  const [{ ScrapeError }, { WORK_PARTS }] = await Promise.all([
    import('../core/errors.ts'),
    import('../store/contract.ts'),
  ])
  const part = WORK_PARTS.find((one) => one === only)
  if (only !== undefined && type !== undefined)
    throw new ScrapeError('E_USAGE', '--only is for the runs of a fleet: omit it, or --type')
  if (only !== undefined && part === undefined)
    throw new ScrapeError('E_USAGE', `--only takes ${WORK_PARTS.join(' or ')}, got ${JSON.stringify(only)}`)
  return part
}
