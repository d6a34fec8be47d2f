/** The arguments of a scraper: what it accepts with `--arg`, as far as its schema tells, and whether the given ones are valid. */
import { ScrapeError } from '../core/errors.ts'
import { type Scraper, schemaFields } from '../core/scraper.ts'
import type { Json } from '../core/task.ts'

/** `default` is undefined if the argument is required, null if it is optional without a default. */
interface ScraperArgument {
  name: string
  default: unknown
}

export function argumentsOf(scraper: Scraper): ScraperArgument[] {
  const names = argumentNames(scraper)
  const { shape } = (scraper.args ?? {}) as { shape?: Record<string, NonNullable<Scraper['args']>> }
  return names.map((name) => ({ name, default: defaultOf(shape?.[name]) }))
}

/** Validating undefined is the only way to get the default from any Standard Schema. */
function defaultOf(schema: Scraper['args']): unknown {
  const result = schema?.['~standard'].validate(undefined)
  if (result === undefined || result instanceof Promise || result.issues !== undefined) return undefined
  const value = result.value as unknown
  return value === undefined || value === Number.MAX_SAFE_INTEGER ? null : value
}

/** The arguments a scraper accepts, as far as its schema tells. */
export function argumentNames(scraper: Scraper): string[] {
  return scraper.args === undefined ? [] : schemaFields(scraper.args)
}

/**
 * Arguments from the command line are text; a schema may want numbers or booleans. A field that the schema rejects as text is
 * tried once more as the JSON value it spells.
 */
export function checkArgs(scraper: Scraper, given: Record<string, unknown>): Json {
  const schema = scraper.args
  if (schema === undefined) {
    const names = Object.keys(given)
    if (names.length === 0) return {}
    throw new ScrapeError('E_OPTION', `"${scraper.name}" takes no arguments, but got ${names.join(', ')}`)
  }
  const unknown = unknownArgs(schema, given)
  const first = validateArgs(schema, given)
  if (unknown.length === 0 && first.issues === undefined) return first.value as Json
  const retyped = { ...given }
  for (const issue of first.issues ?? []) {
    const name = String(issue.path?.[0] ?? '')
    if (typeof retyped[name] === 'string') retyped[name] = spelledValue(retyped[name])
  }
  const second = validateArgs(schema, retyped)
  if (unknown.length === 0 && second.issues === undefined) return second.value as Json
  throw new ScrapeError('E_OPTION', `arguments of "${scraper.name}" are not usable`, {
    notes: [
      ...unknown.map((name) => `${name}: no such argument (known: ${schemaFields(schema).join(', ')})`),
      ...(second.issues ?? []).map((issue) => `${(issue.path ?? []).map(String).join('.')}: ${issue.message}`),
    ],
  })
}

function validateArgs(schema: NonNullable<Scraper['args']>, given: unknown) {
  const result = schema['~standard'].validate(given)
  if (result instanceof Promise)
    throw new ScrapeError('E_DEFINITION', 'args: a schema that validates asynchronously cannot be used')
  return result as { value?: unknown; issues?: readonly { message: string; path?: readonly PropertyKey[] }[] }
}

function unknownArgs(schema: object, given: object): string[] {
  const known = schemaFields(schema)
  return known.length === 0 ? [] : Object.keys(given).filter((name) => !known.includes(name))
}

function spelledValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
