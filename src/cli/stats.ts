/** `sluice stats`: the figures of a run, running or ended. */
import type { Command } from 'commander'
import { addReadFlags, print, printJson, printJsonLine, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, withRun } from './run-place.ts'

interface StatsFlags extends ReadFlags, PlaceFlags {
  watch?: boolean
}

const HELP = `${RUN_HELP}

Examples:
  sluice stats
  sluice stats books --watch
  sluice stats 20261115_113501_x7k2 --json`

const WATCH_MS = 1_000

export function defineStats(program: Command): void {
  const command = program
    .command('stats [run]')
    .description('show the progress of a run: pages, items, rate, workers, remaining')
    .option('--watch', 'update every second until the run ends')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: StatsFlags) => {
      process.exitCode = await stats(run, flags)
    })
  addReadFlags(command, 'the numbers')
  addPlaces(command)
}

async function stats(word: string | undefined, flags: StatsFlags): Promise<number> {
  const [{ averageRate, pagesSettled, runStats }, { createRateMeter }, text, { formatRate }] = await Promise.all([
    import('../runs/run-numbers.ts'),
    import('./rate-meter.ts'),
    import('./stats-text.ts'),
    import('./style.ts'),
  ])
  return await withRun(word, flags, async (place) => {
    const { run } = place
    const canRedraw = flags.watch === true && process.stdout.isTTY === true
    const meter = createRateMeter()
    for (;;) {
      const [numbers] = await Promise.all([runStats(run), run.askBroker()])
      const rateNow = flags.watch ? meter.rate(pagesSettled(run, numbers)) : undefined
      const rate = rateNow ?? averageRate(run, numbers)
      const isLast = !flags.watch || run.isOver
      if (flags.json) (flags.watch ? printJsonLine : printJson)(text.statsJson(run, numbers, rate))
      else if (flags.quiet) {
        // only the exit code
      } else if (!isLast && !canRedraw) {
        const { completed, failed, remaining, items } = numbers
        const files = text.filesText(run, numbers)
        print(
          `${completed} done, ${failed} failed, ${remaining} left, ${items} items, ${formatRate(rate)} pages/s${files === '' ? '' : `; files: ${files}`}`,
        )
      } else {
        const sheet = text.statsText({ place, numbers, rate, isRateNow: rateNow !== undefined })
        print(canRedraw ? `\x1b[H\x1b[J${sheet}` : sheet)
      }
      if (isLast) return 0
      await new Promise((resolve) => setTimeout(resolve, WATCH_MS))
      await run.refresh()
    }
  })
}
