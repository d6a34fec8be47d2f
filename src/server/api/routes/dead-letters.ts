/** Dead letters: pages a run gave up on. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { cursorQuery, deadFilter, deadGroup, deadLetter, pageOf, runId } from './schemas.ts'

const letterId = z.string().regex(/^[0-9a-f]{64}$/, 'must be the id of a dead letter')

export const deadLetterEndpoints = {
  listDead: endpoint({
    method: 'GET',
    path: '/v1/dlq',
    area: 'dead letters',
    role: 'read',
    summary: 'Pages a run gave up on, oldest first',
    query: z.strictObject({ ...cursorQuery, cursor: letterId.optional(), run: runId, ...deadFilter }),
    answer: pageOf(deadLetter),
  }),
  listDeadGroups: endpoint({
    method: 'GET',
    path: '/v1/dlq/groups',
    area: 'dead letters',
    role: 'read',
    summary: 'Dead letters grouped by cause',
    query: z.strictObject({ run: runId }),
    answer: z.object({ groups: z.array(deadGroup) }),
  }),
  redrive: endpoint({
    method: 'POST',
    path: '/v1/dlq/redrive',
    area: 'dead letters',
    role: 'operate',
    summary: 'Back to pending with fresh tries',
    body: z.strictObject({ run: runId, ...deadFilter, ids: z.array(z.string().max(64)).max(1000).optional() }),
    answer: z.object({ retried: z.int() }),
  }),
  dropDead: endpoint({
    method: 'DELETE',
    path: '/v1/dlq',
    area: 'dead letters',
    role: 'operate',
    summary: 'Forget dead letters; they stay counted as failed',
    query: z.strictObject({ run: runId, ...deadFilter }),
    answer: z.object({ dropped: z.int() }),
  }),
} as const
