/** `sluice map`: the URLs that a site lists itself, one per line. */
import type { Command } from 'commander'
import type { SiteMap } from '../app/site/site-map.ts'
import type { OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { verbatim } from '../core/redact.ts'
import { addOptions, configOf } from './flags.ts'
import { note, printData, printJson } from './output.ts'
import { errorText } from './print-error.ts'
import { paintFor, plural, printable } from './style.ts'

const OPTIONS: OptionName[] = [
  'timeout',
  'bodyMax',
  'rps',
  'robots',
  'contact',
  'userAgent',
  'allowPrivate',
  'allowAddress',
]

interface MapFlags {
  max: string
  anyHost?: boolean
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

const HELP = `
Reads the sitemaps named in robots.txt, else /sitemap.xml (indexes, gzip, RSS, Atom and plain lists too), else the links of
the page to its own host. URLs go to standard output, everything else to standard error.

Examples:
  sluice map https://shop.example/ > urls.txt
  sluice map https://shop.example/ --max 100000 --json`

export function defineMap(program: Command): void {
  const command = program
    .command('map <url>')
    .description('list the URLs of a site, from its sitemaps or the links on the page')
    .option('--max <N>', 'maximum number of URLs', '5000')
    .option('--any-host', 'also list sitemap entries for other hosts')
    .option('--json', 'print URLs, sources and problems as JSON')
    .option('--quiet', 'print only URLs and errors')
    .option('-v, --verbose', 'print what was skipped in the sitemaps, and stack traces')
    .addHelpText('after', HELP)
    .action(async (url: string, flags: MapFlags) => {
      process.exitCode = await map(url, flags)
    })
  addOptions(command, OPTIONS)
}

/** The maximum size of a sitemap according to its protocol. */
const SITEMAP_BYTES_MAX = 50 * 1024 ** 2
const URLS_MAX = 10_000_000

async function map(given: string, flags: MapFlags): Promise<number> {
  const [one, { mapSite }] = await Promise.all([import('../app/tools/one-page.ts'), import('../app/site/site-map.ts')])
  const url = one.urlArgument(given)
  const max = Number(flags.max)
  if (!Number.isSafeInteger(max) || max < 1 || max > URLS_MAX)
    throw new ScrapeError(
      'E_USAGE',
      `--max takes a whole number from 1 to ${URLS_MAX}, got ${JSON.stringify(flags.max)}`,
    )
  const config = await configOf(flags as unknown as Record<string, unknown>)
  const limits = one.limitsOf({ ...config.limits, bodyMax: config.limits.bodyMax ?? SITEMAP_BYTES_MAX })
  await using chain = await one.openOnePage({ config, limits, typed: [url] })
  const found = await mapSite({
    chain,
    url,
    max,
    isAnyHost: flags.anyHost === true,
    signal: new AbortController().signal,
  })
  if (flags.json) {
    const { error, ...rest } = found
    printJson({ url, ...rest, urls: verbatim(rest.urls), error: error === undefined ? null : one.errorJson(error) })
    return error === undefined ? 0 : 1
  }
  if (found.urls.length > 0) printData(found.urls.map((page) => page.url).join('\n'))
  if (!flags.quiet) note(sourcesText(found, { max, isVerbose: flags.verbose === true }))
  if (found.error === undefined) return 0
  const paint = paintFor(process.stderr)
  const columns = process.stderr.columns ?? 100
  note(`${errorText(found.error, { paint, columns, verbose: flags.verbose === true })}`)
  return 1
}

function sourcesText(
  { sources, problems, isCut, otherHosts }: SiteMap,
  { max, isVerbose }: { max: number; isVerbose: boolean },
) {
  const lines = sources.map(({ url, kind, urls, error }) => {
    const what = kind === 'sitemap' ? 'sitemap' : 'links of'
    return `${what} ${url}: ${error === null ? plural(urls, 'URL') : `none (${error.code})`}`
  })
  if (isCut) lines.push(`stopped at ${max}: there are more; --max N takes them`)
  if (otherHosts > 0)
    lines.push(`${plural(otherHosts, 'entry', 'entries')} for other hosts skipped; --any-host lists them`)
  if (isVerbose) lines.push(...problems.map(({ sitemap, message }) => `${sitemap}: ${message}`))
  const untold = problems.filter(({ foreign }) => foreign === undefined).length
  if (!isVerbose && untold > 0) lines.push(`${plural(untold, 'problem')} of sitemaps not shown; -v shows them`)
  return lines.map((line) => `${printable(line)}\n`).join('')
}
