/** `sluice produce`: feeds the queue of a fleet from sitemaps, files and lists. */
import type { Command } from 'commander'
import { ScrapeError } from '../core/errors.ts'
import { addOptions, collect, configOf, RUN_OPTIONS } from './flags.ts'
import { note, print, printJson, shellWord } from './output.ts'
import { workerPlaces } from './run-place.ts'

interface ProduceFlags {
  scraper: string
  sitemap?: string[]
  host?: string[]
  anyHost?: boolean
  max?: string
  site?: string[]
  url?: string[]
  urlsFile?: string
  rules?: string
  since?: string
  runId?: string
  json?: boolean
  quiet?: boolean
}

const HELP = `
Sitemaps may be indexes of sitemaps, gzip, RSS, Atom or plain lists. Entries that are not valid URLs or match no route of the scraper become
dead letters with a reason (sluice dlq groups). The scraper "pages" takes any URL and saves status, title, description and size.

Examples:
  sluice produce --sitemap https://shop.example/sitemap.xml
  sluice produce --scraper books --site https://shop.example/ --since 2026-11-01
  sluice produce --urls-file urls.txt --rules rules.json --run-id 20261115_113501_x7k2`

/** The maximum size of a sitemap according to its protocol. */
const SITEMAP_BYTES_MAX = 50 * 1024 ** 2
/** Enough for an index with ten thousand dead files. */
const PROBLEMS_SHOWN_MAX = 100
const NOT_OURS = new Set(['format', 'sink', 'processes', 'formulaSafe', 'metrics', 'out'])

export function defineProduce(program: Command): void {
  const command = program
    .command('produce')
    .description('feed the queue of a fleet from sitemaps, files or lists of URLs')
    .option('--scraper <name>', 'the scraper for the pages: a name, or a file that exports one', 'pages')
    .option('--sitemap <URL>', 'queue the pages of this sitemap or feed (may be repeated)', collect)
    .option('--site <URL>', 'queue the pages of the sitemaps in the robots.txt of this site (may be repeated)', collect)
    .option('--host <HOST>', 'also queue sitemap entries for this host (may be repeated)', collect)
    .option('--any-host', 'queue sitemap entries for any host')
    .option('--max <N>', 'maximum number of entries per sitemap, including all files of its index', String(1_000_000))
    .option('--url <URL>', 'queue this page (may be repeated)', collect)
    .option('--urls-file <FILE>', 'queue the URLs in this file, one per line (- is standard input)')
    .option(
      '--rules <FILE>',
      'lane, priority and time to live by URL: JSON, see docs/how-to/add-urls-from-sitemaps-and-lists.md',
    )
    .option('--since <DATE>', 'only pages changed since this date, or without a date')
    .option('--run-id <run>', 'add to this run instead of creating one')
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (flags: ProduceFlags) => {
      process.exitCode = await produce(flags)
    })
  addOptions(
    command,
    RUN_OPTIONS.filter((name) => !NOT_OURS.has(name)),
  )
}

