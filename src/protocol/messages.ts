/**
 * The messages of the task protocol, each declared once: validation, TypeScript types and the JSON Schema in
 * docs/reference/messages.md come from here. A stream entry has one field, `message`, which contains the JSON.
 */
import * as z from 'zod'

/** A message of another version is refused; one without a version is treated as this one. */
export const MESSAGE_VERSION = 1
/** Larger messages are refused without being parsed. */
export const MESSAGE_BYTES_MAX = { task: 64 * 1024, result: 8 * 1024 ** 2, command: 16 * 1024 }

const version = z.literal(MESSAGE_VERSION).default(MESSAGE_VERSION).describe('of the message format')
const time = z.iso.datetime({ offset: true })
const seconds = z.number().min(0)
const count = z.int().min(0)
const text = z.string().nullable().default(null)

/** The name of the scraper, one per type. */
const scraperType = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must be the name of a scraper' })
  .describe('name of the scraper')
const taskId = z.uuid().describe('identity of the task: all tries and all results of it carry it')
const workerId = z.string().min(1).max(200).describe('`host_pid_random`')

const paramsSchema = z
  .looseObject({
    search_term: z.string().max(1000).optional().describe('words to look for'),
    location: z.string().max(1000).optional().describe('city, region or country'),
    results_wanted: z.int().min(1).max(1_000_000).optional().describe('the task ends when it has so many'),
    proxy: z.string().max(2000).optional().describe('`user:password@host:port`, or a URL; for this task only'),
    user_agent: z.string().min(1).max(1000).optional().describe('for this task only'),
    delay_range: z
      .tuple([seconds.max(3600), seconds.max(3600)])
      .optional()
      .describe('shortest and longest pause between two requests to a host, in seconds'),
    job_type: z.string().max(100).optional().describe('kind of employment'),
    is_remote: z.boolean().optional().describe('true: remote work only; false: none of it'),
    salary_min: z.number().optional().describe('postings with lower pay are excluded; postings without pay are kept'),
    salary_max: z.number().optional().describe('postings above this are excluded'),
    page_limit: z.int().min(1).max(1_000_000).optional().describe('the task ends after so many pages'),
    posted_since: z
      .union([z.number().min(0), time, z.iso.date()])
      .optional()
      .describe('days back, or a date'),
    args: z.record(z.string(), z.unknown()).optional().describe('any argument of the scraper, by its own name'),
  })
  .describe('what to look for; a name that is not here is taken for an argument of the scraper')

/** The wire names that `params` accepts. */
export const PARAM_NAMES = Object.keys(paramsSchema.shape)

export const taskSchema = z.object({
  version,
  task_id: taskId,
  scraper_type: scraperType,
  params: paramsSchema.default({}),
  priority: z
    .int()
    .min(-1000)
    .max(1000)
    .default(0)
    .describe('above 0: put on the priority stream, which is read first'),
  created_at: time,
  timeout: seconds.min(0.1).max(86_400).default(300).describe('seconds a try may take'),
  retry_count: count.max(1000).default(0).describe('tries before this one'),
  max_retries: count.max(100).default(3).describe('tries after the first one'),
  turned_away: z
    .array(z.string().max(300))
    .max(1000)
    .optional()
    .describe('ways on which earlier tries were: proxies (`host:port`), browser profiles, or `http`; others are taken'),
})

const RESULT_STATUSES = ['pending', 'running', 'success', 'failed', 'partial', 'timeout', 'retry'] as const
/** After one of these, the task produces nothing more. */
export const FINAL_STATUSES: readonly ResultStatus[] = ['success', 'failed', 'partial', 'timeout']

export const jobSchema = z
  .looseObject({
    title: z.string(),
    company: text,
    location: text,
    salary_min: z.number().nullable().default(null),
    salary_max: z.number().nullable().default(null),
    salary_currency: text,
    job_url: z.string(),
    description: text,
    posted_date: text.describe('ISO 8601'),
    job_hash: z.string().optional().describe('SHA-256, equal for the same job on two boards'),
    job_type: text,
    is_remote: z.boolean().nullable().default(null),
    apply_url: text,
    company_logo: text,
    external_job_id: text.describe('the board’s own id'),
    skills: z.array(z.string()).default([]),
    benefits: z.array(z.string()).default([]),
    posting: z.record(z.string(), z.unknown()).optional().describe('everything else our own scrapers know of it'),
  })
  .describe('a job posting')

const metadataSchema = z.object({
  proxy_used: text.describe('`host:port`'),
  requests_made: count.default(0),
  rate_limited: z.boolean().default(false),
  captcha_encountered: z.boolean().default(false),
  pages_scraped: count.default(0),
  pages_failed: count.default(0),
  blocked_requests: count.default(0),
  average_response_time: seconds.default(0).describe('seconds'),
  memory_usage_mb: z.number().min(0).default(0),
  worker_id: workerId.optional(),
  ignored_params: z.array(z.string()).default([]).describe('search parameters the scraper has no use for'),
  files_left_out: count.default(0).describe('files the pages ordered; a task brings none home'),
  items_invalid: count.default(0).describe('items that do not match the schema of the scraper; they are not stored'),
  warnings: z.array(z.string()).default([]).describe('what a person should know of, such as that nothing was found'),
})

