/** The fleet: its workers, and the scrapers this server knows. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { runId, scraper, worker } from './schemas.ts'

export const fleetEndpoints = {
  listWorkers: endpoint({
    method: 'GET',
    path: '/v1/workers',
    area: 'fleet',
    role: 'read',
    summary: 'Workers, the newest first',
    query: z.strictObject({ run: runId.optional(), alive: z.stringbool().optional() }),
    answer: z.object({ data: z.array(worker) }),
  }),
  drainWorker: endpoint({
    method: 'POST',
    path: '/v1/workers/:id/drain',
    area: 'fleet',
    role: 'operate',
    summary: 'The worker finishes what it has and ends',
    params: z.strictObject({ id: z.string().min(1).max(200) }),
    answer: undefined,
    status: 204,
  }),
  listScrapers: endpoint({
    method: 'GET',
    path: '/v1/scrapers',
    area: 'fleet',
    role: 'read',
    summary: 'Scrapers this server knows',
    answer: z.object({ data: z.array(scraper) }),
  }),
} as const
