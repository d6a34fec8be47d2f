/** Pinpoint: a whole board in one response. It also contains pay that the employer does not show, which is omitted. */
import { defineScraper } from 'sluice'
import { isWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  boardToken,
  entriesOf,
  flag,
  GONE_STATUSES,
  httpUrl,
  id,
  nameOfToken,
  part,
  readAs,
  tenantBase,
  text,
  under,
} from '../shared.ts'

const Board = z.object({ data: z.array(z.unknown()) })

const amount = part(z.union([z.number(), z.string()]))
const Job = z.object({
  id,
  title: z.string().min(1),
  url: httpUrl,
  description: text,
  key_responsibilities: text,
  skills_knowledge_expertise: text,
  benefits: text,
  location: part(z.object({ city: text, name: text, province: text })),
  employment_type: text,
  employment_type_text: text,
  workplace_type: text,
  compensation_minimum: amount,
  compensation_maximum: amount,
  compensation_currency: text,
  compensation_frequency: text,
  compensation_visible: flag,
  first_published_at: text,
  deadline_at: text,
  reference: text,
  job: part(z.object({ department: part(z.object({ name: text })), division: part(z.object({ name: text })) })),
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'pinpoint',
  description: 'Postings of an employer’s Pinpoint board (BOARD.pinpointhq.com)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.pinpointhq.com'),
    site: z.url().optional().describe('in place of https://BOARD.pinpointhq.com/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { list: { match: '/*postings.json', accept: GONE_STATUSES } },
  start: ({ args, enqueue }) => enqueue('list', under(tenantBase(args, 'pinpointhq.com'), 'postings.json')),
  handlers: {
    async list({ args, status, url, fetchedAt, json, emit }) {
      assertBoard(status, { board: args.board, url })
      const { data } = readAs(Board, json(), url)
      const postings = (await entriesOf(Job, data, emit))
        .map((job) => postingOf(job, args.board, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
      for (const posting of postings.slice(0, args.results)) await emit(posting)
    },
  },
  limits: { concurrency: 6, perHost: { concurrency: 6, rps: 6 }, bodyMax: '64MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function postingOf(job: Job, board: string, now: Date): Posting {
  const { city, name, province } = job.location ?? {}
  return toPosting(
    'pinpoint',
    {
      source_job_id: job.id,
      board_token: board,
      requisition_id: job.reference,
      title: job.title,
      company: nameOfToken(board),
      locations: [city === null || city === undefined ? name : { raw: name, city, region: province }],
      workplace: job.workplace_type,
      employment_type: job.employment_type ?? job.employment_type_text,
      salary: payOf(job),
      date_posted: job.first_published_at,
      valid_through: job.deadline_at,
      description_html: [job.description, job.key_responsibilities, job.skills_knowledge_expertise, job.benefits]
        .filter(Boolean)
        .join('\n'),
      job_url: job.url,
      department: job.job?.department?.name,
      team: job.job?.division?.name,
    },
    { now },
  )
}

function payOf(job: Job) {
  if (job.compensation_visible !== true) return undefined
  return {
    min: job.compensation_minimum,
    max: job.compensation_maximum,
    currency: job.compensation_currency,
    interval: job.compensation_frequency,
  }
}
