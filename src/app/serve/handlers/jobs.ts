/** Jobs, their companies, and statistics about them. */

import { verbatim } from '../../../core/redact.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { analyticsEndpoints } from '../../../server/api/routes/analytics.ts'
import type { jobEndpoints } from '../../../server/api/routes/jobs.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { JobStore } from '../server/job-store.ts'

const DAY_MS = 86_400_000
const DAYS_DEFAULT = 30

export function jobHandlers({ jobs }: { jobs: JobStore }): HandlersOf<typeof jobEndpoints> {
  const { search } = jobs
  return {
    async listJobs({ query: { cursor, status, since, ...rest } }) {
      const found = await search.find({
        ...rest,
        before: idIn(cursor),
        status: status === 'any' ? undefined : status,
        since: since === undefined ? undefined : new Date(since).toISOString(),
      })
      const data = found.slice(0, rest.limit)
      return { data: verbatim(data), next: found.length > rest.limit ? data.at(-1)!.id : null }
    },
    async getJob({ params: { id } }) {
      const job = await search.get(Number(id))
      if (job === undefined)
        throw new Problem(404, 'E_JOB_NOT_FOUND', `no job ${id}`, { hint: 'GET /v1/jobs lists them.' })
      return verbatim(job)
    },
    async listCompanies({ query: { cursor, q, limit } }) {
      const found = await search.companies({ q, limit, after: cursor })
      const data = found.slice(0, limit)
      return { data: verbatim(data), next: found.length > limit ? data.at(-1)!.key : null }
    },
  }
}

export function analyticsHandlers({ jobs }: { jobs: JobStore }): HandlersOf<typeof analyticsEndpoints> {
  const { analytics, health } = jobs
  return {
    jobsPerDay: async ({ query: { from, to, ...kind } }) => ({
      data: await analytics.jobsPerDay(daysOf({ from, to }), kind),
    }),
    jobsByCompany: ({ query }) => analytics.byCompany(daysOf(query), query.limit),
    jobsByLocation: ({ query }) => analytics.byLocation(daysOf(query), query.limit),
    salaryHistogram: async ({ query }) => ({ data: await analytics.salaryHistogram(daysOf(query), query) }),
    salaryTrend: async ({ query }) => ({ data: await analytics.salaryTrend(daysOf(query), query) }),
    hiringTrends: async ({ query }) => ({ data: await analytics.hiringTrends(daysOf(query), query.limit) }),
    async throughput({ query: { scraper, per, ...rest } }) {
      const { from, to } = daysOf(rest)
      const below = new Date(Date.parse(to) + DAY_MS).toISOString()
      return { data: await health.read({ from: new Date(from).toISOString(), below, scraper, per }) }
    },
    quality: async ({ query }) => ({ data: await analytics.quality(daysOf(query), query.source) }),
    duplicates: ({ query }) => analytics.duplicates(daysOf(query), query.source),
  }
}

function idIn(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw new Problem(400, 'E_REQUEST', 'the cursor is not from this list', { hint: 'Use `next` of the previous page.' })
}

function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  const last = to ?? new Date().toISOString().slice(0, 10)
  const first = from ?? new Date(Date.parse(last) - (DAYS_DEFAULT - 1) * DAY_MS).toISOString().slice(0, 10)
  if (first <= last) return { from: first, to: last }
  throw new Problem(400, 'E_REQUEST', '`from` is after `to`', { hint: 'Give the earlier day as `from`.' })
}
