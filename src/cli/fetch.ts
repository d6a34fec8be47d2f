/** `sluice fetch`: sends one URL through the whole fetch chain, and shows the result. */
import type { Command } from 'commander'
import type { Visit } from '../app/tools/one-page.ts'
import type { OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'
import type { Page } from '../core/page.ts'
import { VERDICTS } from './explain.ts'
import { addOptions, collect, configOf } from './flags.ts'
import { note, print, printJson } from './output.ts'
import { errorText } from './print-error.ts'
import { formatBytes, formatMs, type Paint, paintFor, plain, printable, printableData, table } from './style.ts'

const OPTIONS: OptionName[] = [
  'chrome',
  'timeout',
  'bodyMax',
  'robots',
  'contact',
  'userAgent',
  'proxy',
  'proxies',
  'identity',
  'allowPrivate',
  'allowAddress',
]

interface FetchFlags {
  header?: string[]
  body?: boolean
  browser?: boolean
  screenshot?: string
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

const HELP = `
Exit code 0 if the page was fetched, 1 if not, 2 if the URL is not valid.

Examples:
  sluice fetch https://books.toscrape.com/
  sluice fetch https://shop.example/api --header 'accept: application/json' --body
  sluice fetch https://app.example/ --browser --body
  sluice fetch https://app.example/ --screenshot app.png
  sluice fetch http://127.0.0.1:4100/ --allow-address 127.0.0.1:4100`

export function defineFetch(program: Command): void {
  const command = program
    .command('fetch <url>')
    .description('fetch one URL as a run would, and show the response')
    .option('--header <name: value>', 'an additional request header (may be repeated)', collect)
    .option('--body', 'print only the decoded text of the page')
    .option('--browser', 'use a browser, and wait for its scripts')
    .option('--screenshot <FILE>', 'use a browser, and save a screenshot to this file (PNG)')
    .option('--json', 'print the response as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print response headers and stack traces')
    .addHelpText('after', HELP)
    .action(async (url: string, flags: FetchFlags) => {
      process.exitCode = await fetch(url, flags)
    })
  addOptions(command, OPTIONS)
}

async function fetch(given: string, flags: FetchFlags): Promise<number> {
  const one = await import('../app/tools/one-page.ts')
  const url = one.urlArgument(given)
  const headers = one.headerArguments(flags.header ?? [])
  const config = await configOf(flags as Record<string, unknown>)
  if (flags.screenshot !== undefined) await checkPicture(flags.screenshot)
  if (/^\w+:\/\/[^/?#]*@/.test(given.trim()) && !flags.quiet)
    note("credentials in a URL are not sent; use --header 'authorization: …'\n")
  const limits = one.unhurriedLimits(one.limitsOf(config.limits), config.limits)
  const withBrowser = flags.browser === true || flags.screenshot !== undefined
  await using chain = await one.openOnePage({ config, limits, withBrowser, typed: [url] })
  const visit: Visit = await chain.visit({
    url,
    ...(flags.header === undefined ? {} : { headers }),
    ...(withBrowser ? { browser: {} } : {}),
  })
  const { page, error } = visit
  if (flags.screenshot !== undefined) await keepPicture(flags.screenshot, page)
  if (flags.json) printJson(one.visitJson(visit))
  else if (flags.body) printBody(page?.text ?? '')
  else if (!flags.quiet && page !== undefined)
    print(visitText(visit, { paint: paintFor(process.stdout), hasHeaders: flags.verbose === true }))
  if (error !== undefined && !flags.json) {
    const paint = paintFor(process.stderr)
    const columns = process.stderr.columns ?? 100
    const text = errorText(error, { paint, columns, verbose: flags.verbose === true })
    note(`${text}\n${verdictText(error, paint)}`)
  }
  return error === undefined ? 0 : 1
}

async function keepPicture(file: string, page: Page | undefined): Promise<void> {
  const picture = (await page?.live?.screenshot()) ?? page?.screenshot
  if (picture === undefined) note('no picture: no page was received\n')
  else await written(file, async () => (await import('node:fs')).writeFileSync(file, picture))
}

/** Checked before a browser is started for it. */
async function checkPicture(file: string): Promise<void> {
  const [{ accessSync, constants, existsSync, openSync, closeSync }, { dirname }] = await Promise.all([
    import('node:fs'),
    import('node:path'),
  ])
  await written(file, () => {
    if (existsSync(file)) closeSync(openSync(file, 'r+'))
    else accessSync(dirname(file), constants.W_OK | constants.X_OK)
  })
}

async function written(file: string, write: () => unknown): Promise<void> {
  try {
    await write()
  } catch (cause) {
    throw new ScrapeError('E_OUTPUT', `--screenshot ${file} cannot be written: ${(cause as Error).message}`, {
      fix: 'Name a file in a folder that is there and that you may write to.',
      cause,
    })
  }
}

interface VisitTextOptions {
  paint?: Paint
  hasHeaders?: boolean
}

export function visitText(visit: Visit, { paint = plain, hasHeaders = false }: VisitTextOptions = {}): string {
  const { page } = visit
  if (page === undefined) return ''
  const { wire, decoded } = page.bytes
  const size = wire === decoded ? formatBytes(decoded) : `${formatBytes(decoded)}, ${formatBytes(wire)} on the wire`
  const colour = page.status < 300 ? 'green' : page.status < 400 ? 'yellow' : 'red'
  const waitedMs = visit.chainMs - page.timings.totalMs
  const time = [
    `first byte ${formatMs(page.timings.firstByteMs)}`,
    `whole page ${formatMs(page.timings.totalMs)}`,
    ...(waitedMs >= 1 ? [`before it ${formatMs(waitedMs)} (robots.txt, waiting for a turn)`] : []),
  ]
  const rows: (readonly [string, string])[] = [
    ...page.redirects.map((url, i) => [i === 0 ? 'via' : '', printable(url)] as const),
    ...asRows(visit),
    ['type', `${printable(page.contentType) || '(none named)'} · ${page.charset}`],
    ['size', size],
    ...(page.suspicion === undefined ? [] : [['suspect', printable(page.suspicion)] as const]),
    ['time', time.join(' · ')],
    ...(hasHeaders ? headerRows(page.headers) : []),
  ]
  return [
    `${paint([colour, 'bold'], String(page.status))} ${paint('bold', printable(page.url))}`,
    table(
      rows.map(([label, text]) => [paint('dim', label), text]),
      { indent: 2 },
    ),
  ].join('\n')
}

function asRows({ as }: Visit): [string, string][] {
  if (as === undefined) return []
  const who = as.profile === undefined ? as.identity : `${as.identity}, ${as.profile}`
  return [['as', as.proxy === undefined ? who : `${who} through ${as.proxy}`]]
}

function headerRows(headers: Readonly<Record<string, string | string[]>>): [string, string][] {
  return Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}`))
    .map((line, i) => [i === 0 ? 'headers' : '', printable(line)])
}

/** What a run would do about the error. */
export function verdictText(error: ScrapeError, paint: Paint = plain): string {
  return `  ${paint('dim', 'in a run:')} ${error.verdict}: ${VERDICTS[error.verdict]}`
}

/** Byte for byte into a pipe; on a terminal, the text of a page must not contain escape sequences. */
function printBody(text: string): void {
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit() // `| head` has closed the pipe
  })
  const safe = (line: string) => line.split('\t').map(printableData).join('\t')
  process.stdout.write(process.stdout.isTTY ? text.split('\n').map(safe).join('\n') : text)
}
