/** Configuration: defaults < sluice.config.ts < .env < SLUICE_* < flags. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import { ScrapeError } from '../core/errors.ts'
import { type Limits, limitsSchema } from '../core/options.ts'
import { redactAll } from '../core/redact.ts'
import { type ConfigValues, envName, flagName, OPTIONS, type OptionName, optionSpecs } from './option-table.ts'

export interface Config {
  values: ConfigValues
  /** Limits set outside the scraper. */
  limits: Limits
  origins: Record<OptionName, string>
}

interface ConfigRequest {
  flags?: Partial<Record<OptionName, unknown>>
  cwd?: string
  env?: NodeJS.ProcessEnv
}

/** Throws E_OPTION with all problems in one message; nothing unknown is silently ignored. */
export async function resolveConfig({
  flags = {},
  cwd = process.cwd(),
  env = process.env,
}: ConfigRequest = {}): Promise<Config> {
  const layers: [origin: (name: OptionName) => string, values: Record<string, unknown>][] = [
    [() => 'sluice.config.ts', await readConfigFile(cwd)],
    [() => '.env', fromEnv(readDotEnv(cwd))],
    [(name) => `environment ${name in OPTIONS ? envName(name) : name}`, fromEnv(env)],
    [(name) => `flag ${flagName(name)}`, flags],
  ]
  const given: Record<string, unknown> = {}
  const origins = Object.fromEntries(
    optionSpecs.map(([name, spec]) => [name, spec.limit === undefined ? 'default' : 'the scraper, else default']),
  )
  const problems: string[] = []
  for (const [origin, values] of layers) {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue
      if (!(name in OPTIONS)) {
        problems.push(`${origin(name as OptionName)}: there is no option "${name}"`)
        continue
      }
      given[name] = value
      origins[name] = origin(name as OptionName)
    }
  }
  const values: Record<string, unknown> = {}
  for (const [name, spec] of optionSpecs) {
    const parsed = spec.schema.safeParse(given[name])
    if (parsed.success) values[name] = parsed.data
    else
      problems.push(
        ...parsed.error.issues.map(
          ({ path, message }) =>
            `${[name, ...path].join('.')} (${origins[name]}): ${message}${gotText(name, given[name])}`,
        ),
      )
  }
  problems.push(...limitProblems(values, origins), ...identityProblems(values))
  if (problems.length > 0)
    throw new ScrapeError('E_OPTION', `${problems.length} option${problems.length > 1 ? 's are' : ' is'} not usable`, {
      notes: problems,
    })
  return { values: values as ConfigValues, limits: toLimits(values), origins: origins as Config['origins'] }
}

/** A value that may contain a password is not repeated: it was rejected, so its format is unknown. */
const MAY_HOLD_PASSWORD = /^(?:prox(?:y|ies)|frontier|store|redis|sink|cacheStore|files|otel|sites|metrics)$/
const gotText = (name: string, value: unknown) =>
  MAY_HOLD_PASSWORD.test(name) ? '' : `, got ${JSON.stringify(redactAll(value))}`

function identityProblems(values: Record<string, unknown>): string[] {
  const problems: string[] = []
  if (values['proxy'] !== undefined && values['proxies'] !== undefined)
    problems.push('proxy and proxies: list all of them in proxies')
  if (values['identity'] !== 'honest' && values['userAgent'] !== undefined)
    problems.push('identity and userAgent cannot be combined: browser headers need the matching user agent')
  return problems
}

/** Limits are validated with the scraper's own when a run starts; here each is reported by where it was set. */
function limitProblems(values: Record<string, unknown>, origins: Record<string, string>): string[] {
  const parsed = limitsSchema.safeParse(toLimits(values))
  if (parsed.success) return []
  const named = new Map(
    optionSpecs.flatMap(([name, { limit }]) => (limit === undefined ? [] : [[limit, name] as const])),
  )
  return parsed.error.issues
    .map((issue) => ({ issue, name: named.get(issue.path.join('.')) ?? issue.path.join('.') }))
    .filter(({ name }) => values[name] !== undefined)
    .map(({ issue, name }) => `${name} (${origins[name]}): ${issue.message}, got ${JSON.stringify(values[name])}`)
}

/** `--concurrency` also lifts the per-host limit, unless `--per-host` says less. */
export function toLimits(values: Record<string, unknown>): Limits {
  const limits: Record<string, unknown> & { perHost: Record<string, unknown> } = { perHost: {} }
  if (values['concurrency'] !== undefined) limits.perHost['concurrency'] = asNumber(values['concurrency'])
  for (const [name, { limit, value: shape }] of optionSpecs) {
    if (limit === undefined || values[name] === undefined) continue
    const value = shape?.startsWith('N') ? asNumber(values[name]) : values[name]
    const [group, field] = limit.split('.') as [string, string?]
    if (field === undefined) limits[group] = value
    else limits.perHost[field] = value
  }
  return limits as Limits
}

/** Flags and variables are text; the record of a run shows numbers. Other values are kept for the check to report. */
function asNumber(value: unknown): unknown {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  return Number.isNaN(number) ? value : number
}

/** The limits set by a flag, not by the environment or a file. */
export function flagLimits({ values, origins }: Config): Limits {
  return toLimits(
    Object.fromEntries(Object.entries(values).filter(([name]) => origins[name as OptionName].startsWith('flag '))),
  )
}

async function readConfigFile(cwd: string): Promise<Record<string, unknown>> {
  const path = join(cwd, 'sluice.config.ts')
  if (!existsSync(path)) return {}
  try {
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown }
    if (typeof module.default === 'object' && module.default !== null) return module.default as Record<string, unknown>
  } catch (cause) {
    throw new ScrapeError('E_OPTION', `${path} cannot be loaded: ${(cause as Error).message}`, { cause })
  }
  throw new ScrapeError('E_OPTION', `${path} has no default export with options`)
}

function readDotEnv(cwd: string): NodeJS.Dict<string> {
  const path = join(cwd, '.env')
  return existsSync(path) ? parseEnv(readFileSync(path, 'utf8')) : {}
}

/** Our variables that are not options of a run. */
const OTHER_VARIABLES = /^SLUICE_(?:SELF|API_KEY|API_KEY_FILE|TEST_\w+)$/

function fromEnv(env: NodeJS.Dict<string>): Record<string, unknown> {
  const byEnvName = new Map<string, string>(optionSpecs.map(([name]) => [envName(name), name]))
  const values: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('SLUICE_') || value === undefined || value === '' || OTHER_VARIABLES.test(name)) continue
    const option = byEnvName.get(name.replace(/_FILE$/, ''))
    if (option !== undefined && name.endsWith('_FILE')) {
      const secret = readSecret(name, value)
      if (secret !== '') values[option] ??= secret // an empty file is like an empty variable: not set
    } else values[byEnvName.get(name) ?? name] = value
  }
  return values
}

/** `SLUICE_FRONTIER_FILE=/run/secrets/db`: the value is in a file, where `ps` and crash reports do not show it. */
export function readSecret(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new ScrapeError('E_OPTION', `${name}: ${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
}
