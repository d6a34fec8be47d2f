/** `sluice config`: every option, its value, and where it comes from. */
import type { Command } from 'commander'
import { OPTIONS, type OptionName } from '../config/option-table.ts'
import type { OptionValue } from '../config/option-values.ts'
import { addOptions, configOf } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

interface ConfigFlags extends ReadFlags {
  explain?: boolean
  scraper?: string
}

const HELP = `
Later ones override earlier ones: defaults < the scraper's own limits < sluice.config.ts < .env < SLUICE_* < flags. Secrets are never printed.

Examples:
  sluice config
  sluice config --explain rps timeout
  sluice config --scraper books
  SLUICE_RPS=2 sluice config --json`

export function defineConfig(program: Command): void {
  const command = program
    .command('config [option...]')
    .description('show every option: value, origin, default and bounds')
    .option('--explain', 'also show allowed values, description, flag and environment variable')
    .option('--scraper <name>', 'include the limits that this scraper sets')
    .addHelpText('after', HELP)
    .action(async (words: string[], flags: ConfigFlags) => {
      process.exitCode = await config(words, flags)
    })
  addReadFlags(command, 'the options')
  // Flags count here as they would for `run`, and are shown as such; the help of `run` lists them.
  addOptions(command, Object.keys(OPTIONS) as OptionName[])
  for (const option of command.options) if (option.attributeName() in OPTIONS) option.hideHelp()
}

async function config(words: string[], flags: ConfigFlags): Promise<number> {
  const [{ optionValues, otherVariables }, { limitsOf }] = await Promise.all([
    import('../config/option-values.ts'),
    import('../app/tools/one-page.ts'),
  ])
  const resolved = await configOf(flags as Record<string, unknown>)
  limitsOf(resolved.limits) // throws for limits that a run would reject
  const scraper =
    flags.scraper === undefined
      ? undefined
      : (await (await import('../config/load-scraper.ts')).loadScraper(flags.scraper)).scraper
  const all = optionValues(resolved, scraper)
  const shown = words.length === 0 ? all : await chosen(words, all)
  if (flags.json) printJson({ options: shown, environment: otherVariables() })
  else if (!flags.quiet) {
    const isLong = flags.explain === true || words.length > 0
    print(await (isLong ? longText(shown) : shortText(shown)))
    if (words.length === 0) for (const { env, value } of otherVariables()) print(`${env}  ${value}`)
  }
  return 0
}

/** `per-host`, `--per-host`, `perHost` and `SLUICE_PER_HOST` are the same option. */
async function chosen(words: string[], all: OptionValue[]): Promise<OptionValue[]> {
  const [{ ScrapeError }, { didYouMean }] = await Promise.all([
    import('../core/errors.ts'),
    import('../core/did-you-mean.ts'),
  ])
  return words.map((word) => {
    const plain = (text: string) =>
      text
        .replace(/^(?:--|SLUICE_)/i, '')
        .replace(/[-_]/g, '')
        .toLowerCase()
    const found = all.find(({ name }) => plain(name) === plain(word))
    if (found !== undefined) return found
    const near = didYouMean(
      word,
      all.map(({ name }) => name),
    )
    throw new ScrapeError('E_USAGE', `there is no option ${JSON.stringify(word)}`, {
      notes: near === undefined ? [] : [`did you mean ${near}?`],
      fix: 'See all of them with `sluice config`.',
    })
  })
}

/** Durations and sizes with units; a bare number would say nothing. */
async function readable({ name, value, accepts, origin }: OptionValue): Promise<string> {
  const [{ formatMs }, { optionBounds }] = await Promise.all([
    import('./style.ts'),
    import('../config/option-bounds.ts'),
  ])
  if (origin === 'default') return optionBounds(name).default
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return 'none'
  if (Array.isArray(value)) return value.join(', ')
  if (typeof value === 'object') return JSON.stringify(value)
  if (typeof value !== 'number' || value === 0) return String(value)
  if (accepts.startsWith('duration')) return formatMs(value)
  if (accepts.startsWith('size') && value % 1024 ** 2 === 0) return `${value / 1024 ** 2} MiB`
  return accepts.startsWith('percentage') ? `${value * 100} %` : String(value)
}

async function shortText(options: OptionValue[]): Promise<string> {
  const { paintFor, printable, table } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const rows: string[][] = []
  for (const option of options) {
    const { name, origin } = option
    const from = paint(origin === 'default' ? 'dim' : 'cyan', origin)
    rows.push([paint('bold', name), printable(await readable(option)), from])
  }
  return `${table(rows)}\n\n${paint('dim', 'more: sluice config --explain [OPTION]')}`
}

async function longText(options: OptionValue[]): Promise<string> {
  const { paintFor, printable } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const blocks: string[] = []
  for (const option of options) {
    const { name, origin, accepts, describe, flag, env } = option
    const from = paint(origin === 'default' ? 'dim' : 'cyan', `(${origin})`)
    blocks.push(
      `${paint('bold', name)} = ${printable(await readable(option))}  ${from}`,
      `  ${describe}`,
      `  ${paint('dim', `${accepts} · ${flag} · ${env}`)}`,
    )
  }
  return blocks.join('\n')
}
