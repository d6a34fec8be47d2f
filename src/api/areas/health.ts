/** Health: does it live, is it ready. */
import * as z from 'zod'
import { endpoint } from '../endpoint.ts'

export const healthEndpoints = {
  healthz: endpoint({
    method: 'GET',
    path: '/healthz',
    area: 'health',
    summary: 'The process lives',
    answer: z.object({ status: z.literal('ok') }),
  }),
  readyz: endpoint({
    method: 'GET',
    path: '/readyz',
    area: 'health',
    summary: 'Everything it needs is there; 503 names what is missing',
    answer: z.object({
      status: z.literal('ready'),
      checks: z.array(z.object({ name: z.string(), ok: z.boolean(), ms: z.number(), problem: z.string().nullable() })),
    }),
  }),
} as const