export const resultSchema = z.object({
  version,
  task_id: taskId,
  status: z.enum(RESULT_STATUSES).describe('final ones: success, failed, partial, timeout'),
  scraper_type: scraperType,
  attempt: z.int().min(1).default(1).describe('which try this is the result of, from 1'),
  execution_time: seconds.describe('seconds'),
  jobs_found: count.describe('over all parts'),
  jobs_data: z.array(jobSchema).default([]).describe('of a scraper of job postings'),
  items: z.array(z.record(z.string(), z.unknown())).default([]).describe('of any other scraper'),
  item_keys: z.array(z.string()).default([]).describe('identity of each of `items`, in their order'),
  part: z
    .object({ number: z.int().min(1), of: z.int().min(1) })
    .optional()
    .describe('a large result comes in several messages, which differ in `jobs_data`, `items` and this'),
  params: z.record(z.string(), z.unknown()).optional().describe('those of the task, without its proxy'),
  metadata: metadataSchema.prefault({}),
  completed_at: time,
  error: z.string().nullable().default(null).describe('why it is not a success'),
  error_code: text.describe('one of the codes in errors.md'),
})

export const errorSchema = z.object({
  version,
  error_code: z.string(),
  error_message: z.string(),
  occurred_at: time,
  worker_id: workerId.nullable().default(null),
  task_id: z.string().nullable().default(null),
  scraper_type: z.string().nullable().default(null),
  retry_count: count.default(0),
  will_retry: z.boolean().default(false),
  retry_at: time.nullable().default(null),
  stream: text.describe('where a message was refused'),
  entry_id: text.describe('which one'),
  refused: text.describe('the beginning of the refused message'),
})

const HEALTH_STATUSES = ['healthy', 'degraded', 'unhealthy'] as const

export const healthSchema = z.object({
  version,
  worker_id: workerId,
  scraper_type: scraperType,
  status: z.enum(HEALTH_STATUSES),
  reason: text.describe('why it is not healthy'),
  is_paused: z.boolean().default(false),
  active_tasks: count,
  completed_tasks_last_hour: count,
  error_rate_last_hour: z.number().min(0).max(1),
  memory_usage_mb: z.number().min(0),
  cpu_usage_percent: z.number().min(0).describe('of one core'),
  proxy_pool_size: count,
  proxy_success_rate: z.number().min(0).max(1),
  last_successful_scrape: time.nullable(),
  reported_at: time,
})

export const commandSchema = z.object({
  version,
  command: z
    .enum(['pause', 'resume', 'drain', 'stop', 'report'])
    .describe('drain: finish what is begun, then end; stop: hand it back and end; report: a health message, now'),
  worker_id: workerId.optional().describe('for this worker'),
  scraper_type: scraperType.optional().describe('for all workers of this type; neither: for all'),
})

export type TaskMessage = z.output<typeof taskSchema>
export type TaskParams = TaskMessage['params']
export type ResultMessage = z.output<typeof resultSchema>
export type ResultMetadata = ResultMessage['metadata']
export type ResultStatus = (typeof RESULT_STATUSES)[number]
export type WireJob = z.output<typeof jobSchema>
export type ErrorMessage = z.output<typeof errorSchema>
export type HealthMessage = z.output<typeof healthSchema>
export type CommandMessage = z.output<typeof commandSchema>

/** For docs and tests: name → schema. */
export const MESSAGES = {
  task: taskSchema,
  result: resultSchema,
  error: errorSchema,
  health: healthSchema,
  command: commandSchema,
} as const

type Read<T> = { ok: true; value: T } | { ok: false; reason: string }

/** Never throws, whatever the text. */
export function readMessage<T>(schema: z.ZodType<T>, message: string | undefined, bytesMax: number): Read<T> {
  if (message === undefined) return refused('the entry has no field "message"')
  const bytes = Buffer.byteLength(message)
  if (bytes > bytesMax) return refused(`${bytes} bytes, over the limit of ${bytesMax}`)
  let value: unknown
  try {
    value = JSON.parse(message)
  } catch (error) {
    // The rest of the error repeats the text, which may contain a password.
    return refused(`no JSON${/ at position \d+/.exec((error as Error).message)?.[0] ?? ''}`)
  }
  const spoken = (value as { version?: unknown } | null)?.version ?? MESSAGE_VERSION
  if (spoken !== MESSAGE_VERSION)
    return refused(`version ${JSON.stringify(spoken)?.slice(0, 40)}; version ${MESSAGE_VERSION} is spoken here`)
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const problems = parsed.error.issues.slice(0, 5)
  return refused(problems.map(({ path, message: what }) => `${path.join('.') || 'message'}: ${what}`).join('; '))
}

const refused = (reason: string) => ({ ok: false as const, reason: reason.slice(0, 1000) })
