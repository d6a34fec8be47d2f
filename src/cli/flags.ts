/** Flags of the run options, created from their declarations, and the resulting configuration. */
import { type Command, Option } from 'commander'
import { type Config, resolveConfig } from '../config/config.ts'
import { optionBounds } from '../config/option-bounds.ts'
import { flagName, OPTIONS, type OptionName, specOf } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'

/** Every option of a run, in order of declaration. */
export const RUN_OPTIONS = Object.keys(OPTIONS) as OptionName[]
/** Options of a run that only this machine works on. */
export const RUN_HERE_OPTIONS = RUN_OPTIONS.filter((name) => name !== 'region')

/** With more options than this, rarely needed ones are listed under their own heading. */
const SHORT_LIST_MAX = 30

export function addOptions(command: Command, names: readonly OptionName[]): Command {
  for (const name of names) {
    const { value, isList, isAdvanced, describe } = specOf(name)
    const flags =
      value === undefined ? flagName(name) : `${flagName(name)} ${value.startsWith('[') ? value : `<${value}>`}`
    const option = new Option(flags, describe)
    if (isList) option.argParser(collect)
    if (isAdvanced && names.length > SHORT_LIST_MAX) option.helpGroup('Advanced options:')
    command.addOption(option)
  }
  // Created when the help is printed, not at every start: reading all schemas takes longer than parsing the command line.
  return command.configureHelp({
    ...command.configureHelp(),
    optionDescription: (option) => describeOption(option, names),
  })
}

/** What a flag does, its default and its bounds. */
export function describeOption(option: Option, names: readonly OptionName[] = RUN_OPTIONS): string {
  const name = names.find((one) => flagName(one) === option.long)
  const fixed =
    option.defaultValue === undefined || Array.isArray(option.defaultValue) ? '' : ` (default: ${option.defaultValue})`
  if (name === undefined) return `${option.description}${fixed}`
  const { accepts, default: usual } = optionBounds(name)
  const range = /^(?:duration|size|whole number|number), (.*)$/.exec(accepts)?.[1] ?? /^off, or .*$/.exec(accepts)?.[0]
  const notes = [
    ...(specOf(name).isList ? ['may be repeated'] : []),
    ...(range === undefined ? [] : [range]),
    ...(usual === 'no' ? [] : [`default: ${usual}`]),
  ]
  return notes.length === 0 ? option.description : `${option.description} (${notes.join('; ')})`
}

/** For flags that may be repeated. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]

/** Flags of a command → the complete configuration. */
export async function configOf(flags: Record<string, unknown>): Promise<Config> {
  const known = Object.entries(flags).filter(([name, value]) => name in OPTIONS && value !== undefined)
  return await resolveConfig({ flags: Object.fromEntries(known) })
}

/** `--arg name=value` …, and `--site URL` as the scraper's `site` or `base`. */
export function addArgs(command: Command): Command {
  return command
    .option('--arg <name=value>', 'a scraper argument (may be repeated)', collect)
    .option('--site <URL>', 'base URL of the target site (sets the scraper argument "site" or "base")')
}

export function argsOf(flags: { arg?: string[]; site?: string }, known: readonly string[]): Record<string, unknown> {
  const args: Record<string, unknown> = {}
  for (const pair of flags.arg ?? []) {
    const at = pair.indexOf('=')
    if (at < 1) throw new ScrapeError('E_USAGE', `--arg takes name=value, got ${JSON.stringify(pair)}`)
    args[pair.slice(0, at)] = pair.slice(at + 1)
  }
  if (flags.site !== undefined) {
    const name = ['site', 'base'].find((one) => known.includes(one))
    if (name === undefined)
      throw new ScrapeError('E_USAGE', 'this scraper has no argument "site" or "base", so --site has no effect')
    args[name] = flags.site
  }
  return args
}
