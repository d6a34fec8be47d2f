/** Rippling: a list with a row for each location of a posting, and a separate response for each posting. */
import { defineScraper } from 'sluice'
import { isWanted, mayBeWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  jobTargets,
  listOf,
  nameOfToken,
  part,
  readAs,
  restSchema,
  text,
  under,
  walkOn,
} from '../shared.ts'

const API = 'https://api.rippling.com/'

const label = part(z.object({ label: text, id: text, name: text }))
const Row = z.object({
  uuid: z.string().regex(/^[\w-]+$/),
  name: z.string().min(1),
  department: label,
  workLocation: label,
})
const amount = part(z.union([z.number(), z.string()]))
const Job = z.object({
  uuid: z.string(),
  name: z.string().min(1),
  department: label,
  companyName: text,
  description: z.union([z.string(), z.object({ role: text, company: text })]).nullish(),
  employmentType: label,
  createdOn: text,
  workLocations: listOf(z.string()),
  payRangeDetails: listOf(
    z.object({ rangeStart: amount, rangeEnd: amount, currency: text, frequency: text, location: z.unknown() }),
  ),
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'rippling',
  description: 'Postings of an employer’s Rippling board (ats.rippling.com/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in ats.rippling.com/BOARD'),
    site: z.url().optional().describe('in place of https://api.rippling.com/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: { match: '/*/board/:board/jobs', accept: GONE_STATUSES, priority: 1 },
    job: { match: '/*/board/:board/jobs/:uuid', accept: [404, 410], data: z.object({ rest: restSchema.optional() }) },
  },
  start: ({ args, enqueue }) => enqueue('list', boardUrl(args)),
  handlers: {
    async list({ args, status, url, fetchedAt, json, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const rows = await entriesOf(Row, readAs(z.array(z.unknown()), json(), url), emit)
      const wanted = byPosting(rows).filter((job) =>
        mayBeWanted(postingOf(job, args.board, fetchedAt), args, fetchedAt),
      )
      const urls = wanted.map(({ uuid }) => under(boardUrl(args).href, uuid).href)
      await enqueue('job', jobTargets(urls, args))
    },
    async job({ args, data, status, url, fetchedAt, json, emit, enqueue, log }) {
      let emitted = 0
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const posting = postingOf(readAs(Job, json(), url), args.board, fetchedAt)
        if (isWanted(posting, args, fetchedAt) && (await emit(posting)) === 'new') emitted = 1
      }
      await enqueue('job', walkOn(data.rest, emitted))
    },
  },
  limits: { concurrency: 4, perHost: { concurrency: 4, rps: 4 }, linksMax: 100_000 },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

interface BoardArgs {
  board: string
  site?: string | undefined
}

const boardUrl = ({ board, site }: BoardArgs) => under(site ?? API, `platform/api/ats/v1/board/${board}/jobs`)

/** One entry for all rows of a posting, with what the list says about it. */
function byPosting(rows: readonly z.output<typeof Row>[]): Listed[] {
  const jobs = new Map<string, Listed>()
  for (const { uuid, name, department, workLocation } of rows) {
    const job = jobs.get(uuid) ?? { uuid, name, department, workLocations: [] }
    const place = nameOf(workLocation)
    if (place && !job.workLocations.includes(place)) job.workLocations.push(place)
    jobs.set(uuid, job)
  }
  return [...jobs.values()]
}

type Listed = Pick<Job, 'uuid' | 'name' | 'department' | 'workLocations'>

const nameOf = (value: z.output<typeof label>) => value?.label ?? value?.name ?? value?.id

function postingOf(job: Listed & Partial<Job>, board: string, now: Date): Posting {
  const { description, payRangeDetails = [] } = job
  const sections = typeof description === 'string' ? [description] : [description?.role, description?.company]
  return toPosting(
    'rippling',
    {
      source_job_id: job.uuid,
      board_token: board,
      title: job.name,
      company: job.companyName ?? nameOfToken(board),
      locations: job.workLocations,
      employment_type: job.employmentType?.label ?? job.employmentType?.id,
      salary: payOf(payRangeDetails),
      date_posted: job.createdOn,
      description_html: sections.filter(Boolean).join('\n'),
      job_url: `https://ats.rippling.com/${board}/jobs/${job.uuid}`,
      department: nameOf(job.department),
      raw: payRangeDetails.length > 1 ? { payRangeDetails } : {},
    },
    { now },
  )
}

/** Several ranges are locations or levels of one job: uses the lowest to the highest in the first one's currency and interval. */
function payOf(ranges: Job['payRangeDetails']) {
  const first = ranges[0]
  if (first === undefined) return undefined
  const alike = ranges.filter(({ currency, frequency }) => currency === first.currency && frequency === first.frequency)
  const numbers = (values: unknown[]) => values.map(Number).filter((value) => value > 0)
  const mins = numbers(alike.map(({ rangeStart }) => rangeStart))
  const maxes = numbers(alike.map(({ rangeEnd }) => rangeEnd))
  if (mins.length + maxes.length === 0) return undefined
  return {
    min: mins.length === 0 ? null : Math.min(...mins),
    max: maxes.length === 0 ? null : Math.max(...maxes),
    currency: first.currency,
    interval: first.frequency,
  }
}
