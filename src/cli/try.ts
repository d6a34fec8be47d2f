/** `sluice try`: sends one page through a scraper. */
import { inspect } from 'node:util'
import type { Command } from 'commander'
import type { TriedPage } from '../app/tools/try-page.ts'
import type { OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { verbatim } from '../core/redact.ts'
import { verdictText, visitText } from './fetch.ts'
import { addArgs, addOptions, argsOf, configOf } from './flags.ts'
import { note, print, printJson } from './output.ts'
import { errorText } from './print-error.ts'
import {
  formatBytes,
  formatMs,
  type Paint,
  padEnd,
  paintFor,
  plural,
  printable,
  truncate,
  truncateMiddle,
} from './style.ts'

const OPTIONS: OptionName[] = [
  'timeout',
  'bodyMax',
  'robots',
  'depth',
  'contact',
  'userAgent',
  'boards',
  'allowPrivate',
  'allowAddress',
  'chrome',
]

interface TryFlags {
  route?: string
  data?: string
  session?: string
  arg?: string[]
  site?: string
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

const HELP = `
Nothing is queued or written. Exit code 0 if the page was read and every item is valid, 1 if not.

Examples:
  sluice try books https://books.toscrape.com/catalogue/page-2.html
  sluice try scrapers/jobs.ts https://jobs.example/job/17 --route job --data '{"company": "Acme"}'`

export function defineTry(program: Command): void {
  const command = program
    .command('try <scraper> <url>')
    .description('run a scraper on one page: items, links, what would be rejected and why')
    .option('--route <name>', 'use this route instead of the one that matches the URL')
    .option('--data <JSON>', 'data for the handler of the route')
    .option('--session <name>', 'session for the handler (no login happens)')
    .option('--json', 'print everything as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print every link, debug lines of the handler, and stack traces')
    .addHelpText('after', HELP)
    .action(async (name: string, url: string, flags: TryFlags) => {
      process.exitCode = await tryOne(name, url, flags)
    })
  addArgs(command)
  addOptions(command, OPTIONS)
}

async function tryOne(name: string, given: string, flags: TryFlags): Promise<number> {
  const [
    one,
    { tryPage },
    { loadScraper },
    { argumentNames, checkArgs },
    { compileScraper },
    { needsBrowsers },
    { assertTurnedOn },
  ] = await Promise.all([
    import('../app/tools/one-page.ts'),
    import('../app/tools/try-page.ts'),
    import('../config/load-scraper.ts'),
    import('../config/scraper-arguments.ts'),
    import('../crawl/compile-scraper.ts'),
    import('../app/run/open-browsers.ts'),
    import('../config/opt-in.ts'),
  ])
  const url = one.urlArgument(given)
  const data = flags.data === undefined ? undefined : parseData(flags.data)
  const config = await configOf(flags as Record<string, unknown>)
  const { scraper, file } = await loadScraper(name)
  assertTurnedOn(scraper, config)
  const compiled = compileScraper(scraper, config.limits, file)
  const args = checkArgs(scraper, argsOf(flags, argumentNames(scraper)))
  const limits = one.unhurriedLimits(compiled.limits, config.limits)
  const withBrowser = needsBrowsers(compiled)
  await using chain = await one.openOnePage({ config, limits, typed: [url], withBrowser })
  const signal = new AbortController().signal
  const { route, session } = flags
  const tried = await tryPage({ compiled, args, url, route, data, session, chain, signal })
  const isGood = tried.error === undefined && tried.invalid.length === 0
  if (flags.json) printJson(toJson(tried, scraper.name, isGood, one))
  else show(tried, scraper.name, flags)
  return isGood ? 0 : 1
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const fix = 'For example: --data \'{"page": 2}\''
    throw new ScrapeError('E_USAGE', `--data is not JSON: ${(cause as Error).message}`, { fix, cause })
  }
}

function toJson(tried: TriedPage, scraper: string, isGood: boolean, one: typeof import('../app/tools/one-page.ts')) {
  const { visit, error, readMs, items, ...rest } = tried
  const { headers: _, ...fetched } = one.visitJson(visit)
  return {
    ok: isGood,
    scraper,
    ...rest,
    skipped: rest.skipped ?? null,
    items: verbatim(items.filter((one) => !one.isRepeated).map(({ item }) => item)),
    repeated: items.filter((one) => one.isRepeated).length,
    fetch: fetched,
    readMs: Math.round(readMs * 10) / 10,
    error: error === undefined ? null : one.errorJson(error),
  }
}

function show(tried: TriedPage, scraper: string, flags: TryFlags): void {
  const isVerbose = flags.verbose === true
  if (!flags.quiet) {
    const columns = process.stdout.columns ?? 100
    print(triedText(tried, { scraper, paint: paintFor(process.stdout), columns, isVerbose }))
  }
  if (tried.error === undefined) return
  const paint = paintFor(process.stderr)
  const text = errorText(tried.error, { paint, columns: process.stderr.columns ?? 100, verbose: isVerbose })
  note(`${text}\n${verdictText(tried.error, paint)}`)
}

interface TriedTextOptions {
  scraper: string
  paint: Paint
  columns: number
  isVerbose: boolean
}

const ITEMS_SHOWN_MAX = 5
const LINKS_SHOWN_MAX = 3
const FILES_SHOWN_MAX = 10
const VALUE_COLUMNS_MAX = 200

/** Blocks with a blank line between; ends with a newline. */
function triedText(tried: TriedPage, options: TriedTextOptions): string {
  const blocks = [
    headLines(tried, options),
    itemLines(tried, options),
    invalidLines(tried, options),
    linkLines(tried, options),
    refusedLines(tried, options),
    fileLines(tried, options),
    logLines(tried, options),
  ]
  return `${blocks
    .filter((block) => block.length > 0)
    .map((block) => block.join('\n'))
    .join('\n\n')}\n`
}

function headLines(tried: TriedPage, { scraper, paint }: TriedTextOptions): string[] {
  const params = Object.entries(tried.params).map(([name, value]) => `${name}=${printable(value)}`)
  const data = tried.data === null || tried.data === undefined ? '' : ` data ${JSON.stringify(tried.data)}`
  const user = tried.session === null ? '' : ` · session ${printable(tried.session)}`
  const fetched = visitText(tried.visit, { paint })
  const isRead = tried.visit.error === undefined
  return [
    ...(fetched === '' ? [] : [fetched]),
    `  ${paint('dim', 'route')} ${paint('bold', tried.route)} of ${scraper}${params.length > 0 ? ` (${params.join(', ')})` : ''}${data}${user}${isRead ? ` · read in ${formatMs(tried.readMs)}` : ''}`,
    ...(tried.skipped === undefined ? [] : [paint('yellow', `  skipped by the handler: ${printable(tried.skipped)}`)]),
  ]
}

function itemLines(tried: TriedPage, options: TriedTextOptions): string[] {
  if (tried.visit.error !== undefined) return []
  const { paint, columns, isVerbose } = options
  const items = tried.items.filter((one) => !one.isRepeated)
  const repeated = tried.items.length - items.length
  const head = `${paint(items.length > 0 ? ['green', 'bold'] : 'bold', plural(items.length, 'item'))}${repeated > 0 ? `, ${repeated} more with a key that was there before` : ''}`
  const shown = isVerbose ? items : items.slice(0, ITEMS_SHOWN_MAX)
  const lines = shown.flatMap(({ item }, i) => [...(i === 0 ? [] : ['']), ...fieldLines(item, paint, columns)])
  const hidden = items.length - shown.length
  return [head, ...lines, ...(hidden > 0 ? [paint('dim', `  … and ${hidden} more; -v shows all`)] : [])]
}

function fieldLines(item: Record<string, unknown>, paint: Paint, columns: number): string[] {
  const names = Object.keys(item)
  const width = Math.max(0, ...names.map((name) => name.length))
  const room = Math.min(VALUE_COLUMNS_MAX, columns - width - 4)
  return names.map((name) => `  ${paint('dim', padEnd(name, width))}  ${truncate(valueText(item[name]), room)}`)
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return printable(value)
  return printable(inspect(value, { depth: 4, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 200 }))
}

function invalidLines({ invalid }: TriedPage, { paint, columns, isVerbose }: TriedTextOptions): string[] {
  if (invalid.length === 0) return []
  const shown = isVerbose ? invalid : invalid.slice(0, ITEMS_SHOWN_MAX)
  const lines = shown.flatMap(({ problems, item }) => [
    ...problems.map((problem) => `  ${paint('red', '✘')} ${printable(problem)}`),
    `    ${paint('dim', truncate(valueText(item), columns - 4))}`,
  ])
  const hidden = invalid.length - shown.length
  return [
    paint(['red', 'bold'], plural(invalid.length, 'invalid item')),
    ...lines,
    ...(hidden > 0 ? [paint('dim', `  … and ${hidden} more; -v shows all`)] : []),
  ]
}

function linkLines({ links, rerouted, visit }: TriedPage, options: TriedTextOptions): string[] {
  if (visit.error !== undefined) return []
  const { paint } = options
  if (links.length === 0) return [paint('bold', '0 links')]
  const byRoute = Map.groupBy(links, (link) => link.route)
  const lines = [...byRoute].flatMap(([route, found]) => [
    `  ${paint('cyan', route)}  ${found.length}${reroutedWords(rerouted, route)}`,
    ...examples(
      found.map((link) => link.url),
      options,
    ),
  ])
  return [paint('bold', `${plural(links.length, 'link')} to follow`), ...lines]
}

/** ` (3 enqueued for page: the match of job is more specific)`, or nothing. */
function reroutedWords(rerouted: TriedPage['rerouted'], route: string): string {
  const taken = rerouted.filter((link) => link.route === route)
  if (taken.length === 0) return ''
  const from = [...new Set(taken.map((link) => link.wanted))].join(', ')
  return ` (${taken.length} enqueued for ${from}: the match of ${route} is more specific)`
}

function refusedLines({ refused }: TriedPage, options: TriedTextOptions): string[] {
  if (refused.length === 0) return []
  const { paint } = options
  const byReason = Map.groupBy(refused, (link) => link.why)
  const lines = [...byReason].flatMap(([why, found]) => [
    `  ${paint('yellow', printable(why))}  ${found.length}`,
    ...examples(
      found.map((link) => link.url),
      options,
    ),
  ])
  return [paint(['yellow', 'bold'], `${plural(refused.length, 'link')} would be refused`), ...lines]
}

function examples(urls: readonly string[], { paint, columns, isVerbose }: TriedTextOptions): string[] {
  const shown = isVerbose ? urls : urls.slice(0, LINKS_SHOWN_MAX)
  const hidden = urls.length - shown.length
  return [
    ...shown.map((url) => `    ${isVerbose ? printable(url) : truncateMiddle(printable(url), columns - 4)}`),
    ...(hidden > 0 ? [paint('dim', `    … and ${hidden} more`)] : []),
  ]
}

function fileLines({ files }: TriedPage, { paint, columns, isVerbose }: TriedTextOptions): string[] {
  if (files.length === 0) return []
  const shown = isVerbose ? files : files.slice(0, FILES_SHOWN_MAX)
  const lines = shown.map(({ name, bytes, url }) => {
    const what = [...(name === null ? [] : [name]), ...(url === undefined ? [] : [url])].map(printable)
    const size = bytes === undefined ? '' : `  ${formatBytes(bytes)}`
    const line = `  ${what.join('  ')}${size}`
    return isVerbose ? line : truncateMiddle(line, columns)
  })
  const hidden = files.length - shown.length
  return [
    paint('bold', `${plural(files.length, 'file')} would be saved`),
    ...lines,
    ...(hidden > 0 ? [paint('dim', `  … and ${hidden} more; -v shows all`)] : []),
  ]
}

function logLines({ log }: TriedPage, { paint, isVerbose }: TriedTextOptions): string[] {
  const shown = log.filter(({ level }) => isVerbose || level !== 'debug')
  if (shown.length === 0) return []
  const lines = shown.map(
    ({ level, message, extra }) =>
      `  ${paint(level === 'warn' ? 'yellow' : 'dim', level)}  ${printable(message)}${extra === undefined ? '' : ` ${valueText(extra)}`}`,
  )
  return [paint('bold', 'log'), ...lines]
}
