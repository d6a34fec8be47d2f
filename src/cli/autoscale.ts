/** `sluice autoscale`: runs as many workers as the queue needs, on this machine or through a command. */
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { ScalePolicy } from '../fleet/autoscale.ts'
import type { AutoscaleLine, Crew } from '../fleet/autoscale-loop.ts'
import type { Store } from '../store/contract.ts'
import { addOptions, configOf } from './flags.ts'
import { note, print, shellWord } from './output.ts'

interface AutoscaleFlags {
  scraper: string
  runId?: string
  min: string
  max: string
  perWorker: string
  cooldown: string
  interval: string
  exec?: string
  print?: boolean
  forever?: boolean
  json?: boolean
  quiet?: boolean
}

const HELP = `
It only counts the workers it started itself, so you can run one on every machine. If --max is not enough for all runs, they
share it fairly; a paused run gets none. Flags after -- are passed to every worker.

Examples:
  sluice autoscale --scraper books --max 4
  sluice autoscale --scraper books --run-id 20261115_113501_x7k2 -- --concurrency 8 --batch-size 100
  sluice autoscale --scraper books --forever --exec 'docker compose --profile full up -d --no-recreate --no-deps --scale worker={n} worker'`

export function defineAutoscale(program: Command): void {
  const command = program
    .command('autoscale [worker-flag...]')
    .description('start and drain workers depending on the queue length')
    .requiredOption('--scraper <name>', 'the scraper whose runs to scale')
    .option('--run-id <run>', 'only this run; default: every active run of the scraper')
    .option('--min <N>', 'minimum number of workers', '0')
    .option('--max <N>', 'maximum number of workers', '8')
    .option('--per-worker <N>', 'pending pages that keep one worker busy', '1000')
    .option('--cooldown <TIME>', 'minimum time between two changes of a run in the same direction', '30s')
    .option('--interval <TIME>', 'time between two checks', '5s')
    .option(
      '--exec <COMMAND>',
      'run this command when the number changes ({n} is the number) instead of starting processes',
    )
    .option('--print', 'print what would be started, and do nothing')
    .option('--forever', 'keep running when all runs are finished')
    .option('--json', 'print one line of JSON for each decision')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (workerFlags: string[], flags: AutoscaleFlags) => {
      process.exitCode = await autoscaleCommand(workerFlags, flags)
    })
  addOptions(command, ['out', 'frontier', 'store', 'redis', 'region', 'drainTimeout'])
}

async function autoscaleCommand(workerFlags: string[], flags: AutoscaleFlags): Promise<number> {
  const [{ autoscale }, { openStore }, { openQueueToLook }] = await Promise.all([
    import('../fleet/autoscale-loop.ts'),
    import('../runs/fleet-places.ts'),
    import('../runs/queue-view.ts'),
  ])
  const { policy, intervalMs } = await policyOf(flags)
  const config = await configOf(flags as unknown as Record<string, unknown>)
  await using store = await openStore(config.values)
  const say = (line: string) => void (flags.quiet || note(`${line}`))
  const crew = await crewOf({ flags, workerFlags, policy, config, store, say })
  const stop = stopOnSignals(say)
  try {
    const end = await autoscale(
      {
        store,
        openQueue: (run) => openQueueToLook(config.values, run, store),
        scraper: flags.scraper,
        region: config.values.region,
        ...(flags.runId === undefined ? {} : { runId: flags.runId }),
        policy,
        intervalMs,
        isForever: flags.forever === true,
        crew,
        onDecision: (decision) => show(decision, flags, say),
        onTrouble: say,
      },
      stop.signal,
    )
    if (end === 'finished') say(`all runs of ${flags.scraper} that were looked after are over`)
    return end === 'finished' ? 0 : 4
  } finally {
    stop.unhook()
  }
}

