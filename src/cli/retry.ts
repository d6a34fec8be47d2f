/** `sluice retry`: retries what a run gave up on. */
import type { Command } from 'commander'
import { addFilter, type DlqFlags } from './dlq.ts'
import { addReadFlags } from './output.ts'
import { addPlaces, RUN_HELP } from './run-place.ts'

interface RetryFlags extends DlqFlags {
  failed?: boolean
}

const HELP = `${RUN_HELP}

Examples:
  sluice retry books --failed
  sluice retry books --failed --class timeout
  sluice retry 20261115_113501_x7k2 --failed --host shop.example --json`

export function defineRetry(program: Command): void {
  const command = program
    .command('retry <run>')
    .description('put failed pages back into the queue of a run, with fresh retries')
    .option('--failed', 'all failed pages, or those that match the filters')
    .addHelpText('after', HELP)
    .action(async (run: string, flags: RetryFlags) => {
      process.exitCode = await retry(run, flags)
    })
  addFilter(command)
  addReadFlags(command, 'the count and the next command')
  addPlaces(command)
}

async function retry(run: string, flags: RetryFlags): Promise<number> {
  const [{ retryThem }, { ScrapeError }] = await Promise.all([import('./dlq.ts'), import('../core/errors.ts')])
  const isFiltered = [flags.class, flags.code, flags.host, flags.id].some((filter) => filter !== undefined)
  if (!flags.failed && !isFiltered)
    throw new ScrapeError('E_USAGE', 'retry wants to know what to try again', {
      fix: `For all that failed: sluice retry ${run} --failed; for some of it add --class, --code or --host.`,
    })
  return await retryThem([run], flags)
}
