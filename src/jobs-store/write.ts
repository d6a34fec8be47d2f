/** What a batch changed, written in a fixed number of statements however many jobs it touched. */
import { employerKey } from '../jobs/cluster.ts'
import { placeKey } from '../jobs/location.ts'
import type { Place, Posting } from '../jobs/posting.ts'
import { isFilled, problemsOf } from '../jobs/quality.ts'
import { fold } from '../jobs/regions.ts'
import type { Dialect, Rows } from '../orchestrator/contract.ts'
import { FILLED_FIELDS, ROLLUPS, wordsOf } from './contract.ts'
import { type JobEntry, NO_FACTS, preferredOf, type SourceEntry } from './entries.ts'
import type { Ledger } from './ledger.ts'
import { insertMany, updateMany, type Value } from './rows.ts'

const CHARS_MAX = { name: 300, place: 200, search: 20_000 } as const
/** 64 bits tell two contents of one job apart. */
const CONTENT_CHARS = 16

export interface Writing {
  rows: Rows
  dialect: Dialect
  at: Date
  scraper: string
  runId: string
}

export async function writeLedger(writing: Writing, ledger: Ledger, seen: readonly SourceEntry[]): Promise<JobEntry[]> {
  const touched = [...ledger.jobs.values()].filter(({ isTouched }) => isTouched)
  const rewritten = touched.filter(({ isRewritten }) => isRewritten)
  await ledger.loadPostings(rewritten.map(preferredOf))
  await writeJobs(writing, rewritten)
  await writePlaces(writing, rewritten)
  await writeStatus(writing, touched)
  await writeSources(writing, touched, new Set(seen))
  await writeMetrics(writing, touched)
  await writeBlocks(writing, ledger)
  await writeObservations(writing, seen)
  await writeEvents(writing, touched)
  await markDirty(writing, [writing.at.toISOString(), ...touched.flatMap(({ happened }) => happened.map(({ at }) => at))])
  return touched
}

