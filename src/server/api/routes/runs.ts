/** Runs: start, watch and control them, and export their items. */
import * as z from 'zod'
import { endpoint, streamed } from './endpoint.ts'
import { cursorQuery, deadFilter, ofRun, pageOf, region, runDetail, runId, runSummary, scraperName } from './schemas.ts'

const steered = z.object({ isChanged: z.boolean(), reason: z.string().nullable() })

/** The limits a caller may set for a run. */
export const runLimits = z
  .strictObject({
    pages: z.int().min(1).max(1e9),
    concurrency: z.int().min(1).max(4096),
    perHost: z.strictObject({ concurrency: z.int().min(1).max(4096), rps: z.number().min(0).max(100_000) }).partial(),
    retries: z.int().min(0).max(100),
  })
  .partial()
  .default({})

const newRun = z
  .strictObject({
    scraper: scraperName,
    args: z.record(z.string(), z.json()).default({}),
    limits: runLimits,
    region: region.optional().describe('only workers of this region take it'),
  })
  .meta({ id: 'NewRun' })

export const runEndpoints = {
  listRuns: endpoint({
    method: 'GET',
    path: '/v1/runs',
    area: 'runs',
    role: 'read',
    summary: 'Runs, the newest first',
    query: z.strictObject({
      ...cursorQuery,
      cursor: runId.optional(),
      scraper: scraperName.optional(),
      state: runSummary.shape.state.optional(),
    }),
    answer: pageOf(runSummary),
  }),
  startRun: endpoint({
    method: 'POST',
    path: '/v1/runs',
    area: 'runs',
    role: 'operate',
    summary: 'Start a run of a scraper',
    body: newRun,
    status: 202,
    answer: z.object({ id: z.string(), url: z.string() }),
    isIdempotentByKey: true,
  }),
  getRun: endpoint({
    method: 'GET',
    path: '/v1/runs/:id',
    area: 'runs',
    role: 'read',
    summary: 'A run: its record and how it is now',
    params: ofRun,
    answer: runDetail,
  }),
  pauseRun: endpoint({
    method: 'POST',
    path: '/v1/runs/:id/pause',
    area: 'runs',
    role: 'operate',
    summary: 'Claim nothing more; what is in flight is finished',
    params: ofRun,
    answer: steered,
  }),
  resumeRun: endpoint({
    method: 'POST',
    path: '/v1/runs/:id/resume',
    area: 'runs',
    role: 'operate',
    summary: 'Resume a paused or stopped run',
    params: ofRun,
    answer: steered,
  }),
  cancelRun: endpoint({
    method: 'POST',
    path: '/v1/runs/:id/cancel',
    area: 'runs',
    role: 'operate',
    summary: 'End a run; it stays resumable',
    params: ofRun,
    answer: steered,
  }),
  retryFailed: endpoint({
    method: 'POST',
    path: '/v1/runs/:id/retry-failed',
    area: 'runs',
    role: 'operate',
    summary: 'Put the pages it gave up on back into its queue',
    params: ofRun,
    body: z.strictObject(deadFilter).default({}),
    answer: z.object({ retried: z.int() }),
  }),
  getItems: endpoint({
    method: 'GET',
    path: '/v1/runs/:id/items',
    area: 'runs',
    role: 'read',
    summary: 'The items of a run, streamed; `json` gives one page of them and a cursor',
    params: ofRun,
    query: z.strictObject({ ...cursorQuery, format: z.enum(['json', 'jsonl', 'csv']).default('json') }),
    answer: streamed('application/json', 'application/jsonl', 'text/csv'),
  }),
  watchRun: endpoint({
    method: 'GET',
    path: '/v1/runs/:id/events',
    area: 'runs',
    role: 'read',
    summary: 'What happens in a run, as server-sent events; `Last-Event-ID` resumes',
    params: ofRun,
    answer: streamed('text/event-stream'),
  }),
  getErrors: endpoint({
    method: 'GET',
    path: '/v1/runs/:id/errors',
    area: 'runs',
    role: 'read',
    summary: 'What went wrong, grouped',
    params: ofRun,
    query: z.strictObject({ group: z.enum(['class', 'code', 'cause']).default('class') }),
    answer: z.object({ groups: z.array(z.object({ name: z.string(), count: z.int(), example: z.string() })) }),
  }),
} as const
