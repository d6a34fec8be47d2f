/** `sluice start`: the orchestrator's command. Runs a scraper here, or creates a fleet run and says how workers join it. */
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { LoadedScraper } from '../config/load-scraper.ts'
import { flagName, type OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { addArgs, addOptions, argsOf, configOf, RUN_OPTIONS } from './flags.ts'
import { note, print, printJson, shellWord } from './output.ts'
import { workerPlaces } from './run-place.ts'

interface StartFlags {
  mode?: string
  arg?: string[]
  site?: string
  urlsFile?: string
  resume?: string | true
  fresh?: boolean
  json?: boolean
  quiet?: boolean
}

const HELP = `
Examples:
  sluice start books                                       where the scraper says: here, or for a fleet
  sluice start books --mode distributed --frontier postgres://sluice@db/sluice
  sluice start books --mode distributed --frontier redis://cache --store postgres://sluice@db/sluice
  sluice start books --mode distributed --frontier amqp://mq --redis redis://cache --store postgres://sluice@db/sluice
  sluice start books --mode distributed --urls-file urls.txt --json
  sluice start books --mode distributed --region eu        only workers with --region eu take it
  sluice start books --resume                              resume the latest unfinished run`

export function defineStart(program: Command): void {
  const command = program
    .command('start <scraper>')
    .description('run a scraper on this machine (single), or create a run for workers on any machine (distributed)')
    .option('--mode <single|distributed>', 'override the mode of the scraper')
    .option(
      '--urls-file <FILE>',
      'queue these URLs, one per line, instead of the scraper’s start pages (- is standard input)',
    )
    .option('--resume [run]', 'resume a run: its id, or the latest unfinished run of this scraper')
    .option('--fresh', 'start a new run even if one is unfinished')
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (name: string, flags: StartFlags) => {
      process.exitCode = await start(name, flags)
    })
  addArgs(command)
  addOptions(command, RUN_OPTIONS)
}

async function start(name: string, flags: StartFlags): Promise<number> {
  const [{ loadScraper }, { argumentNames }] = await Promise.all([
    import('../config/load-scraper.ts'),
    import('../config/scraper-arguments.ts'),
  ])
  const config = await configOf(flags as Record<string, unknown>)
  const loaded = await loadScraper(name)
  const args = argsOf(flags, argumentNames(loaded.scraper))
  const mode = flags.mode ?? (await modeOfRun(flags, config)) ?? loaded.scraper.mode ?? 'single'
  if (flags.resume !== undefined && flags.fresh)
    throw new ScrapeError('E_USAGE', '--resume continues a run, --fresh starts a new one: choose one')
  if (mode === 'distributed') return await startForFleet(name, loaded, args, config, flags)
  if (mode !== 'single')
    throw new ScrapeError('E_USAGE', `--mode takes single or distributed, got ${JSON.stringify(mode)}`)
  if (config.origins.region.startsWith('flag '))
    throw new ScrapeError('E_USAGE', '--region chooses among the workers of a fleet; a single run works here', {
      fix: 'Add --mode distributed, or omit it.',
    })
  if (flags.urlsFile !== undefined)
    throw new ScrapeError('E_USAGE', '--urls-file fills the queue of a fleet; a single run starts by itself', {
      fix: 'Add --mode distributed, or omit it.',
    })
  const { runHere } = await import('./run-here.ts')
  return await runHere({
    ...loaded,
    source: name,
    config,
    args,
    resume: flags.resume,
    isQuiet: flags.quiet === true || flags.json === true,
    isJson: flags.json === true,
  })
}

/** A run in the store is a fleet run, whatever the scraper says. */
async function modeOfRun({ resume }: StartFlags, { values }: Config): Promise<'distributed' | undefined> {
  const { openStore, storeUrlOf } = await import('../runs/fleet-places.ts')
  if (typeof resume !== 'string' || storeUrlOf(values) === undefined) return undefined
  await using store = await openStore(values)
  return (await store.findRun(resume))?.record.id === resume ? 'distributed' : undefined
}

/** Options that do not apply to a fleet run: each worker has its own, or there are no files to write. */
const NOT_CARRIED: readonly OptionName[] = [
  'proxy',
  'proxies',
  'identity',
  'identityStrategy',
  'sites',
  'format',
  'sink',
  'formulaSafe',
  'metrics',
  'processes',
  'cacheStore',
]

function refuseNotCarried({ origins }: Config): void {
  const given = NOT_CARRIED.filter((name) => origins[name].startsWith('flag '))
  if (given.length === 0) return
  throw new ScrapeError('E_USAGE', `a run for a fleet does not take ${given.map(flagName).join(', ')}`, {
    fix: 'Give it to each worker, or to `sluice export` for files; or run here with --mode single.',
  })
}

async function startForFleet(
  name: string,
  loaded: LoadedScraper,
  args: Record<string, unknown>,
  config: Config,
  flags: StartFlags,
): Promise<number> {
  const [{ startDistributed, workerCommand }, fleet, look, { createEventBus }, { urlLines }, { plural }, { self }] =
    await Promise.all([
      import('../app/fleet/start-distributed.ts'),
      import('../runs/fleet-places.ts'),
      import('../runs/open-run.ts'),
      import('../core/events.ts'),
      import('../sources/file.ts'),
      import('./style.ts'),
      import('../observe/terminal.ts'),
    ])
  const fileNote = look.storeFileNote(fleet.storeUrlOf(config.values))
  refuseNotCarried(config)
  const stop = new AbortController()
  const onSignal = () => stop.abort(new ScrapeError('E_STOPPED', 'stopped while the queue was being filled'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const bus = createEventBus()
  const say = (line: string) => note(`${line}`)
  if (!flags.quiet)
    bus.on((event) => {
      if (event.type === 'log' && event.level !== 'debug') say(event.message)
    })
  const started = await startDistributed({
    loaded,
    source: name,
    args,
    config,
    bus,
    stop: stop.signal,
    ...(flags.urlsFile === undefined ? {} : { urls: urlLines(flags.urlsFile, stop.signal) }),
    ...(flags.resume === undefined ? {} : { resume: flags.resume }),
  })
  const command = [self(), ...workerCommand(name, started), ...workerPlaces(config)].map(shellWord).join(' ')
  if (flags.json)
    printJson({ status: started.status, run_id: started.runId, enqueued: started.enqueued, worker_command: command })
  else if (!flags.quiet) {
    print(
      `${loaded.scraper.name} ${started.runId} is ${started.status}: ${plural(started.enqueued, 'URL')} in the queue`,
    )
    const where = fileNote === undefined ? 'any machine that reaches the database' : 'this machine'
    print(`  now start workers, as many as you like, on ${where}:\n  ${command}`)
  }
  if (!flags.quiet) {
    if (fileNote !== undefined) say(`note: ${fileNote}`)
    if (started.refused > 0) {
      say(`${plural(started.refused, 'line')} of ${flags.urlsFile} not queued:`)
      for (const problem of started.problems) say(`  ${problem}`)
    }
    if (started.unfinished !== undefined && !flags.fresh)
      say(`note: run ${started.unfinished} of ${name} is unfinished; --resume would have gone on with it`)
  }
  return 0
}
