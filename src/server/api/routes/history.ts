/** History: items across runs, what happened to them, and how two runs differ. */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { cursorQuery, pageOf, runId, scraperName } from './schemas.ts'

const area = 'history'
const time = z.iso.datetime()
const count = z.int().min(0)
const item = z.record(z.string(), z.json())

const entity = z
  .object({
    scraper: z.string(),
    key: z.string(),
    status: z.enum(['active', 'gone']),
    firstSeenAt: time,
    lastSeenAt: time,
    lastRunId: z.string(),
    timesSeen: count,
    item,
  })
  .meta({ id: 'KnownItem' })

const change = z
  .object({
    at: time,
    runId: z.string(),
    kind: z.enum(['new', 'changed', 'gone', 'back']),
    fields: z.array(z.object({ field: z.string(), before: z.json(), after: z.json() })),
  })
  .meta({ id: 'Change' })

const difference = z
  .object({
    kind: z.enum(['added', 'removed', 'changed']),
    key: z.string(),
    item: item.optional().describe('as it is, or was; not for changed ones'),
    fields: z.record(z.string(), z.object({ old: z.json(), new: z.json() })).optional(),
  })
  .meta({ id: 'Difference' })

export const historyEndpoints = {
  diffRuns: endpoint({
    method: 'GET',
    path: '/v1/runs/:id/diff/:other',
    area,
    role: 'read',
    summary:
      'Differences between `other` and the run, field by field; fields that say when a page was fetched are ignored',
    params: z.strictObject({ id: runId, other: runId }),
    query: z.strictObject({
      ...cursorQuery,
      ignore: z.string().max(1000).optional().describe('additional fields to ignore, comma separated'),
    }),
    answer: pageOf(difference).extend({
      by: z.enum(['field', 'key', 'whole']).describe('how items are told apart; as wholes none can have changed'),
      totals: z.object({ added: count, removed: count, changed: count, unchanged: count, repeated: count }),
      fieldsAdded: z
        .array(z.string())
        .describe('fields that only `other` has in its schema; they do not count as changes of items'),
      fieldsRemoved: z.array(z.string()).describe('fields that only the run has in its schema'),
    }),
  }),
  listKnownItems: endpoint({
    method: 'GET',
    path: '/v1/items',
    area,
    role: 'read',
    summary: 'Items of all runs as they were last seen, by scraper and key',
    query: z.strictObject({
      ...cursorQuery,
      scraper: scraperName.optional(),
      status: z.enum(['active', 'gone']).optional(),
      q: z.string().min(1).max(200).optional().describe('a text in any of its fields'),
    }),
    answer: pageOf(entity),
  }),
  getItemHistory: endpoint({
    method: 'GET',
    path: '/v1/items/:scraper/:key/history',
    area,
    role: 'read',
    summary: 'What happened to an item, and the values of each field over time',
    params: z.strictObject({ scraper: scraperName, key: z.string().min(1).max(2000) }),
    answer: z.object({
      item: entity,
      changes: z.array(change).describe('the oldest first'),
      isCut: z.boolean().describe('older changes are not returned'),
      fields: z.record(z.string(), z.array(z.object({ at: time, value: z.json() }))),
    }),
  }),
  getIngest: endpoint({
    method: 'GET',
    path: '/v1/ingest',
    area,
    role: 'read',
    summary: 'How far and how fast this server reads the items of runs into history',
    answer: z.object({
      isLeader: z.boolean().describe('this one of several servers reads the runs of the store'),
      items: count.describe('read since it began'),
      latencyMs: z
        .object({ p50: z.number(), p99: z.number(), count })
        .describe('from the reading of a page to its items being known here'),
    }),
  }),
} as const
