/** Data quality of a run's postings, computed as they stream by: memory use is the same for ten and for ten million. */
import { LruSet } from '../../core/lru-set.ts'
import { type Posting, postingKey, type Source } from '../read/posting.ts'
import { countryOf } from '../read/regions.ts'

/** Weight of each field in the score; job_url is always present, and still counts. */
export const WEIGHTS = {
  title: 3,
  company: 3,
  job_url: 3,
  location: 2,
  description: 3,
  date_posted: 2,
  employment_type: 1,
  salary: 1,
  workplace: 1,
  apply_url: 0,
} as const

export type QualityField = keyof typeof WEIGHTS
export const QUALITY_FIELDS = Object.keys(WEIGHTS) as QualityField[]
const WEIGHT_SUM = QUALITY_FIELDS.reduce((sum, field) => sum + WEIGHTS[field], 0)

const CHECKS = ['title', 'salary', 'date_posted', 'job_url', 'country'] as const
type QualityCheck = (typeof CHECKS)[number]

const TITLE_CHARS_MAX = 200
const DAY_MS = 86_400_000
const AGE_DAYS_MAX = 730
/** Repeats further apart than this many postings go unnoticed. */
const KEYS_MAX = 100_000

/** Quantiles in constant memory. */
interface Quantiles {
  add(value: number): void
  quantile(q: number): number
  readonly count: number
}

interface Sighting {
  now: Date
  /** Number of postings of the same job, including this one. */
  clusterSize?: number
  isRepost?: boolean
  /** Time from the site's answer to the row in the database. */
  storeMs?: number
}

interface Requests {
  requests: number
  emptyPages: number
  blocked: number
  isTruncated: boolean
}

export interface QualityReport {
  source: Source
  items: number
  /** 0 … 1, by field. */
  completeness: Record<QualityField, number>
  /** 0 … 1: completeness, weighted by importance to readers. */
  score: number
  /** Share of items that pass every check, and how many fail each. */
  validity: { share: number; failed: Record<QualityCheck, number> }
  duplicates: { exact: number; crossBoard: number; reposts: number }
  yield: { itemsPerRequest: number; emptyPageRate: number; blockedRate: number; isTruncated: boolean }
  /** Null where nothing was measured. */
  freshness: {
    lagHoursP50: number | null
    lagHoursP95: number | null
    storeMsP50: number | null
    storeMsP95: number | null
  }
}

interface Quality {
  add(posting: Posting, sighting: Sighting): void
  addRequests(requests: Requests): void
  report(): QualityReport
}

export function createQuality(source: Source, { quantiles }: { quantiles: () => Quantiles }): Quality {
  const filled = zeroes(QUALITY_FIELDS)
  const failed = zeroes(CHECKS)
  const duplicates = { exact: 0, crossBoard: 0, reposts: 0 }
  const requests: Requests = { requests: 0, emptyPages: 0, blocked: 0, isTruncated: false }
  const seen = new LruSet(KEYS_MAX)
  const [lagHours, storeMs] = [quantiles(), quantiles()]
  let items = 0
  let valid = 0

  function add(posting: Posting, { now, clusterSize = 1, isRepost = false, storeMs: tookMs }: Sighting): void {
    items++
    for (const field of QUALITY_FIELDS) if (isFilled(posting, field)) filled[field]++
    const problems = problemsOf(posting, now)
    for (const problem of problems) failed[problem]++
    if (problems.length === 0) valid++
    if (!seen.add(postingKey(posting))) duplicates.exact++
    if (clusterSize > 1) duplicates.crossBoard++
    if (isRepost) duplicates.reposts++
    const lag = lagOf(posting, now)
    if (lag !== undefined) lagHours.add(lag)
    if (tookMs !== undefined) storeMs.add(tookMs)
  }

  function addRequests(more: Requests): void {
    requests.requests += more.requests
    requests.emptyPages += more.emptyPages
    requests.blocked += more.blocked
    requests.isTruncated ||= more.isTruncated
  }

  function report(): QualityReport {
    const completeness = Object.fromEntries(
      QUALITY_FIELDS.map((field) => [field, share(filled[field], items)]),
    ) as QualityReport['completeness']
    const weighted = QUALITY_FIELDS.reduce((sum, field) => sum + completeness[field] * WEIGHTS[field], 0)
    return {
      source,
      items,
      completeness,
      score: weighted / WEIGHT_SUM,
      validity: { share: share(valid, items), failed: { ...failed } },
      duplicates: { ...duplicates },
      yield: {
        itemsPerRequest: share(items, requests.requests),
        emptyPageRate: share(requests.emptyPages, requests.requests),
        blockedRate: share(requests.blocked, requests.requests),
        isTruncated: requests.isTruncated,
      },
      freshness: {
        lagHoursP50: quantileOf(lagHours, 0.5),
        lagHoursP95: quantileOf(lagHours, 0.95),
        storeMsP50: quantileOf(storeMs, 0.5),
        storeMsP95: quantileOf(storeMs, 0.95),
      },
    }
  }

  return { add, addRequests, report }
}

const zeroes = <K extends string>(names: readonly K[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>
const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole)
const quantileOf = (values: Quantiles, q: number) => (values.count === 0 ? null : values.quantile(q))

export function isFilled(posting: Posting, field: QualityField): boolean {
  if (field === 'location') return posting.locations.length > 0 || posting.workplace === 'remote'
  const value = field === 'description' ? posting.description_text : posting[field]
  return value !== null && value !== ''
}

/** Problems with the values that are present; missing values are a matter of completeness. */
export function problemsOf({ title, salary, date_posted, job_url, locations }: Posting, now: Date): QualityCheck[] {
  const postedMs = date_posted === null ? now.getTime() : Date.parse(date_posted)
  const ageMs = now.getTime() - postedMs
  const isOk: Record<QualityCheck, boolean> = {
    title: title.length <= TITLE_CHARS_MAX && !/<\/?[a-z]/i.test(title),
    salary: salary === null || salary.min === null || salary.max === null || salary.min <= salary.max,
    date_posted: ageMs >= -DAY_MS && ageMs <= AGE_DAYS_MAX * DAY_MS,
    job_url: URL.parse(job_url)?.protocol === 'https:',
    country: locations.every(({ country_iso2 }) => country_iso2 !== null && countryOf(country_iso2) !== null),
  }
  return CHECKS.filter((check) => !isOk[check])
}

/** Relative dates are rounded or a bound, so no lag can be derived from them. */
function lagOf({ date_posted, date_posted_precision }: Posting, firstSeen: Date): number | undefined {
  if (date_posted === null || date_posted_precision === 'relative') return undefined
  const hours = (firstSeen.getTime() - Date.parse(date_posted)) / 3_600_000
  return Number.isFinite(hours) ? Math.max(0, hours) : undefined
}
