/** Webhooks: who is notified of which events, and the log of deliveries. */
import * as z from 'zod'
import { EVENT_TYPES, MODES } from '../../webhooks/contract.ts'
import { endpoint } from './endpoint.ts'
import { cursorQuery, pageOf } from './schemas.ts'

const time = z.iso.datetime()
const name = z.string().regex(/^[\w][\w .-]{0,99}$/, 'letters, digits, spaces, dots and hyphens, at most 100')
const word = z.strictObject({ id: name })
const words = z.array(z.string().min(1).max(200)).min(1).max(100)

const filter = z
  .strictObject({
    keywords: words.describe('one of them is in its text'),
    companies: words,
    locations: words.describe('a part of a place, or a country such as DE'),
    sources: words,
    employment_type: words,
    workplace: words,
    salary_min: z.number().min(0).describe('a year’s pay reaches this'),
    salary_currency: z.string().length(3),
    exclude: words.describe('none of these words'),
    scrapers: words,
  })
  .partial()
  .default({})

const settings = {
  name,
  url: z.string().min(1).max(2000).describe('http(s), reached without redirects; private addresses are refused'),
  events: z
    .array(z.string().min(1).max(50))
    .min(1)
    .max(50)
    .describe(`*, run.*, or: ${EVENT_TYPES.join(', ')}`),
  filter,
  mode: z.enum(MODES).default('instant').describe('hourly and daily collect the events of an hour or a day (UTC)'),
  isActive: z.boolean().default(true),
}

const newWebhook = z.strictObject(settings).meta({ id: 'NewWebhook' })

const webhookDetail = z
  .object({
    ...z.object(settings).shape,
    id: z.string(),
    createdAt: time,
    disabledReason: z.string().nullable().describe('why we turned it off'),
    failingSince: time.nullable(),
  })
  .meta({ id: 'Webhook' })

const secret = z.string().describe('signs deliveries (Standard Webhooks); shown this once')

const delivery = z
  .object({
    id: z.string(),
    webhookId: z.string(),
    eventId: z.string(),
    type: z.enum(EVENT_TYPES),
    state: z.enum(['pending', 'failed', 'delivered', 'dead']).describe('failed: it is tried again'),
    attempts: z.int(),
    createdAt: time,
    nextAt: time.nullable(),
    lastAt: time.nullable(),
    status: z.int().nullable(),
    durationMs: z.int().nullable(),
    answer: z.string().nullable().describe('the beginning of what was answered'),
    error: z.string().nullable(),
  })
  .meta({ id: 'Delivery' })

/** The payload a receiver gets. */
const webhookEvent = z
  .object({
    id: z.string(),
    type: z.enum(EVENT_TYPES),
    created_at: time,
    api_version: z.string(),
    data: z.record(z.string(), z.json()),
  })
  .meta({ id: 'Event' })

const area = 'webhooks'

export const webhookEndpoints = {
  listWebhooks: endpoint({
    method: 'GET',
    path: '/v1/webhooks',
    area,
    role: 'read',
    summary: 'Webhooks by name',
    answer: z.object({ data: z.array(webhookDetail) }),
  }),
  createWebhook: endpoint({
    method: 'POST',
    path: '/v1/webhooks',
    area,
    role: 'operate',
    summary: 'Be told of events',
    body: newWebhook,
    isIdempotentByKey: true,
    status: 201,
    answer: webhookDetail.extend({ secret }).meta({ id: 'CreatedWebhook' }),
  }),
  getWebhook: endpoint({
    method: 'GET',
    path: '/v1/webhooks/:id',
    area,
    role: 'read',
    summary: 'A webhook, by id or name',
    params: word,
    answer: webhookDetail,
  }),
  updateWebhook: endpoint({
    method: 'PUT',
    path: '/v1/webhooks/:id',
    area,
    role: 'operate',
    summary: 'Replace the settings of a webhook; its secret stays',
    params: word,
    body: newWebhook,
    answer: webhookDetail,
  }),
  deleteWebhook: endpoint({
    method: 'DELETE',
    path: '/v1/webhooks/:id',
    area,
    role: 'operate',
    summary: 'Remove a webhook with its deliveries',
    params: word,
    status: 204,
    answer: undefined,
  }),
  testWebhook: endpoint({
    method: 'POST',
    path: '/v1/webhooks/:id/test',
    area,
    role: 'operate',
    summary: 'Send it an event of type webhook.test',
    params: word,
    status: 202,
    answer: delivery,
  }),
  rotateSecret: endpoint({
    method: 'POST',
    path: '/v1/webhooks/:id/rotate-secret',
    area,
    role: 'operate',
    summary: 'A new secret; the old one signs too for a day',
    params: word,
    answer: z.object({ secret, oldUntil: time }),
  }),
  listDeliveries: endpoint({
    method: 'GET',
    path: '/v1/webhooks/:id/deliveries',
    area,
    role: 'read',
    summary: 'What was sent to a webhook, the newest first',
    params: word,
    query: z.strictObject({
      ...cursorQuery,
      cursor: z
        .string()
        .regex(/^\d{1,15}$/)
        .optional(),
    }),
    answer: pageOf(delivery),
  }),
  redeliver: endpoint({
    method: 'POST',
    path: '/v1/deliveries/:id/redeliver',
    area,
    role: 'operate',
    summary: 'Send an event once more, with its own id',
    params: z.strictObject({ id: z.string().regex(/^\d{1,15}$/) }),
    status: 202,
    answer: delivery,
  }),
  listEvents: endpoint({
    method: 'GET',
    path: '/v1/events',
    area,
    role: 'read',
    summary: 'What happened, the newest first; kept for 30 days',
    query: z.strictObject({ ...cursorQuery, cursor: z.uuid().optional(), type: z.enum(EVENT_TYPES).optional() }),
    answer: pageOf(webhookEvent),
  }),
} as const
