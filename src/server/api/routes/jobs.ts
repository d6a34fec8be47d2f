/** Jobs: postings from all boards, each job once, with where it is posted and what became of it. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { cursorQuery, pageOf } from './schemas.ts'

const text = z.string().nullable()
const time = z.iso.datetime()
const count = z.int().min(0)
const word = z.string().min(1).max(200)

const place = z.object({
  raw: z.string(),
  city: text,
  region: text,
  country_iso2: text,
  lat: z.number().nullable(),
  lon: z.number().nullable(),
})

const salary = z.object({
  min: z.number().nullable(),
  max: z.number().nullable(),
  currency: text,
  interval: text,
  source: z.string(),
  raw: text,
})

const jobSummary = z
  .object({
    id: z.string(),
    status: z.string().describe('active, expired or gone'),
    title: z.string(),
    company: text,
    company_url: text,
    company_logo: text,
    locations: z.array(place),
    workplace: text,
    is_remote: z.boolean().nullable(),
    remote_countries: z.array(z.string()),
    employment_type: text,
    salary: salary.nullable(),
    salary_annual_min: z.number().nullable(),
    salary_annual_max: z.number().nullable(),
    date_posted: text,
    valid_through: text,
    source: z.string().describe('whose posting is shown'),
    job_url: z.string(),
    apply_url: text,
    department: text,
    team: text,
    seniority: text,
    language: text,
    requisition_id: text,
    job_hash: z.string(),
    content_hash: z.string(),
    first_seen_at: time,
    last_seen_at: time,
  })
  .meta({ id: 'Job' })

const jobSource = z.object({
  source: z.string(),
  board_token: z.string(),
  source_job_id: z.string(),
  job_url: z.string(),
  status: z.string(),
  first_seen_at: time,
  last_seen_at: time,
})

const jobDetail = jobSummary
  .extend({
    description_text: text,
    sources: z.array(jobSource),
    metrics: z.object({ times_seen: count, sources: count, days_active: count, reposts: count, updates: count }),
    history: z
      .array(
        z.object({
          at: time,
          type: z.string(),
          source: z.string(),
          changed: z.array(z.string()),
          before: z.unknown(),
          after: z.unknown(),
        }),
      )
      .describe('the newest first'),
  })
  .meta({ id: 'JobDetail' })

const company = z
  .object({
    id: z.string(),
    name: z.string(),
    url: text,
    logo: text,
    jobs: count.describe('there now'),
    first_seen_at: time,
    last_seen_at: time,
  })
  .meta({ id: 'Company' })

const area = 'jobs'

export const jobEndpoints = {
  listJobs: endpoint({
    method: 'GET',
    path: '/v1/jobs',
    area,
    role: 'read',
    summary: 'Jobs, the newest first',
    query: z.strictObject({
      ...cursorQuery,
      q: word.optional().describe('every word begins one of the title, company, places or description'),
      company: word.optional(),
      location: word.optional().describe('a city, a region, or the two letters of a country'),
      source: word.optional().describe('a board it is on'),
      employment_type: word.optional(),
      workplace: z.enum(['onsite', 'remote', 'hybrid']).optional(),
      salary_min: z.coerce.number().min(0).max(1e12).optional().describe("a year's pay reaches this"),
      currency: z
        .string()
        .regex(/^[A-Za-z]{3}$/)
        .optional(),
      status: z.enum(['active', 'expired', 'gone', 'any']).default('active'),
      since: z.iso.datetime({ offset: true }).or(z.iso.date()).optional().describe('first seen then or later'),
    }),
    answer: pageOf(jobSummary),
  }),
  getJob: endpoint({
    method: 'GET',
    path: '/v1/jobs/:id',
    area,
    role: 'read',
    summary: 'A job with its sources and its history',
    params: z.strictObject({ id: z.string().regex(/^\d{1,15}$/, 'must be the id of a job') }),
    answer: jobDetail,
  }),
  listCompanies: endpoint({
    method: 'GET',
    path: '/v1/companies',
    area,
    role: 'read',
    summary: 'Companies by name, each with how many jobs it has',
    query: z.strictObject({ ...cursorQuery, q: word.optional().describe('the beginning of the name') }),
    answer: pageOf(company),
  }),
} as const
