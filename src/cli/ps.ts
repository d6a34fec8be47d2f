/** `sluice ps`: running and unfinished runs, local and in the fleet, and why a run makes no progress. */
import type { Command } from 'commander'
import type { ListedRun } from '../runs/run-list.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface PsFlags extends ReadFlags, PlaceFlags {
  all?: boolean
  limit: string
}

const HELP = `
Runs of this machine are in --out, those of a fleet in --store (SLUICE_STORE), which is the database of --frontier postgres://…
(SLUICE_FRONTIER), or with redis://… and amqp://… a file of this machine: .sluice/sluice.db.

Examples:
  sluice ps
  sluice ps --all --limit 100
  sluice ps --json`

const LIMIT_MAX = 10_000

export function definePs(program: Command): void {
  const command = program
    .command('ps')
    .description('list active and unfinished runs')
    .option('--all', 'include finished runs')
    .option('--limit <N>', 'maximum number of runs, newest first', '20')
    .addHelpText('after', HELP)
    .action(async (flags: PsFlags) => {
      process.exitCode = await ps(flags)
    })
  addReadFlags(command, 'the runs')
  addPlaces(command)
}

async function ps(flags: PsFlags): Promise<number> {
  const [{ listAllRuns }, { ScrapeError }] = await Promise.all([
    import('../runs/run-list.ts'),
    import('../core/errors.ts'),
  ])
  const max = Number(flags.limit)
  if (!Number.isSafeInteger(max) || max < 1 || max > LIMIT_MAX)
    throw new ScrapeError(
      'E_USAGE',
      `--limit takes a whole number from 1 to ${LIMIT_MAX}, got ${JSON.stringify(flags.limit)}`,
    )
  const { places, lineOf } = await placesOf(flags)
  const { runs, more } = await listAllRuns({ places, isAll: flags.all === true, max })
  if (flags.json) printJson({ runs: runs.map(toJson), hasMore: more > 0 })
  else if (!flags.quiet) {
    const none = flags.all
      ? `no runs; start one: ${lineOf('run', 'NAME')}`
      : `nothing unfinished; ${lineOf('ps', '--all')} shows the rest`
    print(runs.length === 0 ? none : await psText(runs))
    if (more > 0) print('… and more; --limit N shows them')
  }
  return 0
}

function toJson({ numbers, files, rate, workers, why, startedAt, ...run }: ListedRun) {
  const { id, scraper, region, state, isAlive, finishedAt, place } = run
  return {
    id,
    scraper,
    region: region ?? null,
    state,
    isAlive,
    completed: numbers.completed,
    remaining: numbers.remaining,
    failed: numbers.failed,
    dead: numbers.dead,
    items: numbers.items,
    files,
    rate: rate === undefined ? null : Math.round(rate * 100) / 100,
    workers: workers ?? null,
    startedAt: startedAt ?? null,
    finishedAt,
    why: why ?? null,
    place,
  }
}

const COLOURS = {
  running: 'cyan',
  paused: 'yellow',
  finished: 'green',
  stopped: 'yellow',
  failed: 'red',
  unreadable: 'red',
} as const

async function psText(runs: ListedRun[]): Promise<string> {
  const { formatCount, formatDuration, formatRate, paintFor, printable, table } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const filesOf = ({ files: { stored, same, failed, pending, claimed } }: ListedRun) =>
    [
      ...(stored + same > 0 ? [`${formatCount(stored + same)} done`] : []),
      ...(pending + claimed > 0 ? [`${formatCount(pending + claimed)} left`] : []),
      ...(failed > 0 ? [paint('red', `${formatCount(failed)} failed`)] : []),
    ].join(', ')
  const hasFiles = runs.some((run) => filesOf(run) !== '')
  const files = (text: string) => (hasFiles ? [text] : [])
  const hasRegions = runs.some(({ region }) => region !== undefined)
  const regions = (text: string) => (hasRegions ? [text] : [])
  const head = [
    'run',
    'scraper',
    'state',
    'done',
    'left',
    'failed',
    'pages/s',
    'workers',
    'age',
    ...files('files'),
    ...regions('region'),
    'why',
  ]
  const rows = runs.map((run) => {
    const { id, scraper, region, state, pages, rate, workers, startedAt, why } = run
    return [
      id,
      printable(scraper),
      paint(COLOURS[state], state),
      formatCount(pages.completed),
      formatCount(pages.remaining),
      pages.failed > 0 ? paint('red', formatCount(pages.failed)) : '0',
      rate === undefined ? '–' : formatRate(rate),
      workers === undefined ? '–' : String(workers),
      startedAt === undefined ? '–' : formatDuration(Date.now() - Date.parse(startedAt)),
      ...files(filesOf(run)),
      ...regions(region ?? '–'),
      printable(why ?? ''),
    ]
  })
  return table([head.map((word) => paint('dim', word)), ...rows], { right: [3, 4, 5, 6, 7, 8] })
}
