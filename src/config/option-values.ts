/** Every option with its value, origin, accepted values and description, from its single declaration. */
import { redactValue } from '../core/redact.ts'
import { MASK, redactText } from '../core/redact-text.ts'
import type { Config } from './config.ts'
import { optionBounds, optionSchema } from './option-bounds.ts'
import { envName, flagName, type OptionName, optionSpecs } from './option-table.ts'

export interface OptionValue {
  name: OptionName
  flag: string
  env: string
  /** Without secrets; undefined if nothing is set and there is no default. */
  value: unknown
  origin: string
  /** Accepted values, in words. */
  accepts: string
  describe: string
}

/** Limits that the scraper sets itself apply unless they are overridden outside it. */
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

/** Variables for other commands; shown so that users see they are read. */
export function otherVariables(env: NodeJS.ProcessEnv = process.env): { env: string; value: string }[] {
  return ['SLUICE_STORE', 'SLUICE_REDIS'].flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [{ env: name, value: redactText(withoutLogin(value)) }]
  })
}

const LOGIN_WITH_SPACE = /^([a-z][a-z\d+.-]*:\/\/)(?=\S*\s)[\s\S]*@/i

/** A value is a single URL, so white space before its last `@` belongs to the login; in running text it would end the URL. */
function withoutLogin<T>(value: T): T {
  if (typeof value === 'string') return value.replace(LOGIN_WITH_SPACE, `$1${MASK}@`) as T
  return Array.isArray(value) ? (value.map(withoutLogin) as T) : value
}

function valueAt(limits: object | undefined, path: string): unknown {
  let value: unknown = limits
  for (const name of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[name]
  return value
}
