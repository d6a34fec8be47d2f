/** A scraper made ready to run, as the composition root hands it to the crawl. */
import type { ResolvedLimits } from '../core/options.ts'
import type { Scraper } from '../core/scraper.ts'
import type { Extract } from '../extract/contract.ts'
import type { ItemCheck } from '../pipeline/contract.ts'
import type { Route } from './routes.ts'

export interface CompiledScraper {
  readonly scraper: Scraper
  /** Absolute path of its file, to point into in errors; undefined when it was defined in memory. */
  readonly file: string | undefined
  readonly routes: ReadonlyMap<string, Route>
  readonly limits: ResolvedLimits
  readonly checkItem: ItemCheck
  /** undefined when the item has no value for its key: the item's whole content is then its identity. */
  readonly keyOf: (item: object) => string | undefined
  /** Field names in schema order; empty when the schema does not tell (then the first item does). */
  readonly fields: readonly string[]
  readonly extract: Extract
}
