/** Searches: the parameters all job scrapers share, and whether a posting matches them. */
import * as z from 'zod'
import { cityKey } from '../read/cities.ts'
import { parsePlaces } from '../read/location.ts'
import { EMPLOYMENT_TYPES, type EmploymentType, type Place, type Posting } from '../read/posting.ts'
import { fold } from '../read/regions.ts'

/** The arguments every job scraper takes (words, location, remote …): spread them into its `args`. */
export const searchArgs = {
  search: z.string().default('').describe('words of the title or description'),
  location: z.string().default('').describe('city, region or country'),
  results: z.coerce.number().int().min(1).max(1_000_000).default(1000).describe('at most this many postings'),
  /** May be fractional. */
  since: z.coerce.number().min(0).optional().describe('posted within this many days'),
  remote: z
    .stringbool()
    .or(z.boolean())
    .optional()
    .describe('true: only what says it is remote work; false: none of that'),
  type: z.enum(EMPLOYMENT_TYPES).optional().describe('kind of employment'),
}

const searchSchema = z.object(searchArgs)
/** A search: the values of `searchArgs`. */
export type Search = z.output<typeof searchSchema>

/** What is known about a posting so far: a list page often has less than the full posting. */
export type Seen = Partial<Pick<Posting, 'title' | 'description_text' | 'locations' | 'workplace' | 'is_remote'>> &
  Partial<Pick<Posting, 'date_posted' | 'employment_type'>>

const DAY_MS = 86_400_000

/** Whether a full posting matches a search. A search for remote work or an employment type only matches postings that say so. */
export function isWanted(posting: Seen, search: Search, now: Date): boolean {
  const isSilent =
    (search.remote === true && !isRemote(posting)) || (search.type !== undefined && !posting.employment_type)
  return !isSilent && mayBeWanted(posting, search, now)
}

/** Whether the page of a posting is worth fetching, judging by its row on a list. Unknown fields do not count against it. */
export function mayBeWanted(posting: Seen, search: Search, now: Date): boolean {
  return (
    hasWords(posting, search.search) &&
    isNear(posting, search.location) &&
    isRecent(posting.date_posted, search.since, now) &&
    isRemoteAsAsked(posting, search.remote) &&
    isOfType(posting.employment_type, search.type)
  )
}

/** Every word must be in the title or the description; without a description, the title alone does not rule it out. */
function hasWords({ title, description_text }: Seen, search: string): boolean {
  const wanted = fold(search)
    .split(' ')
    .filter((word) => word !== '')
  if (wanted.length === 0 || title === undefined) return true
  if (description_text === undefined || description_text === null) return true
  const text = ` ${fold(`${title} ${description_text}`)}`
  return wanted.every((word) => text.includes(` ${word}`))
}

function isNear({ locations, workplace, is_remote }: Seen, location: string): boolean {
  const wanted = fold(location)
  if (wanted === '' || locations === undefined || locations.length === 0) return true
  if (wanted === 'remote') return isRemote({ workplace, is_remote })
  const [asked] = parsePlaces([location])
  return locations.some((place) => fold(place.raw).includes(wanted) || (asked !== undefined && covers(asked, place)))
}

/** "Germany" covers "Berlin, DE"; "Berlin" covers it too. */
function covers(asked: Place, place: Place): boolean {
  if (asked.country_iso2 !== null && place.country_iso2 !== null && asked.country_iso2 !== place.country_iso2)
    return false
  if (asked.region !== null && place.region !== null && fold(asked.region) !== fold(place.region)) return false
  if (asked.city !== null) return place.city !== null && cityKey(asked.city) === cityKey(place.city)
  return asked.region !== null ? place.region !== null : place.country_iso2 !== null
}

function isRecent(date: string | null | undefined, sinceDays: number | undefined, now: Date): boolean {
  if (sinceDays === undefined || date === undefined || date === null) return true
  const postedMs = Date.parse(date)
  // If only the day is known, the end of that day counts.
  const latestMs = date.length === 10 ? postedMs + DAY_MS : postedMs
  return Number.isNaN(postedMs) || latestMs >= now.getTime() - sinceDays * DAY_MS
}

const isRemote = ({ workplace, is_remote }: Seen) => workplace === 'remote' || is_remote === true

function isRemoteAsAsked(posting: Seen, remote: boolean | undefined): boolean {
  if (remote === undefined) return true
  const isElsewhere = posting.workplace === 'onsite' || posting.workplace === 'hybrid'
  return remote ? isRemote(posting) || !isElsewhere : !isRemote(posting)
}

function isOfType(type: EmploymentType | null | undefined, wanted: EmploymentType | undefined): boolean {
  if (wanted === undefined || type === undefined || type === null || type === wanted) return true
  return type === 'full_or_part' && (wanted === 'full_time' || wanted === 'part_time')
}