async function writeJobs(writing: Writing, jobs: readonly JobEntry[]): Promise<void> {
  if (jobs.length === 0) return
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
    'search',
  ]
  const records = jobs.map((job) => {
    const posting = preferredOf(job).posting!
    job.facts = factsOf(posting, companies)
    const { companyId, employmentType, workplace, salaryMin, salaryMax, currency } = job.facts
    const shown = [job.key, companyId, posting.title.slice(0, CHARS_MAX.name), job.preferredKey!]
    const counted = [employmentType, workplace, salaryMin, salaryMax, currency, posting.date_posted]
    return [...shown, ...counted, job.status, job.firstSeenAt, job.lastSeenAt, searchOf(posting)]
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

function searchOf({ title, company, locations, department, team, description_text }: Posting): string {
  const places = locations.map(({ raw }) => raw)
  return [title, company, ...places, department, team, description_text]
    .filter((part) => part !== null)
    .join('\n')
    .replaceAll('\0', ' ')
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
  if (jobs.length === 0) return
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

/** What is no place we know is one by its own words. */
const locationKey = (place: Place) => placeKey(place) || `? ${fold(place.raw)}`.slice(0, CHARS_MAX.place)

async function writeStatus({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const groups = Map.groupBy(
    jobs.filter(({ isRewritten }) => !isRewritten),
    ({ status, lastSeenAt }) => `${status} ${lastSeenAt}`,
  )
  const sql = `update ${dialect.prefix}job set status = $1, last_seen_at = $2 where ${dialect.oneOf('key', '$3')}`
  for (const group of groups.values())
    await rows(sql, [group[0]!.status, group[0]!.lastSeenAt, JSON.stringify(group.map(({ key }) => key))])
}

async function writeSources(
  { rows, dialect, scraper, runId }: Writing,
  jobs: readonly JobEntry[],
  seen: ReadonlySet<SourceEntry>,
): Promise<void> {
  const table = `${dialect.prefix}job_source`
  const sources = jobs.flatMap((job) => job.sources)
  const columns = 'key job_id source board_token scraper run_id status state posting valid_through first_seen_at last_seen_at'
  const records = sources.filter(({ stale }) => stale === 'all').map(({ key, job, source, boardToken, state, posting }) => {
    const { status, first_seen_at, last_seen_at, content } = state
    const found = [key, job.id!, source, boardToken, scraper, runId, status, JSON.stringify(state)]
    return [...found, JSON.stringify(posting), content.valid_through, first_seen_at, last_seen_at]
  })
  const set = columns.split(' ').filter((column) => column !== 'key' && column !== 'first_seen_at')
  const tail = `on conflict (key) do update set ${set.map((one) => `${one} = excluded.${one}`).join(', ')}`
  await insertMany(rows, { into: table, columns: columns.split(' '), records, tail })
  const restated = sources.filter(({ stale }) => stale === 'state')
  const moment = wordsOf(dialect).time
  await updateMany(
    rows,
    table,
    `state = v.column2, status = v.column3, run_id = coalesce(nullif(v.column4, ''), t.run_id), last_seen_at = cast(v.column5 as ${moment})`,
    restated.map((entry) => [
      entry.key,
      JSON.stringify(entry.state),
      entry.state.status,
      seen.has(entry) ? runId : '',
      entry.state.last_seen_at,
    ]),
  )
}

async function writeMetrics({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const columns = ['job_id', 'times_seen', 'sources', 'days_active', 'reposts', 'updates']
  const set = columns.slice(1).map((one) => `${one} = excluded.${one}`)
  await insertMany(rows, {
    into: `${dialect.prefix}job_metric`,
    columns,
    records: jobs.map(({ id, sources, metric }) => [
      id!,
      metric.timesSeen,
      sources.length,
      metric.daysActive,
      metric.reposts,
      metric.updates,
    ]),
    tail: `on conflict (job_id) do update set ${set.join(', ')}`,
  })
}

async function writeBlocks({ rows, dialect }: Writing, { blocks }: Ledger): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_block`,
    columns: ['block', 'job_id'],
    records: blocks.map(({ block, job }) => [block, job.id!]),
    tail: 'on conflict do nothing',
  })
}

const COUNTED = ['source', 'company_id', 'employment_type', 'workplace', 'salary_min', 'salary_max', 'currency']
const counted = ({ facts }: JobEntry, source: string): Value[] => [
  source,
  facts.companyId,
  facts.employmentType,
  facts.workplace,
  facts.salaryMin,
  facts.salaryMax,
  facts.currency,
]

async function writeObservations({ rows, dialect, at }: Writing, seen: readonly SourceEntry[]): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_observation`,
    columns: ['observed_at', 'job_id', ...COUNTED, 'sources', 'filled', 'problems', 'content_hash'],
    records: seen.map(({ job, source, posting, state }) => [
      at.toISOString(),
      job.id!,
      ...counted(job, source),
      job.sources.length,
      FILLED_FIELDS.reduce((bits, field, bit) => bits | (isFilled(posting!, field) ? 1 << bit : 0), 0),
      problemsOf(posting!, at).length,
      state.content.content_hash.slice(0, CONTENT_CHARS),
    ]),
    tail: 'on conflict do nothing',
  })
}

async function writeEvents({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_event`,
    columns: ['happened_at', 'job_id', 'type', ...COUNTED, 'before', 'after', 'changed'],
    records: jobs.flatMap((job) =>
      job.happened.map(({ at, type, source, before, after, changed }) => [
        at,
        job.id!,
        type,
        ...counted(job, source),
        jsonOf(before),
        jsonOf(after),
        jsonOf(changed),
      ]),
    ),
    tail: 'on conflict do nothing',
  })
}

const jsonOf = (value: unknown) => (value === undefined ? null : JSON.stringify(value))

/** The row is written even when it is there: a refresher that is about to remove it waits for this transaction. */
async function markDirty({ rows, dialect }: Writing, moments: readonly string[]): Promise<void> {
  const days = [...new Set(moments.map((at) => at.slice(0, 10)))].sort()
  await insertMany(rows, {
    into: `${dialect.prefix}rollup_dirty as dirty`,
    columns: ['rollup', 'bucket'],
    records: days.flatMap((day) => ROLLUPS.map(({ name }) => [name, day])),
    tail: 'on conflict (rollup, bucket) do update set marks = dirty.marks + 1',
  })
}
