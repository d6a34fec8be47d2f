/** Health: liveness and readiness. */
import * as z from 'zod'
import { endpoint, streamed } from './endpoint.ts'

const check = z.object({ name: z.string(), ok: z.boolean(), ms: z.number(), problem: z.string().nullable() })
const time = z.iso.datetime().nullable()

export const healthEndpoints = {
  health: endpoint({
    method: 'GET',
    path: '/v1/health',
    area: 'health',
    role: 'read',
    summary: 'How the server is, and what it looks after: store, queues, workers, scrapers, its own answers',
    answer: z.object({
      store: check,
      runs: z.object({ running: z.int(), paused: z.int() }),
      queue: z.object({ remaining: z.int(), dead: z.int() }),
      workers: z.object({ working: z.int(), draining: z.int(), stuck: z.int() }),
      scrapers: z.array(
        z.object({
          name: z.string(),
          status: z.string(),
          lastRun: z.string().nullable(),
          lastSuccessAt: time,
          successRate: z.number().nullable().describe('of the last ten runs'),
        }),
      ),
      scheduler: z
        .object({ isThere: z.boolean(), seenAt: time })
        .describe('the server that does what is due: schedules, webhooks, history, retention'),
      api: z.object({
        requests: z.int(),
        faults: z.int(),
        p50Ms: z.number(),
        p95Ms: z.number(),
        p99Ms: z.number(),
      }),
    }),
  }),
  metrics: endpoint({
    method: 'GET',
    path: '/metrics',
    area: 'health',
    role: 'read',
    summary: 'For Prometheus',
    answer: streamed('text/plain; version=0.0.4'),
  }),
  livez: endpoint({
    method: 'GET',
    path: '/livez',
    area: 'health',
    summary: 'The process is alive. Checks no other service, so a database outage does not get it killed',
    answer: z.object({ status: z.literal('ok') }),
  }),
  healthz: endpoint({
    method: 'GET',
    path: '/healthz',
    area: 'health',
    summary: 'As /livez',
    answer: z.object({ status: z.literal('ok') }),
  }),
  readyz: endpoint({
    method: 'GET',
    path: '/readyz',
    area: 'health',
    summary: 'Everything it needs is there; 503 names what is missing',
    answer: z.object({
      status: z.literal('ready'),
      checks: z.array(check),
    }),
  }),
} as const
