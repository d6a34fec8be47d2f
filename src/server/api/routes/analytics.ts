/** Analytics: numbers per day, from counters kept as data is written. Days are in UTC; first and last are included. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'

const count = z.int().min(0)
const share = z.number().describe('0 … 1')
const day = z.iso.date()
const word = z.string().min(1).max(100)

const days = {
  from: day.optional().describe('default: 30 days before `to`'),
  to: day.optional().describe('default: today'),
}
const limit = z.coerce.number().int().min(1).max(500).default(50)
const source = word.optional().describe('of this board only')
const currency = z
  .string()
  .regex(/^[A-Za-z]{3}$/)
  .optional()

const area = 'analytics'
const get = <const Q extends z.ZodObject, const A extends z.ZodType>(
  name: string,
  summary: string,
  query: Q,
  answer: A,
) => endpoint({ method: 'GET', path: `/v1/analytics/${name}`, area, role: 'read', summary, query, answer })

export const analyticsEndpoints = {
  jobsPerDay: get(
    'jobs-per-day',
    'Jobs new, seen, changed and gone on each day',
    z.strictObject({ ...days, source, employment_type: word.optional(), workplace: word.optional() }),
    z.object({ data: z.array(z.object({ day, active: count, new: count, updated: count, gone: count })) }),
  ),
  jobsByCompany: get(
    'by-company',
    'Companies with the most jobs, as of the last day with data',
    z.strictObject({ ...days, limit }),
    z.object({ day: day.nullable(), data: z.array(z.object({ id: z.string(), name: z.string(), jobs: count })) }),
  ),
  jobsByLocation: get(
    'by-location',
    'Places with the most jobs, as of the last day with data',
    z.strictObject({ ...days, limit }),
    z.object({
      day: day.nullable(),
      data: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          city: z.string().nullable(),
          region: z.string().nullable(),
          country_iso2: z.string().nullable(),
          jobs: count,
        }),
      ),
    }),
  ),
  salaryHistogram: get(
    'salary-histogram',
    "Jobs that appeared, by a year's pay",
    z.strictObject({ ...days, source, currency }),
    z.object({ data: z.array(z.object({ currency: z.string(), from: z.number(), below: z.number(), jobs: count })) }),
  ),
  salaryTrend: get(
    'salary-trend',
    "A year's pay of the jobs seen on each day, with quartiles",
    z.strictObject({ ...days, source, currency }),
    z.object({
      data: z.array(
        z.object({
          day,
          currency: z.string(),
          jobs: count,
          mean: z.number(),
          min: z.number(),
          max: z.number(),
          p25: z.number(),
          p50: z.number(),
          p75: z.number(),
        }),
      ),
    }),
  ),
  hiringTrends: get(
    'hiring-trends',
    'Who opened the most jobs, and how many in as many days before',
    z.strictObject({ ...days, limit }),
    z.object({
      data: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          new: count,
          newBefore: count,
          gone: count,
          net: z.int(),
          change: z.number().nullable().describe('0.5: half as many again; null: there were none before'),
        }),
      ),
    }),
  ),
  throughput: get(
    'throughput',
    'Pages and items a second, response times, success and errors by class, of runs that ended',
    z.strictObject({ ...days, scraper: word.optional(), per: z.enum(['hour', 'day']).default('day') }),
    z.object({
      data: z.array(
        z.object({
          at: z.iso.datetime(),
          scraper: z.string(),
          runs: count,
          pages: count,
          items: count,
          bytes: count,
          pagesPerSecond: z.number().nullable(),
          itemsPerSecond: z.number().nullable(),
          responseMsP50: z.number().nullable().describe("of the runs' own medians, weighted by their pages"),
          responseMsP95: z.number().nullable().describe('the worst of the runs'),
          successRate: share.nullable(),
          errors: z.array(z.object({ class: z.string(), count, rate: share })),
        }),
      ),
    }),
  ),
  quality: get(
    'quality',
    'How complete and how valid the postings of each source are',
    z.strictObject({ ...days, source }),
    z.object({
      data: z.array(
        z.object({
          source: z.string(),
          postings: count,
          valid: share,
          completeness: z.record(z.string(), share),
          score: share,
        }),
      ),
    }),
  ),
  duplicates: get(
    'duplicates',
    'Jobs that several boards show, and those that were put up again',
    z.strictObject({ ...days, source }),
    z.object({
      sharedJobs: count.describe('now on more than one source'),
      sharedPostings: count,
      data: z.array(
        z.object({
          source: z.string(),
          share: share.describe('of its jobs, also elsewhere'),
          joined: count,
          reposted: count,
        }),
      ),
    }),
  ),
} as const
