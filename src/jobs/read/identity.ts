/** What identifies a posting: across boards (`job_hash`, requisition), and its current content (`content_hash`). */
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

/** The employer's own number; null for the placeholders boards use when there is none. */
export function requisitionOf(value: string | number | null | undefined): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const text = String(value).trim().slice(0, 200)
  return PLACEHOLDERS.has(text.toLowerCase()) ? null : text
}

/** Equal for the same job on several platforms. Null without a company: two employers may use the same number. */
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
 * Identifies the job, whichever board shows it. Excludes description and date: boards shorten and reorder the former and choose
 * the latter. The lines are versioned, so that a new rule is not mistaken for a new job.
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

/** Changes when something a reader would see changes. */
export function contentHash(posting: Mutable): string {
  const { title, locations, salary, employment_type, workplace, description_text, apply_url } = posting
  const description = description_text?.replace(/\s+/g, ' ').trim() ?? null
  const fields = { title, locations, salary, employment_type, workplace, description_text: description, apply_url }
  return hash('sha256', canonicalJson(fields), 'hex')
}

/** JSON with sorted keys, so that a different field order does not count as a change. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  const pairs = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${pairs.map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`).join(',')}}`
}
