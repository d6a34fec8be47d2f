/** A scraper made ready to run: limits resolved, routes and item check compiled, arguments checked. */
import { ScrapeError } from '../../core/errors.ts'
import { type Limits, limitsSchema, type ResolvedLimits } from '../../core/options.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { Json } from '../../core/task.ts'
import type { CompiledScraper } from '../../crawl/compiled.ts'
import { compileRoutes } from '../../crawl/routes.ts'
import { anchors, release, select } from '../../extract/html.ts'
import { compileItemCheck, toItemRow } from '../../pipeline/validate.ts'

/** Later limits win, field by field. */
export function compileScraper(scraper: Scraper, overrides: Limits = {}, file?: string): CompiledScraper {
  const fields = schemaFields(scraper.item)
  const keyOf = keyFunction(scraper)
  return {
    scraper,
    file,
    routes: compileRoutes(scraper),
    limits: resolveLimits(scraper, overrides),
    checkItem: compileItemCheck(scraper.item),
    toRow: (item) => toItemRow(item, fields, keyOf),
    fields,
    isCounted: boundedFields(fields),
    extract: { select, anchors, release },
  }
}

/** If the schema allows any field, pages choose the names. Each one is a counter of the run, so their number is limited. */
const FIELDS_COUNTED_MAX = 500
const FIELD_LENGTH_MAX = 200

function boundedFields(own: readonly string[]): (field: string) => boolean {
  const counted = new Set(own)
  return (field) => {
    if (counted.has(field)) return true
    // A NUL or half a character cannot be stored everywhere.
    const isUsable = field.length <= FIELD_LENGTH_MAX && field.isWellFormed() && !field.includes('\0')
    if (counted.size >= FIELDS_COUNTED_MAX || !isUsable) return false
    counted.add(field)
    return true
  }
}

function resolveLimits(scraper: Scraper, overrides: Limits): ResolvedLimits {
  const own = scraper.limits ?? {}
  const merged = { ...own, ...overrides, perHost: { ...own.perHost, ...overrides.perHost } }
  const parsed = limitsSchema.safeParse(merged)
  if (parsed.success) return parsed.data
  throw new ScrapeError('E_OPTION', `limits of "${scraper.name}" are not usable`, {
    notes: parsed.error.issues.map((issue) => `limits.${issue.path.join('.')}: ${issue.message}`),
  })
}

function keyFunction(scraper: Scraper): (item: object) => string | undefined {
  const { key } = scraper
  if (key === undefined) return () => undefined
  const read =
    typeof key === 'function'
      ? (key as (item: object) => unknown)
      : (item: object) => (item as Record<string, unknown>)[key]
  return (item) => {
    const value = read(item)
    return value === undefined || value === null || value === '' ? undefined : String(value)
  }
}

/** The arguments a scraper takes, as far as its schema tells. */
export function argumentNames(scraper: Scraper): string[] {
  return scraper.args === undefined ? [] : schemaFields(scraper.args)
}

/** Zod objects know their fields; other schemas do not tell. */
function schemaFields(schema: object): string[] {
  const { shape } = schema as { shape?: object }
  return shape === undefined ? [] : Object.keys(shape)
}

/**
 * Arguments from the command line are text; a schema may want numbers or booleans. Whatever field the schema refuses as
 * text is offered once more as the JSON value it spells.
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
