/** A scraper that is ready to run: limits resolved, routes and item check compiled. */
import { ScrapeError } from '../core/errors.ts'
import type { ItemRow } from '../core/item.ts'
import { type Limits, limitsSchema, type ResolvedLimits } from '../core/options.ts'
import { type Scraper, schemaFields } from '../core/scraper.ts'
import { compileRoutes, type Route } from './routes.ts'
import { compileItemCheck, type ItemCheck, toItemRow } from './validate.ts'

export interface CompiledScraper {
  readonly scraper: Scraper
  /** Absolute path of its file, for error locations; undefined if it was defined in memory. */
  readonly file: string | undefined
  readonly routes: ReadonlyMap<string, Route>
  readonly limits: ResolvedLimits
  readonly checkItem: ItemCheck
  /** A checked item as it is committed. Throws E_ITEM_INVALID if it cannot be written as a line of JSON. */
  readonly toRow: (item: object) => ItemRow
  /** Field names in schema order; empty if the schema does not say (then the first item decides). */
  readonly fields: readonly string[]
  /** Whether values of this field are counted: fields of the schema are, and a limited number of others. */
  readonly isCounted: (field: string) => boolean
}

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
  }
}

/** If the schema allows any field, pages choose the names. Each one is a counter of the run, so their number is limited. */
const FIELDS_COUNTED_MAX = 500
const FIELD_LENGTH_MAX = 200

function boundedFields(own: readonly string[]): (field: string) => boolean {
  const counted = new Set(own)
  return (field) => {
    if (counted.has(field)) return true
    // A NUL or half a surrogate pair cannot be stored everywhere.
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
