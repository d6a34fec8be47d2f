/** A job posting: the common record for every board. */
import * as z from 'zod'

/** Employers' own boards (ATS), markup on any page, and the five big boards. */
export const SOURCES = [
  'greenhouse',
  'lever',
  'ashby',
  'workday',
  'smartrecruiters',
  'workable',
  'recruitee',
  'personio',
  'teamtailor',
  'bamboohr',
  'pinpoint',
  'rippling',
  'breezy',
  'jsonld',
  'linkedin',
  'indeed',
  'glassdoor',
  'ziprecruiter',
  'google',
] as const

export type Source = (typeof SOURCES)[number]

const WORKPLACES = ['onsite', 'remote', 'hybrid'] as const
export const EMPLOYMENT_TYPES = [
  'full_time',
  'part_time',
  'contract',
  'temporary',
  'internship',
  'volunteer',
  'per_diem',
  'full_or_part',
  'other',
] as const
const INTERVALS = ['year', 'month', 'week', 'day', 'hour'] as const

export type Workplace = (typeof WORKPLACES)[number]
export type EmploymentType = (typeof EMPLOYMENT_TYPES)[number]
export type Interval = (typeof INTERVALS)[number]

const text = z.string().nullable()

const placeSchema = z.object({
  /** Always the board's original text. */
  raw: z.string(),
  city: text,
  region: text,
  country_iso2: text,
  lat: z.number().nullable(),
  lon: z.number().nullable(),
  /** Set if the board names the surroundings of a city ("Greater Boston Area"). */
  area: z.literal(true).optional(),
})

const salarySchema = z.object({
  min: z.number().nullable(),
  max: z.number().nullable(),
  currency: text,
  interval: z.enum(INTERVALS).nullable(),
  /** structured: the board gave numbers · estimated: an estimate by the board · description: read from text. */
  source: z.enum(['structured', 'estimated', 'description']),
  raw: text,
})

/** The schema of a posting: the `item` of every job scraper. */
export const postingSchema = z.object({
  source: z.enum(SOURCES),
  /** The platform's own id, case preserved. */
  source_job_id: z.string().regex(/^[^\p{Cc}]+$/u),
  /** Tenant of an ATS, or country host of a board. */
  board_token: z.string(),
  requisition_id: text,
  title: z.string().min(1),
  /** Display name; null if the employer is confidential. */
  company: text,
  company_url: text,
  company_logo: text,
  locations: z.array(placeSchema),
  /** null: unknown. A missing flag does not mean `onsite`. */
  workplace: z.enum(WORKPLACES).nullable(),
  is_remote: z.boolean().nullable(),
  remote_countries: z.array(z.string()),
  employment_type: z.enum(EMPLOYMENT_TYPES).nullable(),
  employment_type_raw: text,
  salary: salarySchema.nullable(),
  salary_annual_min: z.number().nullable(),
  salary_annual_max: z.number().nullable(),
  /** ISO 8601 in UTC; without a time if only the day is known. */
  date_posted: text,
  date_posted_precision: z.enum(['instant', 'day', 'relative']).nullable(),
  valid_through: text,
  description_html: text,
  description_text: text,
  job_url: z.url(),
  /** Only if it differs from `job_url`. */
  apply_url: text,
  department: text,
  team: text,
  seniority: text,
  industry: text,
  function: text,
  language: text,
  /** Other data from the board, at most 5 kB. */
  raw: z.record(z.string(), z.unknown()),
  job_hash: z.string().regex(/^[0-9a-f]{64}$/),
  content_hash: z.string().regex(/^[0-9a-f]{64}$/),
})

/** A posting as it is stored. */
export type Posting = z.infer<typeof postingSchema>
export type Place = z.infer<typeof placeSchema>
export type Salary = z.infer<typeof salarySchema>

/** Identifies a posting on its platform: the `key` of every job scraper. */
export function postingKey({ source, board_token, source_job_id }: Posting): string {
  return `${source}:${board_token}:${source_job_id}`
}

/** What an adapter reads from a board, unprocessed; `toPosting` turns it into a posting. */
export interface RawPosting {
  source_job_id: string | number
  board_token: string
  requisition_id?: string | number | null | undefined
  title: string
  company: string | null
  company_url?: string | null | undefined
  company_logo?: string | null | undefined
  /** One element per place; a text may contain several. */
  locations?: readonly (string | RawPlace | null | undefined)[] | undefined
  /** A structured field of the board: 'Remote', 'on-site', 'TELECOMMUTE', 'fully' … Never words from the description. */
  workplace?: string | null | undefined
  /** A structured flag. `false` says nothing about where the work is done. */
  is_remote?: boolean | null | undefined
  remote_countries?: readonly string[] | undefined
  employment_type?: string | readonly string[] | null | undefined
  /** Numbers, or the text of a pay field. If omitted, the description is searched. */
  salary?: RawSalary | string | null | undefined
  /** ISO, RFC 2822, epoch (s or ms), `YYYY-MM-DD HH:MM:SS UTC`, or relative ('3 days ago'). */
  date_posted?: string | number | Date | null | undefined
  valid_through?: string | number | Date | null | undefined
  description_html?: string | null | undefined
  /** If omitted, generated from the HTML. */
  description_text?: string | null | undefined
  job_url: string
  apply_url?: string | null | undefined
  department?: string | null | undefined
  team?: string | null | undefined
  seniority?: string | null | undefined
  industry?: string | null | undefined
  function?: string | null | undefined
  language?: string | null | undefined
  raw?: Readonly<Record<string, unknown>> | undefined
}

/** A place as given by the board. */
export interface RawPlace {
  raw?: string | null | undefined
  city?: string | null | undefined
  region?: string | null | undefined
  /** A code or a name in any language. */
  country?: string | null | undefined
  lat?: number | null | undefined
  lon?: number | null | undefined
}

/** Pay as given by the board. */
export interface RawSalary {
  min?: number | string | null | undefined
  max?: number | string | null | undefined
  currency?: string | null | undefined
  /** The board's own word: 'per-year-salary', 'YEARLY', '1 HOUR', 'p.a.' … If omitted, judged by size. */
  interval?: string | null | undefined
  isEstimate?: boolean | undefined
  raw?: string | null | undefined
}
