/** The audit log: who did what through this API. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { cursorQuery, pageOf } from './schemas.ts'

const auditEntry = z
  .object({
    id: z.string(),
    at: z.iso.datetime(),
    caller: z.string().describe('the name of the key, or the address'),
    role: z.string(),
    address: z.string(),
    action: z.string().describe('POST /v1/runs'),
    detail: z.string().describe('what was asked, cut'),
    status: z.int().describe('how it ended; 401, 403 and 429 were refused, and are told once a minute and address'),
  })
  .meta({ id: 'AuditEntry' })

export const auditEndpoints = {
  listAudit: endpoint({
    method: 'GET',
    path: '/v1/audit',
    area: 'audit',
    role: 'admin',
    summary: 'Who changed what, and who was refused, the newest first',
    query: z.strictObject({
      ...cursorQuery,
      cursor: z
        .string()
        .regex(/^\d{1,15}$/)
        .optional(),
    }),
    answer: pageOf(auditEntry),
  }),
} as const
