/** `sluice crawl`: follows the links of a site and records every page. No code needed. */
import type { Command } from 'commander'
import { addOptions, collect, configOf, RUN_HERE_OPTIONS } from './flags.ts'
import { print } from './output.ts'

interface CrawlFlags {
  select?: string[]
  resume?: string | true
  dryRun?: boolean
  json?: boolean
  quiet?: boolean
}

const HELP = `
Saves for every page: url, status, title, links, depth, type, from (the page that linked to it first), note (why its links were not
followed), and your --select fields. Stays on the site's host (with or without www.), at most 1,000 pages and 10 links deep
unless --pages and --depth say otherwise. Links marked nofollow are not followed. Crawler traps (repeated content,
growing paths, endless new parameters) are detected, reported and not followed.

Examples:
  sluice crawl https://books.toscrape.com/ --pages 50
  sluice crawl https://shop.example/ --select price=.price --select image='img.cover@src' --format csv
  sluice crawl https://shop.example/ --resume --pages 5000`

export function defineCrawl(program: Command): void {
  const command = program
    .command('crawl [url]')
    .description('crawl a site without code: every page with its title and links')
    .option('--select <name=css>', 'an additional field: the text of CSS, or CSS@ATTRIBUTE (may be repeated)', collect)
    .option('--resume [run]', 'resume a crawl: its id, or the latest unfinished one of this site')
    .option('--dry-run', 'show what would be done, without doing it')
    .option('--json', 'print the run record as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (url: string | undefined, flags: CrawlFlags) => {
      process.exitCode = await crawl(url, flags)
    })
  addOptions(command, RUN_HERE_OPTIONS)
}

async function crawl(given: string | undefined, flags: CrawlFlags): Promise<number> {
  const [{ siteCrawl }, { planCrawl }, { runHere }] = await Promise.all([
    import('../app/site/site-crawl.ts'),
    import('../app/site/plan-crawl.ts'),
    import('./run-here.ts'),
  ])
  const config = await configOf(flags as Record<string, unknown>)
  const plan = planCrawl({ url: given, select: flags.select, resume: flags.resume, out: config.values.out })
  const scraper = siteCrawl(plan.name, plan.fields)
  if (flags.dryRun) {
    const { planText } = await import('./plan.ts')
    print(await planText({ scraper, file: plan.file, args: plan.args, config }))
    return 0
  }
  return await runHere({
    scraper,
    file: plan.file,
    config,
    args: plan.args,
    resume: plan.resume,
    isQuiet: flags.quiet === true || flags.json === true,
    isJson: flags.json === true,
  })
}
