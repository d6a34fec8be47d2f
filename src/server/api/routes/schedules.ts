/** Schedules: runs that start at given times (cron). */
import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { runLimits } from './runs.ts'
import { region, scraperName } from './schemas.ts'

const time = z.iso.datetime()
const word = z.strictObject({ id: z.string().min(1).max(100) })

const settings = {
  name: z.string().regex(/^[\w][\w .-]{0,99}$/, 'letters, digits, spaces, dots and hyphens, at most 100'),
  scraper: scraperName,
  args: z.record(z.string(), z.json()).default({}),
  limits: runLimits,
  region: region.optional().describe('only workers in this region may take its runs'),
  cron: z.string().min(1).max(200).describe('five fields, or hourly, daily, weekly, monthly'),
  tz: z.string().min(1).max(100).default('UTC').describe('IANA name of the time zone'),
  overlap: z
    .enum(['skip', 'queue', 'cancel-old'])
    .default('skip')
    .describe('what to do while the previous run is still active'),
  jitterMs: z.int().min(0).max(86_400_000).default(0).describe('each fire comes up to this much later'),
  isCatchUp: z.boolean().default(false).describe('make up, with one run, for fires missed while no server was running'),
}

const newSchedule = z.strictObject(settings).meta({ id: 'NewSchedule' })

const fire = z
  .object({
    dueAt: time,
    outcome: z.enum(['starting', 'queued', 'started', 'skipped', 'missed', 'failed']),
    runId: z.string().nullable(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'Fire' })

const scheduleDetail = z
  .object({
    ...z.object(settings).shape,
    id: z.string(),
    isPaused: z.boolean(),
    createdAt: time,
    nextAt: time.nullable(),
    lastFires: z.array(fire),
  })
  .meta({ id: 'Schedule' })

const area = 'schedules'

export const scheduleEndpoints = {
  listSchedules: endpoint({
    method: 'GET',
    path: '/v1/schedules',
    area,
    role: 'read',
    summary: 'Schedules by name, each with its last fires',
    answer: z.object({ data: z.array(scheduleDetail) }),
  }),
  createSchedule: endpoint({
    method: 'POST',
    path: '/v1/schedules',
    area,
    role: 'operate',
    summary: 'Run a scraper by the clock',
    body: newSchedule,
    status: 201,
    answer: scheduleDetail,
    isIdempotentByKey: true,
  }),
  getSchedule: endpoint({
    method: 'GET',
    path: '/v1/schedules/:id',
    area,
    role: 'read',
    summary: 'A schedule, by id or name',
    params: word,
    answer: scheduleDetail,
  }),
  updateSchedule: endpoint({
    method: 'PUT',
    path: '/v1/schedules/:id',
    area,
    role: 'operate',
    summary: 'Replace the settings of a schedule',
    params: word,
    body: newSchedule,
    answer: scheduleDetail,
  }),
  deleteSchedule: endpoint({
    method: 'DELETE',
    path: '/v1/schedules/:id',
    area,
    role: 'operate',
    summary: 'Remove a schedule; its runs stay',
    params: word,
    status: 204,
    answer: undefined,
  }),
  pauseSchedule: endpoint({
    method: 'POST',
    path: '/v1/schedules/:id/pause',
    area,
    role: 'operate',
    summary: 'Fire no more until it is resumed',
    params: word,
    answer: scheduleDetail,
  }),
  resumeSchedule: endpoint({
    method: 'POST',
    path: '/v1/schedules/:id/resume',
    area,
    role: 'operate',
    summary: 'Fire again from its next time on',
    params: word,
    answer: scheduleDetail,
  }),
  triggerSchedule: endpoint({
    method: 'POST',
    path: '/v1/schedules/:id/trigger',
    area,
    role: 'operate',
    summary: 'Start its run now',
    params: word,
    status: 202,
    answer: z.object({ id: z.string(), url: z.string() }),
    isIdempotentByKey: true,
  }),
  nextTimes: endpoint({
    method: 'GET',
    path: '/v1/schedules/:id/next',
    area,
    role: 'read',
    summary: 'When it fires next',
    params: word,
    query: z.strictObject({ n: z.coerce.number().int().min(1).max(100).default(5) }),
    answer: z.object({ tz: z.string(), times: z.array(time) }),
  }),
} as const
