/**
 * Whether two postings are the same job. Keys come first (identity hash, requisition, apply URL); otherwise company, title, place
 * and description must all agree. Uncertain pairs are `possible`: shown side by side, never merged.
 */

import { canonicalUrl } from '../read/canonical-url.ts'
import { requisitionKey } from '../read/identity.ts'
import type { EmploymentType, Posting } from '../read/posting.ts'
import { fold } from '../read/regions.ts'
import { companyKey } from '../read/titles.ts'
import { toPosting } from '../read/to-posting.ts'
import { type Fingerprint, fingerprint, similarity } from './similarity.ts'
import { placeRelation, type TitleDifference, titleDifference, titleWords } from './title-difference.ts'

interface Comparison {
  verdict: 'same' | 'possible' | 'different'
  /** What decided it. */
  reason: string
  /** The difference that rules out a merge. */
  veto?: 'company' | 'seniority' | 'level' | 'speciality' | 'place' | 'employment'
}

export type Comparable = Pick<
  Posting,
  'title' | 'company' | 'locations' | 'workplace' | 'employment_type' | 'description_text' | 'requisition_id'
> &
  Pick<Posting, 'apply_url' | 'job_url' | 'date_posted' | 'job_hash'>

const SIMILARITY_MIN = 0.9
const DAYS_APART_MAX = 60
const DAY_MS = 86_400_000

export function compare(a: Comparable, b: Comparable): Comparison {
  return comparePrepared(prepare(a), prepare(b))
}

/** A posting with the values that comparisons need, computed on first use. */
export interface Prepared {
  posting: Comparable
  company: string
  requisition: string | null
  applyUrl: string | null
  words: () => readonly string[]
  description: () => Fingerprint
}

export function prepare(posting: Comparable): Prepared {
  let words: readonly string[] | undefined
  let description: Fingerprint | undefined
  return {
    posting,
    company: employerKey(posting.company),
    requisition: requisitionKey(posting),
    applyUrl: jobAddress(posting.apply_url) ?? jobAddress(posting.job_url),
    words: () => (words ??= titleWords(posting.title, { places: posting.locations, company: posting.company })),
    description: () => (description ??= fingerprint(posting.description_text)),
  }
}

/** "The Home Depot" and "HomeDepot" are the same; "Meta" and "MetaLab" are not. */
export function employerKey(company: string | null): string {
  return fold(companyKey(company)).replace(/^the /, '').replaceAll(' ', '')
}

/** Only URLs that identify a job: the front page of a career site is shared by all its jobs. */
function jobAddress(url: string | null): string | null {
  const canonical = url === null ? null : canonicalUrl(url)
  return canonical !== null && /\d{3}|[0-9a-f]{8}-/i.test(canonical.slice(canonical.indexOf('/', 8))) ? canonical : null
}

export function comparePrepared(a: Prepared, b: Prepared): Comparison {
  const isNameless = a.company === '' || b.company === ''
  if (!isNameless && a.company !== b.company) return different('company', 'two companies')
  const title = titlesOf(a, b)
  if (title === 'seniority' || title === 'level' || title === 'speciality')
    return different(title, 'the titles name different jobs')
  if (!isSameFamily(a.posting.employment_type, b.posting.employment_type))
    return different('employment', 'different kinds of employment')
  const key = sharedKey(a, b, isNameless)
  if (key !== undefined)
    return title === 'none'
      ? { verdict: 'same', reason: key }
      : { verdict: 'possible', reason: `${key}, but another title` }
  const place = placesOf(a, b)
  if (place === 'disjoint') return different('place', 'different places')
  const alike = similarity(a.description(), b.description())
  const likeness = alike === undefined ? 'no description to compare' : `${Math.round(alike * 100)} % of the description`
  if (isNameless || title !== 'none' || place === 'unknown')
    return { verdict: 'possible', reason: `${likeness}, but not all is known` }
  if (alike === undefined || alike < SIMILARITY_MIN)
    return { verdict: 'possible', reason: `company, title and place, but ${likeness}` }
  if (daysApart(a.posting.date_posted, b.posting.date_posted) > DAYS_APART_MAX)
    return { verdict: 'possible', reason: 'the dates are far apart' }
  return { verdict: 'same', reason: `company, title, place and ${likeness}` }
}

