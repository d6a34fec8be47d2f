/** `sluice watch`: follows a run, local or on a hundred machines. Watching does not slow the run down. */
import type { Command } from 'commander'
import { ScrapeError } from '../core/errors.ts'
import { addReadFlags, print, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, withRun } from './run-place.ts'
import type { Look } from './watch-screen.ts'

type WatchFlags = ReadFlags & PlaceFlags

const HELP = `${RUN_HELP} Ends with the run, or with Ctrl-C, which does not affect the run.

Examples:
  sluice watch books
  sluice watch 20261115_113501_x7k2 --json`

/** Also the redraw interval on a terminal: well below five per second. */
const LOOK_MS = 500

export function defineWatch(program: Command): void {
  const command = program
    .command('watch [run]')
    .description('follow a run live, until it ends')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: WatchFlags) => {
      process.exitCode = await watch(run, flags)
    })
  addReadFlags(command, 'one line per second')
  addPlaces(command)
}

async function watch(word: string | undefined, flags: WatchFlags): Promise<number> {
  const [
    { averageRate, pagesSettled, runStats },
    { whyStill },
    { createRateMeter },
    { statsText },
    { createStopper },
    { createScreen },
  ] = await Promise.all([
    import('../runs/run-numbers.ts'),
    import('../runs/run-list.ts'),
    import('./rate-meter.ts'),
    import('./stats-text.ts'),
    import('./stopper.ts'),
    import('./watch-screen.ts'),
  ])
  return await withRun(word, flags, async (place) => {
    const { run } = place
    using stopper = createStopper()
    using screen = await createScreen(flags)
    const meter = createRateMeter()
    const look = async (): Promise<Look> => {
      await run.refresh()
      await run.askBroker()
      const numbers = await runStats(run)
      const rate = meter.rate(pagesSettled(run, numbers)) ?? averageRate(run, numbers)
      return { run, numbers, rate, why: await whyStill(run, numbers) }
    }
    for (let last = await look(); ; last = await look().catch((error) => asBefore(last, error))) {
      screen.show(last)
      if (run.isOver || stopper.isStopped) {
        screen.clear()
        const { numbers } = last
        if (!flags.json && !flags.quiet)
          print(statsText({ place, numbers, rate: averageRate(run, numbers), isRateNow: false }))
        return 0
      }
      await stopper.sleep(LOOK_MS)
    }
  })
}

/** A database that is down for a while is shown, but not fatal: the run continues unobserved. */
function asBefore(last: Look, error: unknown): Look {
  if (error instanceof ScrapeError && error.class === 'service') return { ...last, why: error.message }
  throw error
}
