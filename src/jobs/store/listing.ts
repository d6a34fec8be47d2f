/** What a run tells about postings it did not find: nothing, unless it read whole boards. */
import type { Json } from '../../core/task.ts'
import type { ListingKind } from '../match/listing-cycle.ts'
import { SOURCES, type Source } from '../read/posting.ts'

/** Each of these shows a part of a board; what is not in the part may well be there. */
const NARROWING = ['search', 'location', 'since', 'remote', 'type'] as const
/** What job scrapers stop at when nobody says otherwise. */
const RESULTS_MAX_DEFAULT = 1000

/** Found by searching only: there is no whole of them to be absent from. */
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

/** The scraper of a board reads this board, also when it finds nothing on it. */
export function boardOf(scraper: string, args: Json | undefined): { source: Source; boardToken: string } | undefined {
  const source = SOURCES.find((one) => one === scraper)
  if (source === undefined || args === null || typeof args !== 'object' || Array.isArray(args)) return undefined
  const board = args['board']
  return typeof board === 'string' ? { source, boardToken: board } : undefined
}