async function policyOf(flags: AutoscaleFlags): Promise<{ policy: ScalePolicy; intervalMs: number }> {
  const [{ parseDurationMs }, { ScrapeError }] = await Promise.all([
    import('../core/options.ts'),
    import('../core/errors.ts'),
  ])
  const problems: string[] = []
  const whole = (name: string, text: string, min: number, max: number) => {
    const value = Number(text)
    if (!Number.isSafeInteger(value) || value < min || value > max)
      problems.push(`--${name} takes a whole number from ${min} to ${max}, got ${JSON.stringify(text)}`)
    return value
  }
  const time = (name: string, text: string, minMs: number) => {
    const ms = parseDurationMs(text)
    if (!(ms >= minMs && ms <= 86_400_000))
      problems.push(`--${name} takes a time such as 30s, from ${minMs} ms to a day, got ${JSON.stringify(text)}`)
    return ms
  }
  const policy = {
    min: whole('min', flags.min, 0, 256),
    max: whole('max', flags.max, 1, 256),
    perWorker: whole('per-worker', flags.perWorker, 1, 1e9),
    cooldownMs: time('cooldown', flags.cooldown, 0),
  }
  const intervalMs = time('interval', flags.interval, 100)
  if (policy.min > policy.max) problems.push(`--min ${policy.min} is more than --max ${policy.max}`)
  if (problems.length === 0) return { policy, intervalMs }
  throw new ScrapeError('E_USAGE', `${problems.length === 1 ? 'a flag is' : 'flags are'} not usable`, {
    notes: problems,
  })
}

interface CrewParts {
  flags: AutoscaleFlags
  workerFlags: string[]
  policy: ScalePolicy
  config: Config
  store: Store
  say: (line: string) => void
}

async function crewOf({ flags, workerFlags, policy, config, store, say }: CrewParts): Promise<Crew> {
  const { region } = config.values
  const words = ['worker', '--scraper', flags.scraper, ...(region === undefined ? [] : ['--region', region])]
  if (flags.exec !== undefined || flags.print) {
    const [{ CommandCrew }, { self }] = await Promise.all([
      import('../app/fleet/autoscale-command.ts'),
      import('../observe/terminal.ts'),
    ])
    const run = flags.runId === undefined ? [] : ['--run-id', flags.runId]
    const worker = [self(), ...words, ...run, ...workerFlags].map(shellWord).join(' ')
    return new CommandCrew({
      template: flags.exec ?? `{n} × ${worker}`,
      ...(flags.print ? { print: flags.json ? () => {} : print } : {}),
      store,
      scraper: flags.scraper,
      runId: flags.runId,
      onTrouble: say,
    })
  }
  const [{ ProcessCrew, workerEnv }, { printable }] = await Promise.all([
    import('../app/fleet/autoscale-processes.ts'),
    import('../observe/terminal.ts'),
  ])
  return new ProcessCrew({
    command: [process.execPath, ...process.execArgv, process.argv[1]!, ...words],
    workerArgs: ['--quiet', ...workerFlags],
    env: workerEnv(config.values),
    processesMax: policy.max,
    restMs: policy.cooldownMs,
    drainMs: config.values.drainTimeout,
    onLine: (line) => say(printable(line)),
  })
}

const REASONS_SHOWN_MAX = 5

/** There is one reason per run: with a hundred runs, the line would be unreadable. */
export function shortened(why: string): string {
  const reasons = why.split('; ')
  const more = reasons.length - REASONS_SHOWN_MAX
  return more <= 0 ? why : `${reasons.slice(0, REASONS_SHOWN_MAX).join('; ')}; … and ${more} more`
}

function show(
  { target, needed, pending, workers, isChanged, why, runs, done }: AutoscaleLine,
  flags: AutoscaleFlags,
  say: (line: string) => void,
): void {
  if (flags.json)
    print(
      JSON.stringify({
        at: new Date().toISOString(),
        scraper: flags.scraper,
        pending,
        needed,
        target,
        workers,
        isChanged,
        why,
        done,
        runs: runs.map(({ runId, ...run }) => ({ run: runId, ...run })),
      }),
    )
  else if (!flags.print && (isChanged || done.length > 0))
    say(
      `${pending} pending: ${target} ${target === 1 ? 'worker' : 'workers'} (${shortened(why)})${done.map((one) => `\n  ${one}`).join('')}`,
    )
}

/** First signal: drain. Second Ctrl-C: exit at once; the workers end by themselves. */
function stopOnSignals(say: (line: string) => void) {
  const stop = new AbortController()
  const onSignal = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted && signal === 'SIGINT') process.exit(130)
    say(`${signal}: draining the workers`)
    stop.abort(new Error(`${signal} received`))
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    signal: stop.signal,
    unhook() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
