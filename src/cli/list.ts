/** `sluice list`: the available scrapers and their arguments. */
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { addOptions, configOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

interface ListFlags extends ReadFlags {
  all?: boolean
  names?: boolean
}

const HELP = `
Scrapers are found in ./scrapers (NAME.ts, or NAME/NAME.ts) and among the bundled ones. The bundled job boards are hidden unless
you ask for them.

Examples:
  sluice list
  sluice list --all
  sluice list --json`

export function defineList(program: Command): void {
  const command = program
    .command('list')
    .description('list the scrapers, their routes and arguments')
    .option('--all', 'include the bundled job boards')
    .option('--names', 'print only the names')
    .addHelpText('after', HELP)
    .action(async (flags: ListFlags) => {
      process.exitCode = await list(flags)
    })
  addReadFlags(command, 'the scrapers')
  addOptions(command, ['boards'])
}

interface ListedScraper {
  name: string
  description: string | null
  file: string
  isBundled: boolean
  routes: Record<string, string | null>
  args: { name: string; default: unknown }[]
  /** Disabled until `boards` lists it; null if it has no such switch. */
  optIn: { isOn: boolean; why: string } | null
  /** Why it cannot be loaded. */
  error: string | null
}

async function list(flags: ListFlags): Promise<number> {
  const { listScrapers } = await import('../config/load-scraper.ts')
  const config = await configOf(flags as Record<string, unknown>)
  const all = listScrapers()
  const found = all.filter(({ name, isBoard }) => flags.all || !isBoard || config.values.boards.includes(name))
  if (flags.names) {
    print(found.map((scraper) => scraper.name).join('\n'))
    return 0
  }
  const scrapers: ListedScraper[] = []
  for (const one of found) scrapers.push(await describe(one, config))
  if (flags.json) printJson(scrapers)
  else if (!flags.quiet) print(await listText(scrapers, all.length - found.length))
  return scrapers.some((scraper) => scraper.error !== null) ? 2 : 0
}

async function describe(
  { name, file, isBundled }: { name: string; file: string; isBundled: boolean },
  config: Config,
): Promise<ListedScraper> {
  const [{ loadScraper }, { argumentsOf }, { isTurnedOn }] = await Promise.all([
    import('../config/load-scraper.ts'),
    import('../config/scraper-arguments.ts'),
    import('../config/opt-in.ts'),
  ])
  const known = { name, file, isBundled, description: null, routes: {}, args: [], optIn: null, error: null }
  try {
    const { scraper } = await loadScraper(file)
    return {
      ...known,
      description: scraper.description ?? null,
      routes: Object.fromEntries(Object.entries(scraper.routes).map(([route, { match }]) => [route, match ?? null])),
      args: argumentsOf(scraper),
      optIn: scraper.optIn === undefined ? null : { isOn: isTurnedOn(scraper, config), why: scraper.optIn },
    }
  } catch (error) {
    return { ...known, error: (error as Error).message }
  }
}

async function listText(scrapers: ListedScraper[], hidden: number): Promise<string> {
  const [{ paintFor, table }, { self }, { relative }] = await Promise.all([
    import('./style.ts'),
    import('../observe/terminal.ts'),
    import('node:path'),
  ])
  const paint = paintFor(process.stdout)
  if (scrapers.length === 0) return `no scrapers in ./scrapers; make one: ${self()} new NAME URL`
  const blocks = scrapers.map(({ name, description, file, isBundled, routes, args, optIn, error }) => {
    const near = relative(process.cwd(), file)
    const rows: [string, string][] = [
      ['file', `${near.startsWith('..') ? file : near}${isBundled ? ' (bundled)' : ''}`],
      ...(error === null
        ? [
            [
              'routes',
              Object.entries(routes)
                .map(([route, match]) => (match === null ? route : `${route} ${match}`))
                .join(' · '),
            ] as [string, string],
            ...(optIn === null ? [] : [['switch', switchText(optIn, name)] as [string, string]]),
            ...(args.length === 0 ? [] : [['args', args.map(argumentText).join(' · ')] as [string, string]]),
          ]
        : [['error', paint('red', error)] as [string, string]]),
    ]
    const body = table(
      rows.map(([label, text]) => [paint('dim', label), text]),
      { indent: 2 },
    )
    return `${paint('bold', name)}${description === null ? '' : `  ${description}`}\n${body}`
  })
  const note = `${hidden} bundled job boards are not shown: ${self()} list --all`
  return [...blocks, ...(hidden === 0 ? [] : [paint('dim', note)])].join('\n\n')
}

function switchText({ isOn, why }: NonNullable<ListedScraper['optIn']>, name: string): string {
  return isOn ? `on: ${why}` : `off, turned on by --boards ${name}: ${why}`
}

function argumentText({ name, default: value }: { name: string; default: unknown }): string {
  return value === undefined
    ? `${name} (needed)`
    : value === null
      ? name
      : `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
}
