/** `sluice robots`: what a site's robots.txt says about a URL, and the deciding line. */
import type { Command } from 'commander'
import type { RobotsAnswer } from '../app/site/robots-answer.ts'
import type { OptionName } from '../config/option-table.ts'
import { addOptions, configOf } from './flags.ts'
import { note, print, printJson } from './output.ts'
import { errorText } from './print-error.ts'
import { formatMs, type Paint, paintFor, printable, table } from './style.ts'

const OPTIONS: OptionName[] = ['timeout', 'contact', 'userAgent', 'allowPrivate', 'allowAddress']

interface RobotsFlags {
  json?: boolean
  quiet?: boolean
  verbose?: boolean
}

const HELP = `
Exit code 0 if the URL is allowed, 1 if it is not or robots.txt cannot be read, 2 if the URL is not valid.

Examples:
  sluice robots https://shop.example/cart
  sluice robots https://shop.example/ --user-agent 'MyBot/1.0'`

export function defineRobots(program: Command): void {
  const command = program
    .command('robots <url>')
    .description('check whether robots.txt allows a URL, and which rule applies')
    .option('--json', 'print the answer as JSON')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (url: string, flags: RobotsFlags) => {
      process.exitCode = await robots(url, flags)
    })
  addOptions(command, OPTIONS)
}

async function robots(given: string, flags: RobotsFlags): Promise<number> {
  const [{ urlArgument }, { askRobots }] = await Promise.all([
    import('../app/tools/one-page.ts'),
    import('../app/site/robots-answer.ts'),
  ])
  const answer = await askRobots(urlArgument(given), await configOf(flags as Record<string, unknown>))
  if (flags.json) printJson(answer.json)
  else if (answer.error !== undefined) {
    const options = { paint: paintFor(process.stderr), columns: process.stderr.columns ?? 100 }
    note(`${errorText(answer.error, { ...options, verbose: flags.verbose === true })}`)
  } else if (!flags.quiet) {
    const rows = factRows(answer.json)
    const paint = paintFor(process.stdout)
    const facts = table(
      rows.map(([label, text]) => [paint('dim', label), printable(text)]),
      { indent: 2 },
    )
    print(`${headLine(answer.json, paint)}\n${facts}`)
  }
  return answer.json.isAllowed ? 0 : 1
}

function headLine({ isAllowed, url, agent }: RobotsAnswer['json'], paint: Paint): string {
  const word = isAllowed ? paint(['green', 'bold'], 'allowed') : paint(['red', 'bold'], 'forbidden')
  return `${word} for ${agent}: ${url}`
}

function factRows(answer: RobotsAnswer['json']): [string, string][] {
  const { rule, group, agent, crawlDelayMs, sitemaps = [] } = answer
  return [
    ['file', answer.robotsUrl],
    [
      'group',
      group == null ? `none for ${agent} or *: the file is missing, empty or names others` : `User-agent: ${group}`,
    ],
    ['line', rule == null ? 'no rule matches, and what no rule forbids is allowed' : `${rule.line}: ${rule.text}`],
    ...(crawlDelayMs == null ? [] : [['delay', `${formatMs(crawlDelayMs)} between two requests`] as [string, string]]),
    ...sitemaps.map((url, i): [string, string] => [i === 0 ? 'sitemaps' : '', url]),
  ]
}
