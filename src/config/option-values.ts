/** Every option with its value, where that came from, what it may be, and its sentence: from its one declaration. */
import { redactValue } from '../core/redact.ts'
import { MASK, redactText } from '../core/redact-text.ts'
import type { Config } from './config.ts'
import { optionBounds, optionSchema } from './option-bounds.ts'
import { envName, flagName, type OptionName, optionSpecs } from './option-table.ts'

export interface OptionValue {
  name: OptionName
  flag: string
  env: string
  /** Without secrets; undefined when nothing is set and there is no default. */
  value: unknown
  origin: string
  /** What it may be, in words. */
  accepts: string
  describe: string
}

/** `scraperLimits` are those a scraper sets itself: they stand where nobody outside it says otherwise. */
export function optionValues(config: Config, scraper?: { name: string; limits?: object }): OptionValue[] {
  return optionSpecs.map(([name, spec]) => {
    const given = config.values[name] as unknown
    const own = spec.limit === undefined ? undefined : valueAt(scraper?.limits, spec.limit)
    const fallback = optionSchema(name).safeParse(undefined).data
    const isSet = given !== undefined && !/default$/.test(config.origins[name])
    const value = isSet ? given : (own ?? given ?? fallback)
    const origin = isSet ? config.origins[name] : own !== undefined ? `scraper ${scraper!.name}` : 'default'
    return {
      name,
      flag: flagName(name),
      env: envName(name),
      value: redactValue(withoutLogin(value)),
      origin,
      accepts: optionBounds(name).accepts,
      describe: spec.describe,
    }
  })
}

/** Variables that serve other commands; shown so that one sees they are heard. */
export function otherVariables(env: NodeJS.ProcessEnv = process.env): { env: string; value: string }[] {
  return ['SLUICE_STORE', 'SLUICE_REDIS'].flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [{ env: name, value: redactText(withoutLogin(value)) }]
  })
}

const LOGIN_WITH_SPACE = /^([a-z][a-z\d+.-]*:\/\/)(?=\S*\s)[\s\S]*@/i

/** A value is one URL, so white space before its last `@` belongs to the login; in a text it would end the URL. */
function withoutLogin<T>(value: T): T {
  if (typeof value === 'string') return value.replace(LOGIN_WITH_SPACE, `$1${MASK}@`) as T
  return Array.isArray(value) ? (value.map(withoutLogin) as T) : value
}

function valueAt(limits: object | undefined, path: string): unknown {
  let value: unknown = limits
  for (const name of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[name]
  return value
}
