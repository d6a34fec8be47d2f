/** Ashby: a whole board in one response, with pay by tier. */
import { defineScraper } from 'sluice'
import {
  isWanted,
  type Posting,
  postingKey,
  postingSchema,
  type RawPlace,
  type RawSalary,
  searchArgs,
  toPosting,
} from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  boardToken,
  companyArg,
  entriesOf,
  flag,
  GONE_STATUSES,
  httpUrl,
  listOf,
  nameOfToken,
  number,
  part,
  readAs,
  text,
  under,
  warnIfEmpty,
} from '../shared.ts'

const API = 'https://api.ashbyhq.com/'

const PostalAddress = z.object({ addressLocality: text, addressRegion: text, addressCountry: text })
const Address = part(PostalAddress.extend({ postalAddress: part(PostalAddress) }))
const Component = z.object({
  compensationType: z.string(),
  interval: text,
  currencyCode: text,
  minValue: number,
  maxValue: number,
})
const Tier = z.object({ title: text, tierSummary: text, components: listOf(Component) })

const Job = z.object({
  id: z.string().min(1),
  title: z.string().min(1),
  jobUrl: httpUrl,
  applyUrl: text,
  isListed: flag,
  isRemote: flag,
  workplaceType: text,
  employmentType: text,
  publishedAt: text,
  department: text,
  team: text,
  location: text,
  address: Address,
  secondaryLocations: listOf(z.object({ location: text, address: Address })),
  descriptionHtml: text,
  descriptionPlain: text,
  compensation: part(
    z.object({
      compensationTierSummary: text,
      scrapeableCompensationSalarySummary: text,
      compensationTiers: listOf(Tier),
    }),
  ),
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'ashby',
  description: 'Postings of an employer’s Ashby board (jobs.ashbyhq.com/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in jobs.ashbyhq.com/BOARD'),
    site: z.url().optional().describe('in place of api.ashbyhq.com'),
    company: companyArg,
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { list: { match: '/*/job-board/:board', accept: GONE_STATUSES } },
  start: ({ args, enqueue }) =>
    enqueue('list', under(args.site ?? API, `posting-api/job-board/${args.board}?includeCompensation=true`)),
  handlers: {
    async list({ args, status, url, fetchedAt, json, log, emit }) {
      assertBoard(status, { board: args.board, url })
      const { jobs } = readAs(z.object({ jobs: z.array(z.unknown()) }), json(), url)
      warnIfEmpty(jobs.length, args.board, log)
      const postings = (await entriesOf(Job, jobs, emit))
        .filter(({ isListed }) => isListed !== false)
        .map((job) => postingOf(job, args, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
        .slice(0, args.results)
      for (const posting of postings) await emit(posting)
    },
  },
  limits: { concurrency: 8, perHost: { concurrency: 8, rps: 8 }, bodyMax: '128MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function postingOf(job: Job, { board, company }: { board: string; company?: string | undefined }, now: Date): Posting {
  const tiers = job.compensation?.compensationTiers ?? []
  return toPosting(
    'ashby',
    {
      source_job_id: job.id,
      board_token: board,
      title: job.title,
      company: company ?? nameOfToken(board),
      locations: [job, ...job.secondaryLocations].map(placeOf),
      workplace: job.workplaceType,
      is_remote: job.isRemote,
      employment_type: job.employmentType,
      salary: payOf(job),
      date_posted: job.publishedAt,
      description_html: job.descriptionHtml,
      description_text: job.descriptionHtml ? undefined : job.descriptionPlain,
      job_url: job.jobUrl,
      apply_url: job.applyUrl,
      department: job.department,
      team: job.team,
      raw: {
        ...(company === undefined ? { company_from: 'board' } : {}),
        ...(tiers.length > 1 ? { compensation_tiers: tiers } : {}),
      },
    },
    { now },
  )
}

function placeOf({ location, address }: Pick<Job, 'location' | 'address'>): RawPlace {
  const postal = address?.postalAddress ?? address
  return {
    raw: location,
    city: postal?.addressLocality,
    region: postal?.addressRegion,
    country: postal?.addressCountry,
  }
}

/** Tiers are zones or levels of one job: uses the lowest to the highest salary of one currency and interval. */
function payOf({ compensation }: Job): RawSalary | string | undefined {
  const salaries = (compensation?.compensationTiers ?? [])
    .flatMap(({ components }) => components)
    .filter(({ compensationType }) => compensationType === 'Salary')
  const first = salaries[0]
  const zones = salaries.filter((pay) => pay.currencyCode === first?.currencyCode && pay.interval === first?.interval)
  const mins = zones.flatMap(({ minValue }) => minValue ?? [])
  const maxes = zones.flatMap(({ maxValue }) => maxValue ?? [])
  if (mins.length + maxes.length === 0) return compensation?.scrapeableCompensationSalarySummary ?? undefined
  return {
    min: mins.length === 0 ? null : Math.min(...mins),
    max: maxes.length === 0 ? null : Math.max(...maxes),
    currency: first?.currencyCode,
    interval: first?.interval === 'NONE' ? undefined : first?.interval,
    raw: compensation?.compensationTierSummary,
  }
}