async function produce(flags: ProduceFlags): Promise<number> {
  const [
    { loadScraper },
    one,
    { produced },
    { readRules },
    { startDistributed, workerCommand },
    { normaliseUrl },
    { storeFileNote },
    { storeUrlOf },
  ] = await Promise.all([
    import('../config/load-scraper.ts'),
    import('../app/tools/one-page.ts'),
    import('../app/fleet/produce.ts'),
    import('../sources/routing.ts'),
    import('../app/fleet/start-distributed.ts'),
    import('../core/url.ts'),
    import('../runs/open-run.ts'),
    import('../runs/fleet-places.ts'),
  ])
  const sinceMs = sinceOf(flags)
  const { sitemap: sitemaps = [], site: sites = [], url: urls = [], urlsFile } = flags
  if (sitemaps.length + sites.length + urls.length === 0 && urlsFile === undefined) {
    throw new ScrapeError('E_USAGE', 'there is nothing to queue', {
      fix: 'Name a --sitemap, a --site, a --url or an --urls-file.',
    })
  }
  const config = await configOf(flags as unknown as Record<string, unknown>)
  const loaded = await loadScraper(flags.scraper)
  const rules = flags.rules === undefined ? undefined : readRules(flags.rules)
  const stop = new AbortController()
  const onSignal = () => stop.abort(new ScrapeError('E_STOPPED', 'stopped while the queue was being filled'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const { plural, printable } = await import('./style.ts')
  const say = (line: string) => void (flags.quiet || note(`${printable(line)}`))
  let unread = 0
  let otherHosts = 0
  const onProblem = (message: string, foreign = 0) => {
    otherHosts += foreign
    if (++unread <= PROBLEMS_SHOWN_MAX) say(message)
  }
  await using chain = await one.openOnePage({
    config,
    limits: { ...one.unhurriedLimits(one.limitsOf(config.limits), config.limits), bodyMax: SITEMAP_BYTES_MAX },
    typed: [...sitemaps, ...sites].map((text) => normaliseUrl(text)),
  })
  const { createEventBus } = await import('../core/events.ts')
  const bus = createEventBus()
  bus.on((event) => {
    if (event.type === 'log' && event.level !== 'debug') say(event.message)
  })
  const started = await startDistributed({
    loaded,
    source: flags.scraper,
    args: {},
    config,
    bus,
    stop: stop.signal,
    urls: produced({
      ...{ chain, sitemaps, sites, urls, urlsFile, sinceMs, rules, signal: stop.signal, onProblem },
      hosts: flags.host ?? [],
      isAnyHost: flags.anyHost === true,
      urlsMax: maxOf(flags),
    }),
    ...(flags.rules === undefined ? {} : { rulesFile: flags.rules }),
    ...(flags.runId === undefined ? {} : { resume: flags.runId }),
  })
  const { self } = await import('../observe/terminal.ts')
  const command = [self(), ...workerCommand(flags.scraper, started), ...workerPlaces(config)].map(shellWord).join(' ')
  const fileNote = storeFileNote(storeUrlOf(config.values))
  if (flags.json) {
    const { status, runId: run_id, enqueued, refused } = started
    printJson({ status, run_id, enqueued, refused, otherHosts, problems: unread, worker_command: command })
  } else if (!flags.quiet) {
    print(`${loaded.scraper.name} ${started.runId}: ${plural(started.enqueued, 'URL')} added to the queue`)
    print(`  workers, as many as you like:\n  ${command}`)
  }
  if (otherHosts > 0)
    say(
      `${plural(otherHosts, 'entry', 'entries')} for other hosts skipped; to queue them: --host HOST for one host, --any-host for all`,
    )
  if (fileNote !== undefined) say(`note: ${fileNote}`)
  if (unread > PROBLEMS_SHOWN_MAX) say(`${plural(unread - PROBLEMS_SHOWN_MAX, 'more problem')} of sitemaps not shown`)
  if (started.refused > 0) {
    say(`${plural(started.refused, 'URL')} refused, now dead letters: ${self()} dlq groups ${started.runId}`)
    for (const problem of started.problems) say(`  ${problem}`)
  }
  return 0
}

const ENTRIES_MAX = 100_000_000

function maxOf({ max }: ProduceFlags): number {
  const entries = Number(max)
  if (Number.isSafeInteger(entries) && entries >= 1 && entries <= ENTRIES_MAX) return entries
  throw new ScrapeError('E_USAGE', `--max takes a whole number from 1 to ${ENTRIES_MAX}, got ${JSON.stringify(max)}`)
}

function sinceOf({ since }: ProduceFlags): number | undefined {
  if (since === undefined) return undefined
  const atMs = Date.parse(since)
  if (!Number.isNaN(atMs)) return atMs
  throw new ScrapeError('E_USAGE', `--since takes a date such as 2026-11-01, got ${JSON.stringify(since)}`)
}
