/** A scraper made ready to run, as the composition root hands it to the crawl. */
import type { ItemRow } from '../core/item.ts'
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
  /** A checked item as it is committed. Throws E_ITEM_INVALID for what no line of JSON can hold. */
  readonly toRow: (item: object) => ItemRow
  /** Field names in schema order; empty when the schema does not tell (then the first item does). */
  readonly fields: readonly string[]
  /** Whether it is counted how often this field has a value: those of the schema are, and a bounded number of others. */
  readonly isCounted: (field: string) => boolean
  readonly extract: Extract
}
