/** `sluice collect`: stores the results of the task protocol, so that `ps`, `stats` and `export` show them. */
import type { Command } from 'commander'
import { addOptions, configOf } from './flags.ts'
import { addReadFlags, note, printJson, type ReadFlags } from './output.ts'

interface CollectFlags extends ReadFlags {
  prefix: string
  once?: boolean
}

const HELP = `
Each task becomes a run in the store, under its task id: sluice export TASK_ID. Several collectors may share the work.

Examples:
  SLUICE_REDIS=redis://cache SLUICE_STORE=postgres://sluice@db/sluice sluice collect
  sluice collect --frontier redis://cache --once          store what is there now, then stop`

export function defineCollect(program: Command): void {
  const command = program
    .command('collect')
    .description('store results of the task protocol until stopped')
    .option('--once', 'stop when no results are left')
    .option('--prefix <text>', 'prefix of all stream names', '')
    .addHelpText('after', HELP)
    .action(async (flags: CollectFlags) => {
      process.exitCode = await collect(flags)
    })
  addOptions(addReadFlags(command, 'the stored results'), ['frontier', 'redis', 'store'])
}

async function collect(flags: CollectFlags): Promise<number> {
  const [{ openResultStore }, { protocolRedis }, { collectResults }, { newWorkerId }, { withoutPassword }] =
    await Promise.all([
      import('../app/protocol/result-store.ts'),
      import('../app/protocol/protocol-place.ts'),
      import('../protocol/collect.ts'),
      import('../app/fleet/join-run.ts'),
      import('../runs/run-identity.ts'),
    ])
  const { values } = await configOf(flags as unknown as Record<string, unknown>)
  const redisUrl = protocolRedis(values)
  await using store = await openResultStore(values)
  const done = { stored: 0, known: 0, refused: 0, items: 0 }
  const say = (line: string) => void (flags.quiet || note(`${line}`))
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await collectResults(
      {
        redisUrl,
        prefix: flags.prefix,
        store,
        collectorId: newWorkerId(),
        place: withoutPassword(redisUrl),
        isOnce: flags.once === true,
        onResult({ jobs_data, items }, stored) {
          if (stored === 'passed over') return
          done[stored]++
          if (stored === 'stored') done.items += jobs_data.length + items.length
        },
        onRefused({ id }, reason) {
          done.refused++
          say(`result ${id} is refused: ${reason}`)
        },
        onOutage: say,
      },
      stop.signal,
    )
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  }
  if (flags.json) printJson(done)
  else
    say(`${done.stored} results with ${done.items} items stored, ${done.known} known before, ${done.refused} refused`)
  return stop.signal.aborted ? 4 : 0
}
