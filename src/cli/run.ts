/** `sluice run`: runs a scraper in this process, shows its progress and its result. */
import type { Command } from 'commander'
import { addArgs, addOptions, argsOf, configOf, RUN_HERE_OPTIONS } from './flags.ts'
import { note, print } from './output.ts'

interface RunFlags {
  arg?: string[]
  site?: string
  resume?: string | true
  record?: boolean
  dryRun?: boolean
  json?: boolean
  quiet?: boolean
}

export function defineRun(program: Command): void {
  const command = program
    .command('run [scraper]')
    .description('run a scraper on this machine (name or file; optional if the project has only one)')
    .option('--resume [run]', 'resume a run: its id, or the latest unfinished run of this scraper')
    .option('--record', 'save pages next to the scraper, for `sluice test`')
    .option('--dry-run', 'show what would be done, without doing it')
    .option('--json', 'print the run record as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .action(async (name: string | undefined, flags: RunFlags) => {
      process.exitCode = await run(name, flags)
    })
  addArgs(command)
  addOptions(command, RUN_HERE_OPTIONS)
}

async function run(given: string | undefined, flags: RunFlags): Promise<number> {
  const [{ loadScraper, onlyScraper, pagesFolder }, { argumentNames }, { runHere }] = await Promise.all([
    import('../config/load-scraper.ts'),
    import('../config/scraper-arguments.ts'),
    import('./run-here.ts'),
  ])
  const name = given ?? onlyScraper()
  const config = await configOf(flags as Record<string, unknown>)
  const { scraper, file } = await loadScraper(name)
  const args = argsOf(flags, argumentNames(scraper))
  if (flags.dryRun) {
    const { planText } = await import('./plan.ts')
    print(await planText({ scraper, file, args, config }))
    return 0
  }
  const { demoSiteFor } = await import('../app/demo/demo-for-run.ts')
  await using demo = await demoSiteFor(scraper, args)
  if (demo !== undefined && !flags.quiet && !flags.json)
    note(`${demo.url} is a demo site that is served during this run`)
  return await runHere({
    scraper,
    file,
    source: name,
    config,
    args,
    resume: flags.resume,
    recordTo: flags.record ? pagesFolder(file) : undefined,
    isQuiet: flags.quiet === true || flags.json === true,
    isJson: flags.json === true,
  })
}
