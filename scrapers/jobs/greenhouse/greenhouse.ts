/** Greenhouse: a whole board in one response; with `pay`, also each posting's own response, since only that one has the pay. */
import { defineScraper } from 'sluice'
import { isWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertFilled,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  httpUrl,
  listOf,
  nameOfToken,
  number,
  part,
  pathId,
  readAs,
  text,
  under,
} from '../shared.ts'

const API = 'https://boards-api.greenhouse.io/'

const Board = z.object({ jobs: z.array(z.unknown()), meta: part(z.object({ total: number })) })

const Job = z.object({
  id: pathId,
  title: z.string().min(1),
  absolute_url: httpUrl,
  internal_job_id: z.unknown(),
  updated_at: text,
  first_published: text,
  requisition_id: text,
  company_name: text,
  language: text,
  content: text,
  location: part(z.object({ name: text })),
  departments: listOf(z.object({ name: text })),
  offices: listOf(z.object({ name: text, location: text })),
  metadata: listOf(z.object({ name: z.string(), value: z.string() })),
  pay_input_ranges: listOf(z.object({ min_cents: number, max_cents: number, currency_type: text, title: text })),
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'greenhouse',
  description: 'Postings of an employer’s Greenhouse board (boards.greenhouse.io/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in boards.greenhouse.io/BOARD'),
    site: z.url().optional().describe('in place of boards-api.greenhouse.io'),
    pay: z.stringbool().or(z.boolean()).default(false).describe('read pay ranges: one more request for each posting'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: { match: '/*/boards/:board/jobs', accept: GONE_STATUSES, priority: 1 },
    job: {
      match: '/*/boards/:board/jobs/:id',
      accept: [404, 410],
      data: z.object({ isCut: z.boolean().default(false) }),
    },
  },
  start: ({ args, enqueue }) => enqueue('list', under(args.site ?? API, `v1/boards/${args.board}/jobs?content=true`)),
  handlers: {
    async list({ args, status, url, fetchedAt, json, log, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const { jobs, meta } = readAs(Board, json(), url)
      assertFilled(jobs, { offset: 0, total: meta?.total ?? 0, url })
      const isCut = (meta?.total ?? jobs.length) > jobs.length
      if (isCut) log.warn(`the board has ${meta?.total} postings and sent ${jobs.length}`)
      const postings = (await entriesOf(Job, jobs, emit))
        .map((job) => postingOf(job, args.board, fetchedAt, isCut))
        .filter((posting) => isWanted(posting, args, fetchedAt))
        .slice(0, args.results)
      if (!args.pay) for (const posting of postings) await emit(posting)
      else {
        await enqueue(
          'job',
          postings.map((posting) => ({
            url: under(url.origin + url.pathname, `${posting.source_job_id}?pay_transparency=true`),
            data: { isCut },
          })),
        )
      }
    },
    async job({ args, data, status, url, fetchedAt, json, emit, skip }) {
      if (status !== 200) skip('the posting was closed a moment ago')
      await emit(postingOf(readAs(Job, json(), url), args.board, fetchedAt, data.isCut))
    },
  },
  limits: { concurrency: 8, perHost: { concurrency: 8, rps: 8 }, bodyMax: '128MiB', linksMax: 100_000 },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function postingOf(job: Job, board: string, now: Date, isCut: boolean): Posting {
  const office = job.offices[0]
  return toPosting(
    'greenhouse',
    {
      source_job_id: job.id,
      board_token: board,
      requisition_id: job.requisition_id,
      title: job.title,
      company: job.company_name ?? nameOfToken(board),
      locations: [job.location?.name ?? office?.location ?? office?.name],
      workplace: fieldOf(job, /^(?:work ?place|location|remote)(?: type)?$/i),
      employment_type: fieldOf(job, /^(?:employment|job|time|commitment)(?: type)?$/i),
      salary: payOf(job),
      date_posted: job.first_published ?? job.updated_at,
      description_html: job.content,
      job_url: job.absolute_url,
      department: job.departments[0]?.name,
      language: job.language,
      raw: {
        ...(job.internal_job_id === null ? { is_prospect: true } : {}),
        ...(job.metadata.length > 0 ? { metadata: job.metadata } : {}),
        ...(job.pay_input_ranges.length > 1 ? { pay_input_ranges: job.pay_input_ranges } : {}),
        ...(isCut ? { truncated: true } : {}),
      },
    },
    { now },
  )
}

/** A custom field that the employer added; the board has no standard field for it. */
const fieldOf = ({ metadata }: Job, name: RegExp) => metadata.find((field) => name.test(field.name))?.value

/** Several ranges are zones of one job: uses the lowest to the highest of one currency. */
function payOf({ pay_input_ranges: ranges }: Job) {
  const currency = ranges[0]?.currency_type
  const zones = ranges.filter((range) => range.currency_type === currency)
  const mins = zones.flatMap(({ min_cents }) => min_cents ?? [])
  const maxes = zones.flatMap(({ max_cents }) => max_cents ?? [])
  if (mins.length + maxes.length === 0) return undefined
  return {
    min: mins.length === 0 ? null : Math.min(...mins) / 100,
    max: maxes.length === 0 ? null : Math.max(...maxes) / 100,
    currency,
  }
}
