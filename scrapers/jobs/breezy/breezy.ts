/** Breezy: a whole board in one response. A closed board redirects to Breezy's own pages. */
import { defineScraper } from 'sluice'
import { isWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertStayed,
  boardToken,
  entriesOf,
  flag,
  GONE_STATUSES,
  httpUrl,
  id,
  listOf,
  nameOfToken,
  part,
  readAs,
  tenantBase,
  text,
  under,
} from '../shared.ts'

const named = part(z.union([z.string(), z.object({ id: text, name: text })]))
const Place = z.object({ city: text, state: named, country: named, is_remote: flag, name: text })
const Job = z.object({
  id,
  name: z.string().min(1),
  url: httpUrl,
  published_date: text,
  type: named,
  location: part(Place),
  locations: listOf(Place),
  department: text,
  salary: text,
  description: text,
  company: part(z.object({ name: text, logo_url: text })),
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'breezy',
  description: 'Postings of an employer’s Breezy board (BOARD.breezy.hr)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.breezy.hr'),
    site: z.url().optional().describe('in place of https://BOARD.breezy.hr/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  // No `match`: the response may come from a page that the board was redirected to.
  routes: { list: { accept: GONE_STATUSES } },
  start: ({ args, enqueue }) => enqueue('list', under(tenantBase(args, 'breezy.hr'), 'json?verbose=true')),
  handlers: {
    async list({ args, status, url, fetchedAt, json, emit }) {
      assertBoard(status, { board: args.board, url })
      assertStayed(url, { board: args.board, base: tenantBase(args, 'breezy.hr') })
      const jobs = readAs(z.array(z.unknown()), json(), url)
      const postings = (await entriesOf(Job, jobs, emit))
        .map((job) => postingOf(job, args.board, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
      for (const posting of postings.slice(0, args.results)) await emit(posting)
    },
  },
  limits: { concurrency: 6, perHost: { concurrency: 6, rps: 6 }, bodyMax: '64MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function postingOf(job: Job, board: string, now: Date): Posting {
  const places =
    job.locations.length > 0 ? job.locations : job.location === null || job.location === undefined ? [] : [job.location]
  return toPosting(
    'breezy',
    {
      source_job_id: job.id,
      board_token: board,
      title: job.name,
      company: job.company?.name ?? nameOfToken(board),
      company_logo: job.company?.logo_url,
      locations: places.map(({ city, state, country, name }) => ({
        raw: name,
        city,
        region: nameOf(state),
        country: typeof country === 'string' ? country : (country?.id ?? country?.name),
      })),
      is_remote: places.some(({ is_remote }) => is_remote === true) ? true : undefined,
      employment_type: nameOf(job.type),
      salary: job.salary,
      date_posted: job.published_date,
      description_html: job.description,
      job_url: job.url,
      department: job.department,
    },
    { now },
  )
}

const nameOf = (value: z.output<typeof named>) => (typeof value === 'string' ? value : (value?.name ?? value?.id))
