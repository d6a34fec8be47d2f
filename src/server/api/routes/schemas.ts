/** Schemas shared by the routes. The record of a run is the same object as `run.json` in its folder. */
import * as z from 'zod'
import { NOT_FETCHED, type NotFetchedReason } from '../../../core/not-fetched.ts'
import { REGION_NAME } from '../../../core/run.ts'

const count = z.int().min(0)
const time = z.iso.datetime()

export const runId = z.string().regex(/^\d{8}_\d{6}_[0-9a-z]{2,8}$/, 'must be the id of a run')
export const scraperName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'must be the name of a scraper')

export const region = z.string().regex(REGION_NAME.pattern, REGION_NAME.rule)

const notFetched = z.partialRecord(z.enum(Object.keys(NOT_FETCHED) as [NotFetchedReason]), count)

const runRecord = z
  .object({
    id: z.string(),
    scraper: z.string(),
    state: z.enum(['running', 'finished', 'stopped', 'failed']),
    reason: z.string().nullable().describe('why it does not move, or how it ended'),
    args: z.json(),
    region: z.string().optional().describe('only workers in this region may take it; default: all workers'),
    source: z.string(),
    exitCode: z.int().nullable(),
    isComplete: z
      .boolean()
      .optional()
      .describe('it ended with nothing left to do; if it also failed, it exceeded its thresholds'),
    startedAt: time,
    finishedAt: time.nullable(),
    durationMs: z.number(),
    frontier: z.string(),
    pages: z.object({
      ok: count,
      failed: count,
      retried: count,
      postponed: count,
      remaining: count,
      dead: count,
      suspect: count.optional().describe('how many of those ok look like a block or an empty shell'),
    }),
    items: z.object({ new: count, same: count, changed: count, invalid: count }),
    files: z.object({ stored: count, same: count, recorded: count, failed: count, retried: count, bytes: count }),
    fields: z.array(z.string()).optional().describe('fields of its items, from the schema of the scraper'),
    fieldFill: z.record(z.string(), z.number()),
    bytes: count,
    latencyMs: z.object({ p50: z.number(), p95: z.number() }),
    rssBytesMax: count,
    cpuMs: z.number(),
    errors: z.array(z.object({ code: z.string(), class: z.string(), count, example: z.string() })),
    outputs: z.array(z.object({ sink: z.string(), target: z.string(), rows: count, bytes: count })),
    notFetched: notFetched.describe('links and pages that were not fetched, by reason'),
    warnings: z.array(z.string()),
  })
  .meta({ id: 'Run' })

const queueNumbers = z
  .object({ pending: count, claimed: count, completed: count, failed: count, dead: count, remaining: count })
  .meta({ id: 'QueueNumbers' })

export const runDetail = runRecord
  .extend({
    isAlive: z.boolean().describe('a worker is active on it'),
    isPaused: z.boolean(),
    why: z.string().nullable().describe('why it does not move; null when it does'),
    queue: queueNumbers,
    workers: z.int().nullable(),
  })
  .meta({ id: 'RunDetail' })

export const runSummary = z
  .object({
    id: z.string(),
    scraper: z.string(),
    region: z.string().nullable(),
    state: z.enum(['running', 'paused', 'finished', 'stopped', 'failed', 'unreadable']),
    isAlive: z.boolean(),
    startedAt: time.nullable(),
    finishedAt: time.nullable(),
    completed: count,
    remaining: count,
    failed: count,
    dead: count,
    items: count,
    rate: z.number().nullable().describe('pages a second'),
    workers: z.int().nullable(),
    why: z.string().nullable(),
  })
  .meta({ id: 'RunSummary' })

export const deadLetter = z
  .object({
    id: z.string(),
    runId: z.string(),
    url: z.string(),
    route: z.string(),
    code: z.string(),
    class: z.string(),
    message: z.string(),
    attempts: count,
    diedAt: time,
    hasSnapshot: z.boolean(),
  })
  .meta({ id: 'DeadLetter' })

export const deadGroup = z
  .object({
    runId: z.string(),
    code: z.string(),
    class: z.string(),
    cause: z.string(),
    count,
    exampleUrl: z.string(),
    firstAt: time,
    lastAt: time,
  })
  .meta({ id: 'DeadGroup' })

export const worker = z
  .object({
    id: z.string(),
    runId: z.string(),
    scraper: z.string(),
    host: z.string(),
    pid: z.int(),
    region: z.string().nullable(),
    only: z.enum(['pages', 'files']).nullable().describe('the part of a run’s work it does; null: all of it'),
    state: z.enum(['working', 'draining', 'stuck', 'gone', 'ended']),
    startedAt: time,
    silentMs: z.number(),
    inFlight: count.nullable(),
    rssBytes: count.nullable(),
    loopLagMs: z.number().nullable(),
  })
  .meta({ id: 'Worker' })

export const scraper = z
  .object({
    name: z.string(),
    description: z.string().nullable(),
    routes: z.array(z.string()),
    args: z.json().describe('JSON Schema of its arguments'),
    isBundled: z.boolean(),
    isOn: z.boolean().describe('false: an operator has to turn it on'),
    problem: z.string().nullable().describe('why it cannot be loaded'),
  })
  .meta({ id: 'Scraper' })

/** A page of a list, and the cursor of the next one. */
export const pageOf = <T extends z.ZodType>(element: T) =>
  z.object({ data: z.array(element), next: z.string().nullable().describe('the `cursor` of the next page') })

export const cursorQuery = {
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z.string().max(500).optional(),
}

export const ofRun = z.strictObject({ id: runId })

export const deadFilter = {
  class: z.string().max(100).optional(),
  code: z.string().max(100).optional(),
  host: z.string().max(300).optional(),
}
