/** What a run proves about postings it did not find: nothing, unless it read whole boards. */
import type { Json } from '../../core/task.ts'
import type { ListingKind } from '../match/listing-cycle.ts'
import { SOURCES, type Source } from '../read/posting.ts'

/** Each of these restricts a run to part of a board; missing postings may still be there. */
const NARROWING = ['search', 'location', 'since', 'remote', 'type'] as const
/** The default limit of job scrapers. */
const RESULTS_MAX_DEFAULT = 1000

/** Sources that can only be searched: they have no complete listing to be absent from. */
const SEARCHED: ReadonlySet<Source> = new Set(['linkedin', 'indeed', 'glassdoor', 'ziprecruiter', 'google'])

export const kindOf = (source: Source): ListingKind => (source === 'jsonld' ? 'html' : 'api')

export interface Listing {
  isWhole: boolean
  resultsMax: number
}

export function listingOf(args: Json | undefined): Listing {
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return { isWhole: false, resultsMax: 0 }
  const isGiven = (name: string) => args[name] !== undefined && args[name] !== '' && args[name] !== null
  const results = Number(args['results'] ?? RESULTS_MAX_DEFAULT)
  return { isWhole: !NARROWING.some(isGiven), resultsMax: Number.isFinite(results) ? results : RESULTS_MAX_DEFAULT }
}

export const isSearched = (source: Source) => SEARCHED.has(source)

/** The board that a run reads, even if it finds nothing on it. */
export function boardOf(scraper: string, args: Json | undefined): { source: Source; boardToken: string } | undefined {
  const source = SOURCES.find((one) => one === scraper)
  if (source === undefined || args === null || typeof args !== 'object' || Array.isArray(args)) return undefined
  const board = args['board']
  return typeof board === 'string' ? { source, boardToken: board } : undefined
}
