/** `sluice quality`: how complete, valid and fresh the job postings of a run are. */
import type { Command } from 'commander'
import type { QualityReport } from '../jobs/match/quality.ts'
import type { RunQuality } from '../runs/run-quality.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf, RUN_HELP, withRun } from './run-place.ts'

interface QualityFlags extends ReadFlags, PlaceFlags {}

const HELP = `${RUN_HELP}

Raises an alarm (exit code 1) if a field is filled less often than in earlier runs: the page has probably changed. The comparison needs
3 successful earlier runs with 20 postings each; the last 7 runs count. A run without postings is an alarm, too.

Examples:
  sluice quality greenhouse
  sluice quality 20261115_113501_x7k2 --json`

export function defineQuality(program: Command): void {
  const command = program
    .command('quality [run]')
    .description('show how complete, valid and fresh the job postings of a run are')
    .addHelpText('after', HELP)
    .action(async (run: string | undefined, flags: QualityFlags) => {
      process.exitCode = await quality(run, flags)
    })
  addReadFlags(command, 'the reports')
  addPlaces(command)
}

async function quality(word: string | undefined, flags: QualityFlags): Promise<number> {
  const [{ runQuality }, { ScrapeError }] = await Promise.all([
    import('../runs/run-quality.ts'),
    import('../core/errors.ts'),
  ])
  const { places } = await placesOf(flags)
  return await withRun(word, flags, async ({ run }) => {
    const found = await runQuality(run, places)
    if (found.reports.length === 0 && found.empty === null)
      throw new ScrapeError('E_USAGE', `run ${run.record.id} of "${run.record.scraper}" has no job postings`, {
        fix: 'For other items see `sluice stats`, which shows how full each field is.',
      })
    if (flags.json) printJson({ run: run.record.id, scraper: run.record.scraper, ...found })
    else if (!flags.quiet) {
      const { plural } = await import('./style.ts')
      if (found.empty !== null) print(await emptyText(found.empty))
      else print(found.reports.map(reportText).join('\n\n'))
      for (const compared of found.compared) printUncompared(compared)
      for (const { source, field, today, median } of found.alarms)
        print(`! ${source}: ${field} fell to ${percent(today)}, it was ${percent(median)} in the runs before`)
      if (found.others > 0) print(`${plural(found.others, 'item')} in the run are not job postings`)
    }
    return found.alarms.length > 0 || found.empty !== null ? 1 : 0
  })
}

async function emptyText({ before }: NonNullable<RunQuality['empty']>): Promise<string> {
  const { fullRunWords } = await import('../runs/earlier-run.ts')
  return `! no postings; ${before === null ? 'nor had a run with these arguments before' : fullRunWords(before)}`
}

/** No output must not be mistaken for "nothing got worse". */
function printUncompared({ source, runs, runsMin, postings, postingsMin }: RunQuality['compared'][number]): void {
  if (postings < postingsMin) print(`${source}: too few postings to compare (${postings} of ${postingsMin})`)
  else if (runs < runsMin) print(`${source}: too few runs before to compare (${runs} of ${runsMin})`)
}

const percent = (share: number) => `${(share * 100).toFixed(share < 0.9995 && share > 0.9945 ? 1 : 0)} %`

function reportText({
  source,
  items,
  score,
  completeness,
  validity,
  duplicates,
  freshness,
  yield: yields,
}: QualityReport) {
  const fields = Object.entries(completeness).map(([field, share]) => `${field} ${percent(share)}`)
  const failed = Object.entries(validity.failed).flatMap(([check, count]) => (count > 0 ? [`${check} ${count}`] : []))
  const { lagHoursP50: p50, lagHoursP95: p95 } = freshness
  return [
    `${source}  ${items} postings · score ${percent(score)}`,
    `  filled      ${fields.join(' · ')}`,
    `  valid       ${percent(validity.share)}${failed.length === 0 ? '' : ` (not: ${failed.join(', ')})`}`,
    `  duplicates  ${duplicates.exact} seen twice`,
    `  requests    ${yields.itemsPerRequest.toFixed(2)} postings each · blocked ${percent(yields.blockedRate)}${yields.isTruncated ? ' · the list was cut' : ''}`,
    `  age         ${p50 === null || p95 === null ? 'unknown (no dates)' : `p50 ${p50.toFixed(0)} h · p95 ${p95.toFixed(0)} h when found`}`,
  ].join('\n')
}
