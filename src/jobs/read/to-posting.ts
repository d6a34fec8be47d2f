/** Turns what an adapter read into a posting. All normalisation happens here. */

import { canonicalUrl } from './canonical-url.ts'
import { parseEndDate, parsePostedDate } from './dates.ts'
import { parseEmploymentType } from './employment-type.ts'
import { cutHtml, decodeEntities, htmlToText, repairHtml, tidyText } from './html-text.ts'
import { contentHash, jobHash, requisitionOf } from './identity.ts'
import { parsePlaces } from './location.ts'
import type { Posting, RawPosting, Source } from './posting.ts'
import { countryOf } from './regions.ts'
import { annualSalary, salaryOf } from './salary.ts'
import { mentionsRemote, workplaceOf } from './workplace.ts'

const LINE_CHARS_MAX = 1000
const RAW_BYTES_MAX = 5000
/** Names that boards show for a confidential employer. */
const CONFIDENTIAL =
  /^(?:confidential|company confidential|confidential company|hidden|anonymous|undisclosed|vertraulich|confidentiel|confidencial)$/i

/** Turns a raw posting into a posting. Never throws on odd data: wrong values are dropped, the schema rejects the incomplete. */
export function toPosting(source: Source, raw: RawPosting, { now }: { now: Date }): Posting {
  const title = line(raw.title) ?? ''
  const locations = parsePlaces(listOf(raw.locations))
  const html = filled(raw.description_html)
  const description_html = html === null ? null : repairHtml(html)
  const description_text = descriptionText(raw.description_text, description_html)
  const workplace = workplaceOf({
    field: raw.workplace,
    isRemote: raw.is_remote,
    locations: listOf(raw.locations).map((place) =>
      typeof place === 'string' ? place : (place?.raw ?? place?.city ?? ''),
    ),
    title,
  })
  const posted = parsePostedDate(raw.date_posted, now)
  const job_url = address(raw.job_url)
  const country = locations.find(({ country_iso2 }) => country_iso2 !== null)?.country_iso2 ?? null
  const salary = salaryOf(raw.salary, description_text, country)
  const annual = annualSalary(salary)
  const extra = {
    ...(posted?.isOlder ? { posted_before: posted.date } : {}),
    ...(mentionsRemote(description_text ?? '') ? { mentions_remote: true } : {}),
    ...raw.raw,
  }
  const posting = {
    source,
    source_job_id: name(raw.source_job_id),
    board_token: name(raw.board_token),
    requisition_id: requisitionOf(raw.requisition_id),
    title,
    company: companyName(raw.company),
    company_url: filled(raw.company_url),
    company_logo: filled(raw.company_logo),
    locations,
    workplace,
    is_remote: workplace === 'remote' || raw.is_remote === true ? true : workplace === null ? null : false,
    remote_countries: remoteCountries(raw.remote_countries),
    employment_type: parseEmploymentType(raw.employment_type),
    employment_type_raw: employmentRaw(raw.employment_type),
    salary,
    salary_annual_min: annual.min,
    salary_annual_max: annual.max,
    date_posted: posted?.date ?? null,
    date_posted_precision: posted?.precision ?? null,
    valid_through: parseEndDate(raw.valid_through, now),
    description_html: description_html === null ? null : cutHtml(description_html),
    description_text,
    job_url,
    apply_url: applyUrl(raw.apply_url, job_url),
    department: line(raw.department),
    team: line(raw.team),
    seniority: line(raw.seniority),
    industry: line(raw.industry),
    function: line(raw.function),
    language: line(raw.language),
    raw: smallRecord(extra),
  }
  return { ...posting, job_hash: jobHash(posting), content_hash: contentHash(posting) }
}

const LIST_MAX = 300

/** Boards put a single value, or nothing, where a list belongs. */
const listOf = <T>(value: readonly T[] | undefined): readonly T[] =>
  Array.isArray(value) ? value.slice(0, LIST_MAX) : []

function filled(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : ''
  return text === '' ? null : text
}

/** An id, unchanged: it is case-sensitive. */
const name = (value: unknown): string => (typeof value === 'number' ? String(value) : (filled(value) ?? ''))

/** One line of text, entities decoded; null if empty. */
function line(value: unknown): string | null {
  const text = filled(typeof value === 'number' ? String(value) : value)
  if (text === null) return null
  const plain = decodeEntities(text.slice(0, LINE_CHARS_MAX))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return plain === '' ? null : plain
}

function companyName(value: string | null): string | null {
  const name = line(value)
  return name === null || CONFIDENTIAL.test(name) ? null : name
}

function descriptionText(given: string | null | undefined, html: string | null): string | null {
  const text = filled(given)
  const readable = text !== null ? tidyText(text) : html !== null ? htmlToText(html) : ''
  return readable === '' ? null : readable
}

function employmentRaw(value: RawPosting['employment_type']): string | null {
  return line(
    typeof value === 'string'
      ? value
      : listOf(value ?? undefined)
          .filter((each) => typeof each === 'string')
          .join(', '),
  )
}

function remoteCountries(values: readonly string[] | undefined): string[] {
  const codes = listOf(values).flatMap((value) => (typeof value === 'string' ? (countryOf(value) ?? []) : []))
  return [...new Set(codes)].sort()
}

/** Unchanged: on some career pages the fragment identifies the job. */
const address = (value: unknown): string => filled(value) ?? ''

function applyUrl(value: unknown, jobUrl: string): string | null {
  const url = filled(value)
  if (url === null || url === jobUrl) return null
  const canonical = canonicalUrl(url)
  return canonical === null || canonical === canonicalUrl(jobUrl) ? null : url
}

/** As many fields as fit, in order. */
function smallRecord(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  let bytes = 2
  for (const [name, value] of Object.entries(fields)) {
    const json = jsonOf(value)
    if (json === undefined) continue
    const size = Buffer.byteLength(json) + Buffer.byteLength(JSON.stringify(name)) + 2
    if (bytes + size > RAW_BYTES_MAX) continue
    bytes += size
    kept[name] = JSON.parse(json)
  }
  return kept
}

/** Undefined for values JSON cannot represent: functions, BigInts, cycles. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
