/** Writes what is shown of a job: its row, company and places, all from the posting that represents it. */
import { employerKey } from '../match/cluster.ts'
import { placeKey } from '../read/location.ts'
import type { Place, Posting } from '../read/posting.ts'
import { fold } from '../read/regions.ts'
import { wordsOf } from './contract.ts'
import { type JobEntry, NO_FACTS, preferredOf } from './entries.ts'
import { insertMany } from './rows.ts'
import type { Writing } from './write.ts'

const CHARS_MAX = { name: 300, place: 200, search: 20_000 } as const

/** The postings of their sources must be loaded. */
export async function writeShown(writing: Writing, jobs: readonly JobEntry[]): Promise<void> {
  if (jobs.length === 0) return
  await writeJobs(writing, jobs)
  await writePlaces(writing, jobs)
}

async function writeJobs(writing: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const { rows, dialect } = writing
  const companies = await writeCompanies(writing, jobs)
  const columns = [
    'key',
    'company_id',
    'title',
    'preferred_key',
    'employment_type',
    'workplace',
    'salary_annual_min',
    'salary_annual_max',
    'currency',
    'date_posted',
    'status',
    'first_seen_at',
    'last_seen_at',
    'summary',
    'search',
  ]
  const records = jobs.map((job) => {
    const posting = preferredOf(job).posting!
    job.facts = factsOf(posting, companies)
    const { companyId, employmentType, workplace, salaryMin, salaryMax, currency } = job.facts
    const shown = [job.key, companyId, posting.title.slice(0, CHARS_MAX.name), job.preferredKey!]
    const counted = [employmentType, workplace, salaryMin, salaryMax, currency, posting.date_posted]
    return [...shown, ...counted, job.status, job.firstSeenAt, job.lastSeenAt, summaryOf(posting), searchOf(posting)]
  })
  const set = columns.filter((column) => column !== 'key' && column !== 'first_seen_at')
  const tail = `on conflict (key) do update set ${set.map((one) => `${one} = excluded.${one}`).join(', ')} returning id, key`
  const written = await insertMany(rows, { into: `${dialect.prefix}job`, columns, records, tail })
  const ids = new Map(written.map((row) => [String(row['key']), Number(row['id'])]))
  for (const job of jobs) job.id = ids.get(job.key)!
}

function factsOf(posting: Posting, companies: ReadonlyMap<string, number>): JobEntry['facts'] {
  const { salary, salary_annual_min, salary_annual_max } = posting
  const hasPay = salary_annual_min !== null || salary_annual_max !== null
  return {
    ...NO_FACTS,
    companyId: companies.get(employerKey(posting.company)) ?? null,
    employmentType: posting.employment_type,
    workplace: posting.workplace,
    salaryMin: salary_annual_min,
    salaryMax: salary_annual_max,
    currency: hasPay ? (salary?.currency ?? null) : null,
  }
}

/** The fields that a list of jobs shows. */
function summaryOf({ raw: _, description_html: __, description_text: ___, ...rest }: Posting): string {
  return JSON.stringify(rest)
}

function searchOf({ title, company, locations, department, team, description_text }: Posting): string {
  const places = locations.map(({ raw }) => raw)
  return [title, company, ...places, department, team, description_text]
    .filter((part) => part !== null)
    .join('\n')
    .slice(0, CHARS_MAX.search)
}

async function writeCompanies({ rows, dialect, at }: Writing, jobs: readonly JobEntry[]) {
  const postings = jobs.map((job) => preferredOf(job).posting!)
  const byKey = new Map(postings.map((posting) => [employerKey(posting.company), posting]))
  byKey.delete('')
  const now = at.toISOString()
  const records = [...byKey].map(([key, { company, company_url, company_logo }]) => [
    key,
    company!.slice(0, CHARS_MAX.name),
    company_url,
    company_logo,
    now,
    now,
  ])
  const written = await insertMany(rows, {
    into: `${dialect.prefix}company`,
    columns: ['key', 'name', 'url', 'logo', 'first_seen_at', 'last_seen_at'],
    records,
    tail: `on conflict (key) do update set name = excluded.name, url = coalesce(excluded.url, company.url),
      logo = coalesce(excluded.logo, company.logo), last_seen_at = excluded.last_seen_at returning id, key`,
  })
  return new Map(written.map((row) => [String(row['key']), Number(row['id'])]))
}

async function writePlaces({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const { prefix } = dialect
  const placesOf = (job: JobEntry) => preferredOf(job).posting!.locations
  const byKey = new Map(jobs.flatMap(placesOf).map((place) => [locationKey(place), place]))
  const records = [...byKey].map(([key, place]) => {
    const { city, region, country_iso2, raw } = place
    const name = [city, region, country_iso2].filter((part) => part !== null).join(', ') || raw
    const search = fold([city, region, country_iso2, raw].join(' ')).slice(0, CHARS_MAX.place)
    return [key, name.slice(0, CHARS_MAX.place), city, region, country_iso2, search]
  })
  const written = await insertMany(rows, {
    into: `${prefix}location`,
    columns: ['key', 'name', 'city', 'region', 'country_iso2', 'search'],
    records,
    tail: 'on conflict (key) do update set name = excluded.name returning id, key',
  })
  const ids = new Map(written.map((row) => [String(row['key']), Number(row['id'])]))
  const jobIds = JSON.stringify(jobs.map(({ id }) => id))
  await rows(`delete from ${prefix}job_location where ${wordsOf(dialect).idIn('job_id', '$1')}`, [jobIds])
  await insertMany(rows, {
    into: `${prefix}job_location`,
    columns: ['location_id', 'job_id'],
    records: jobs.flatMap((job) => placesOf(job).map((place) => [ids.get(locationKey(place))!, job.id!])),
    tail: 'on conflict do nothing',
  })
}

/** An unknown place is identified by its own text. */
const locationKey = (place: Place) => (placeKey(place) || `? ${fold(place.raw)}`).slice(0, CHARS_MAX.place)
