/** Flags of the run options, made from their one declaration, and the configuration they end up in. */
import type { Command } from 'commander'
import { type Config, resolveConfig } from '../config/config.ts'
import { flagName, OPTIONS, type OptionName } from '../config/option-table.ts'
import { ScrapeError } from '../core/errors.ts'

/** Every option of a run, in the order of their declaration. */
export const RUN_OPTIONS = Object.keys(OPTIONS) as OptionName[]
/** Those of a run that only this machine works on. */
export const RUN_HERE_OPTIONS = RUN_OPTIONS.filter((name) => name !== 'region')

export function addOptions(command: Command, names: readonly OptionName[]): Command {
  for (const name of names) {
    const spec: { value?: string; isList?: boolean; describe: string } = OPTIONS[name]
    const { value, isList, describe } = spec
    const flags =
      value === undefined ? flagName(name) : `${flagName(name)} ${value.startsWith('[') ? value : `<${value}>`}`
    if (isList) command.option(flags, `${describe} (may be repeated)`, collect)
    else command.option(flags, describe)
  }
  return command
}

/** For flags that may be repeated. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]

/** Flags of a command → the whole configuration. */
export async function configOf(flags: Record<string, unknown>): Promise<Config> {
  const known = Object.entries(flags).filter(([name, value]) => name in OPTIONS && value !== undefined)
  return await resolveConfig({ flags: Object.fromEntries(known) })
}

/** `--arg name=value` …, and `--site URL` as the scraper's `site` or `base`. */
export function addArgs(command: Command): Command {
  return command
    .option('--arg <name=value>', 'an argument of the scraper (may be repeated)', collect)
    .option('--site <URL>', 'base of the target site (the argument "site" or "base" of the scraper)')
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
      throw new ScrapeError('E_USAGE', 'this scraper has no argument "site" or "base", so --site means nothing to it')
    args[name] = flags.site
  }
  return args
}
