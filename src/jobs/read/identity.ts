/** What a posting is known by: across boards (`job_hash`, requisition) and as it reads today (`content_hash`). */
import { hash } from 'node:crypto'
import { placeKey } from './location.ts'
import type { Posting } from './posting.ts'
import { companyKey, titleKey } from './titles.ts'

const PLACEHOLDERS = new Set([
  '',
  'see opening id',
  'tbd',
  'tba',
  'n/a',
  'na',
  'none',
  'null',
  'undefined',
  '-',
  '0',
  'not available',
  'unknown',
  'test',
])

/** The employer's own number; null for what is written where there is none. */
export function requisitionOf(value: string | number | null | undefined): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const text = String(value).trim().slice(0, 200)
  return PLACEHOLDERS.has(text.toLowerCase()) ? null : text
}

/** The same job on several platforms has the same one. Null without a company: numbers of two employers meet. */
export function requisitionKey({
  company,
  requisition_id,
}: Pick<Posting, 'company' | 'requisition_id'>): string | null {
  const employer = companyKey(company)
  return requisition_id === null || employer === '' ? null : `${employer}\n${requisition_id.toLowerCase()}`
}

type Identifying = Pick<
  Posting,
  'company' | 'title' | 'locations' | 'workplace' | 'remote_countries' | 'employment_type'
>

/**
 * The job, whoever shows it. Neither description nor date is in it: boards cut and re-order the one and choose the other.
 * The lines are versioned, so a new rule cannot be taken for a new job.
 */
export function jobHash(posting: Identifying): string {
  const { company, title, locations, employment_type } = posting
  const lines = ['v1', companyKey(company), titleKey(title, locations), placesLine(posting), employment_type ?? '']
  return hash('sha256', lines.join('\n'), 'hex')
}

function placesLine({ locations, workplace, remote_countries }: Identifying): string {
  const keys = [...new Set(locations.map(placeKey))].filter((key) => key !== '')
  const isRemote = workplace === 'remote' && !locations.some(({ city }) => city !== null)
  if (!isRemote) return keys.sort().join(',')
  const countries =
    remote_countries.length > 0 ? remote_countries : locations.flatMap(({ country_iso2 }) => country_iso2 ?? [])
  return `remote:${[...new Set(countries)].sort().join(',')}`
}

type Mutable = Pick<
  Posting,
  'title' | 'locations' | 'salary' | 'employment_type' | 'workplace' | 'description_text' | 'apply_url'
>

/** Changes when something changes that a reader would see. */
export function contentHash(posting: Mutable): string {
  const { title, locations, salary, employment_type, workplace, description_text, apply_url } = posting
  const description = description_text?.replace(/\s+/g, ' ').trim() ?? null
  const fields = { title, locations, salary, employment_type, workplace, description_text: description, apply_url }
  return hash('sha256', canonicalJson(fields), 'hex')
}

/** JSON with its keys in order, so that two boards' order of fields is no change. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  const pairs = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${pairs.map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`).join(',')}}`
}