/** A place in one title may only be among the other posting's places; checked only if the titles differ otherwise. */
function titlesOf(a: Prepared, b: Prepared): TitleDifference {
  const difference = titleDifference(a.words(), b.words())
  if (difference === 'none') return difference
  const places = [...a.posting.locations, ...b.posting.locations]
  const words = ({ posting }: Prepared) => titleWords(posting.title, { places, company: posting.company })
  return titleDifference(words(a), words(b))
}

const different = (veto: Comparison['veto'] & string, reason: string): Comparison => ({
  verdict: 'different',
  reason,
  veto,
})

function sharedKey(a: Prepared, b: Prepared, isNameless: boolean): string | undefined {
  if (a.requisition !== null && a.requisition === b.requisition) return 'requisition'
  if (a.applyUrl !== null && a.applyUrl === b.applyUrl) return 'apply_url'
  // Without a company or a place, the hash covers too little to identify a job.
  const isWhole = !isNameless && (a.posting.locations.length > 0 || a.posting.workplace === 'remote')
  return isWhole && a.posting.job_hash === b.posting.job_hash ? 'job_hash' : undefined
}

/** Remote and a city neither contradict each other nor agree. */
function placesOf(a: Prepared, b: Prepared): 'agree' | 'unknown' | 'disjoint' {
  const [isRemoteA, isRemoteB] = [a.posting.workplace === 'remote', b.posting.workplace === 'remote']
  const relation = placeRelation(a.posting.locations, b.posting.locations)
  if (relation === 'disjoint') return isRemoteA || isRemoteB ? 'unknown' : 'disjoint'
  if (relation === 'unknown') return isRemoteA && isRemoteB ? 'agree' : 'unknown'
  const isContrary = (isRemoteA && b.posting.workplace === 'onsite') || (isRemoteB && a.posting.workplace === 'onsite')
  const isNowhere = a.posting.locations.length === 0 && b.posting.locations.length === 0 && isRemoteA !== isRemoteB
  return isContrary || isNowhere ? 'unknown' : 'agree'
}

const FAMILY: Readonly<Record<EmploymentType, string>> = {
  full_time: 'full',
  part_time: 'part',
  full_or_part: 'full part',
  contract: 'contract',
  temporary: 'contract',
  internship: 'internship',
  volunteer: 'volunteer',
  per_diem: 'per_diem',
  other: 'full part contract internship volunteer per_diem',
}

function isSameFamily(a: EmploymentType | null, b: EmploymentType | null): boolean {
  return a === null || b === null || FAMILY[a].split(' ').some((family) => FAMILY[b].split(' ').includes(family))
}

function daysApart(a: string | null, b: string | null): number {
  const ms = Math.abs(Date.parse(a ?? '') - Date.parse(b ?? ''))
  return Number.isNaN(ms) ? 0 : ms / DAY_MS
}

/** A job reduced to five common fields. */
export interface PlainJob {
  title: string
  company: string | null
  location?: string | null
  job_type?: string | null
  description?: string | null
}

const NO_TIME = new Date(0)

const fromPlain = (job: PlainJob): Posting =>
  toPosting(
    'jsonld',
    {
      source_job_id: '-',
      board_token: '-',
      title: job.title,
      company: job.company,
      locations: [job.location],
      employment_type: job.job_type,
      description_text: job.description,
      salary: null,
      job_url: '',
    },
    { now: NO_TIME },
  )

/** Whether two plain jobs are certainly the same. */
export function isSameJob(a: PlainJob, b: PlainJob): boolean {
  return compare(fromPlain(a), fromPlain(b)).verdict === 'same'
}
