/** `sluice check`: compares a few live pages with what the scraper expects; for a monitor, or before a long run. */
import type { Command } from 'commander'
import type { Check, RouteCheck } from '../app/tools/check-scraper.ts'
import type { OptionName } from '../config/option-table.ts'
import { addArgs, addOptions, argsOf, configOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

const OPTIONS: OptionName[] = [
  'rps',
  'concurrency',
  'retries',
  'timeout',
  'robots',
  'failAt',
  'contact',
  'userAgent',
  'boards',
  'allowPrivate',
  'allowAddress',
]

interface CheckFlags extends ReadFlags {
  arg?: string[]
  site?: string
  pages: string
  within: string
}

const HELP = `
Takes the routes in turn, so that a few pages cover every kind of page. Writes nothing. Compares failed
pages and invalid items with failAt, and the result with the scraper's expect (filled, perRoute).
Exit code 0 if everything is as expected, 1 if not.

Examples:
  sluice check books
  sluice check books --arg details=true --pages 10 --json`

export function defineCheck(program: Command): void {
  const command = program
    .command('check <scraper>')
    .description('read a few live pages and compare them with what the scraper expects')
    .option('--pages <N>', 'pages to read', '5')
    .option('--within <TIME>', 'time limit for the whole check', '2m')
    .addHelpText('after', HELP)
    .action(async (name: string, flags: CheckFlags) => {
      process.exitCode = await check(name, flags)
    })
  addArgs(command)
  addReadFlags(command, 'the findings')
  addOptions(command, OPTIONS)
}

const PAGES_MAX = 1_000
const WITHIN_MS_MAX = 3_600_000

async function check(name: string, flags: CheckFlags): Promise<number> {
  const [{ loadScraper }, { argumentNames }, { checkScraper }, { ScrapeError }, { parseDurationMs }] =
    await Promise.all([
      import('../config/load-scraper.ts'),
      import('../config/scraper-arguments.ts'),
      import('../app/tools/check-scraper.ts'),
      import('../core/errors.ts'),
      import('../core/options.ts'),
    ])
  const pages = Number(flags.pages)
  if (!Number.isSafeInteger(pages) || pages < 1 || pages > PAGES_MAX)
    throw new ScrapeError(
      'E_USAGE',
      `--pages takes a whole number from 1 to ${PAGES_MAX}, got ${JSON.stringify(flags.pages)}`,
    )
  const withinMs = parseDurationMs(flags.within)
  if (!(withinMs > 0 && withinMs <= WITHIN_MS_MAX))
    throw new ScrapeError(
      'E_USAGE',
      `--within takes a time such as 30s or 2m, up to 1h, got ${JSON.stringify(flags.within)}`,
    )
  const { pages: _, ...options } = flags as CheckFlags & Record<string, unknown>
  const config = await configOf(options)
  const { scraper, file } = await loadScraper(name)
  const args = argsOf(flags, argumentNames(scraper))
  const interrupt = new AbortController()
  const onSignal = () => interrupt.abort(new ScrapeError('E_STOPPED', 'interrupted'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const signal = AbortSignal.any([interrupt.signal, AbortSignal.timeout(withinMs)])
  const result = await checkScraper({ scraper, file, args, config, pages, signal })
  if (flags.json) printJson({ isOk: result.problems.length === 0, ...result })
  else if (!flags.quiet) print(await checkText(result, scraper.expect !== undefined))
  return interrupt.signal.aborted ? 4 : result.problems.length > 0 ? 1 : 0
}

async function checkText(result: Check, hasExpect: boolean): Promise<string> {
  const [{ formatMs, formatRatio, paintFor, plural, printable, table }, { rangeText }] = await Promise.all([
    import('./style.ts'),
    import('../app/tools/check-scraper.ts'),
  ])
  const paint = paintFor(process.stdout)
  const mark = (isGood: boolean) => (isGood ? paint('green', '✔') : paint('red', '✘'))
  const side = ({ expected }: RouteCheck, what: 'items' | 'links') =>
    expected[what] === undefined ? '' : paint('dim', `(${rangeText(expected[what])})`)
  const read = result.pages.ok + result.pages.failed
  const routeRows = result.routes.map((route) => [
    route.route,
    route.ok + route.failed === 0
      ? paint('dim', 'not reached')
      : `${route.ok} ok${route.failed > 0 ? `, ${paint('red', `${route.failed} failed`)}` : ''}`,
    route.items === undefined ? '' : `${rangeText(route.items)} items/page ${side(route, 'items')}`.trimEnd(),
    route.links === undefined ? '' : `${rangeText(route.links)} links/page ${side(route, 'links')}`.trimEnd(),
  ])
  const fieldRows = result.fields.map(({ field, filled, expected }) => [
    result.items.valid === 0 ? '–' : mark(filled >= expected),
    field,
    formatRatio(filled),
    paint('dim', `expected ${formatRatio(expected)}`),
  ])
  const errors = result.errors.flatMap(({ code, count, example, message }) => [
    `  ${paint('red', `${count}× ${code}`)}  ${printable(message)}`,
    `     ${paint('dim', printable(example))}`,
  ])
  const verdict =
    result.problems.length === 0
      ? paint('green', `✔ ${hasExpect ? 'as expected' : 'read well; the scraper has no expect to compare with'}`)
      : result.problems.map((problem) => paint('red', `✘ ${printable(problem)}`)).join('\n')
  return [
    `${paint('bold', result.scraper)}  ${plural(read, 'live page')} in ${formatMs(result.durationMs)}, ${plural(result.items.valid, 'item')}${result.items.invalid > 0 ? `, ${result.items.invalid} invalid` : ''}`,
    table(routeRows, { indent: 2 }),
    ...(fieldRows.length === 0 ? [] : [table(fieldRows, { indent: 2, right: [2] })]),
    ...errors,
    verdict,
  ].join('\n')
}
