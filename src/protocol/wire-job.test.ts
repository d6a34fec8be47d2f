import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Posting, postingKey } from '../jobs/read/posting.ts'
import { jobSchema } from './messages.ts'
import { isPosting, storedJob, toWireJob } from './wire-job.ts'

const POSTING: Posting = {
  source: 'greenhouse',
  source_job_id: '4000001',
  board_token: 'acme',
  requisition_id: null,
  title: 'Backend Engineer',
  company: 'Acme',
  company_url: null,
  company_logo: null,
  locations: [
    { raw: 'Berlin, Germany', city: 'Berlin', region: null, country_iso2: 'DE', lat: null, lon: null },
    { raw: 'Remote', city: null, region: null, country_iso2: null, lat: null, lon: null },
  ],
  workplace: 'hybrid',
  is_remote: false,
  remote_countries: [],
  employment_type: 'full_time',
  employment_type_raw: 'Full-time',
  salary: { min: 90_000, max: 120_000, currency: 'EUR', interval: 'year', source: 'structured', raw: null },
  salary_annual_min: 90_000,
  salary_annual_max: 120_000,
  date_posted: '2026-11-10',
  date_posted_precision: 'day',
  valid_through: null,
  description_html: '<p>Go</p>',
  description_text: 'Go',
  job_url: 'https://boards.greenhouse.io/acme/jobs/4000001',
  apply_url: null,
  department: 'Engineering',
  team: null,
  seniority: null,
  industry: null,
  function: null,
  language: 'en',
  raw: { extra: 1 },
  job_hash: 'a'.repeat(64),
  content_hash: 'b'.repeat(64),
}

test('a posting uses the wire names in transit, and is restored afterwards', () => {
  assert.ok(isPosting(POSTING))
  const job = jobSchema.parse(JSON.parse(JSON.stringify(toWireJob(POSTING))))
  const { title, company, location, salary_min, salary_currency, posted_date, description, job_hash, job_type } = job
  assert.deepEqual(
    { title, company, location, salary_min, salary_currency, posted_date, description, job_hash, job_type },
    {
      title: 'Backend Engineer',
      company: 'Acme',
      location: 'Berlin, Germany; Remote',
      salary_min: 90_000,
      salary_currency: 'EUR',
      posted_date: '2026-11-10',
      description: 'Go',
      job_hash: 'a'.repeat(64),
      job_type: 'full_time',
    },
  )
  assert.deepEqual(storedJob(job), { key: postingKey(POSTING), item: POSTING })
})

test('a job of another worker is stored as received, by its hash or URL', () => {
  const job = jobSchema.parse({ title: 'Welder', job_url: 'https://x.test/1', salary_note: 'good' })
  assert.deepEqual(storedJob(job), { key: 'https://x.test/1', item: job })
  assert.equal(storedJob({ ...job, job_hash: 'h' }).key, 'h')
  assert.equal(storedJob({ ...job, posting: { source: 'nonsense' } }).key, 'https://x.test/1')
})
