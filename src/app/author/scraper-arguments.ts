/** What a scraper takes with `--arg`, as far as its schema tells. */
import type { Scraper } from '../../core/scraper.ts'
import { argumentNames } from './compile-scraper.ts'

/** `default` is undefined when the argument must be given, null when it may be left out. */
export interface ScraperArgument {
  name: string
  default: unknown
}

export function argumentsOf(scraper: Scraper): ScraperArgument[] {
  const names = argumentNames(scraper)
  const { shape } = (scraper.args ?? {}) as { shape?: Record<string, NonNullable<Scraper['args']>> }
  return names.map((name) => ({ name, default: defaultOf(shape?.[name]) }))
}

/** Asking the schema about nothing is the one way every Standard Schema has to tell its default. */
function defaultOf(schema: Scraper['args']): unknown {
  const result = schema?.['~standard'].validate(undefined)
  if (result === undefined || result instanceof Promise || result.issues !== undefined) return undefined
  const value = result.value as unknown
  return value === undefined || value === Number.MAX_SAFE_INTEGER ? null : value
}
