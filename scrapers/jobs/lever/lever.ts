/** Lever: pages of complete postings, one after the other, since the total is unknown. */
import { defineScraper } from 'sluice'
import { isWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertMoved,
  boardToken,
  companyArg,
  entriesOf,
  GONE_STATUSES,
  httpUrl,
  listOf,
  nameOfToken,
  number,
  part,
  readAs,
  text,
  under,
} from '../shared.ts'

const API = { global: 'https://api.lever.co/', eu: 'https://api.eu.lever.co/' }
const PAGE_SIZE = 100
/** No employer has more; a longer board is a loop. */
const POSTINGS_MAX = 200_000

const Job = z.object({
  id: z.string().min(1),
  text: z.string().min(1),
  hostedUrl: httpUrl,
  applyUrl: text,
  createdAt: number,
  country: text,
  workplaceType: text,
  categories: part(
    z.object({
      location: text,
      allLocations: listOf(z.string()),
      commitment: text,
      team: text,
      department: text,
      level: text,
    }),
  ),
  description: text,
  opening: text,
  descriptionBody: text,
  lists: listOf(z.object({ text, content: text })),
  additional: text,
  salaryRange: part(z.object({ currency: text, interval: text, min: number, max: number })),
  salaryDescription: text,
})
type Job = z.output<typeof Job>

export default defineScraper({
  name: 'lever',
  description: 'Postings of an employer’s Lever board (jobs.lever.co/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in jobs.lever.co/BOARD'),
    site: z.url().optional().describe('in place of api.lever.co'),
    region: z.enum(['global', 'eu']).default('global').describe('eu: the board is on jobs.eu.lever.co'),
    company: companyArg,
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: {
      match: '/*/postings/:board',
      // Other requests are answered with HTML.
      headers: { accept: 'application/json' },
      accept: GONE_STATUSES,
      data: z.object({ skip: z.number(), left: z.number(), firstId: z.string().default('') }),
    },
  },
  start: ({ args, enqueue }) =>
    enqueue('list', {
      url: pageUrl(under(args.site ?? API[args.region], `v0/postings/${args.board}`), 0),
      data: { skip: 0, left: args.results },
    }),
  handlers: {
    async list({ args, data, status, url, fetchedAt, json, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const page = readAs(z.array(z.unknown(), { error: 'a list of postings was expected' }), json(), url)
      const jobs = await entriesOf(Job, page, emit)
      const firstId = jobs[0]?.id ?? ''
      assertMoved(firstId, data.firstId, url)
      const postings = jobs
        .map((job) => postingOf(job, args, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
        .slice(0, data.left)
      for (const posting of postings) await emit(posting)
      const left = data.left - postings.length
      const skip = data.skip + PAGE_SIZE
      if (page.length < PAGE_SIZE || left === 0) return
      if (skip > POSTINGS_MAX) throw new Error(`the board does not end after ${POSTINGS_MAX} postings`)
      await enqueue('list', { url: pageUrl(url, skip), data: { skip, left, firstId } })
    },
  },
  // failAt: a page that fails ends the list, and would look like a short one.
  limits: { concurrency: 6, perHost: { concurrency: 2, rps: 2 }, bodyMax: '64MiB', failAt: 0 },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function pageUrl(list: URL, skip: number): URL {
  const url = new URL(list)
  url.search = `?limit=${PAGE_SIZE}&mode=json&skip=${skip}`
  return url
}

function postingOf(job: Job, { board, company }: { board: string; company?: string | undefined }, now: Date): Posting {
  const { categories } = job
  const places = categories?.allLocations.length ? categories.allLocations : [categories?.location]
  return toPosting(
    'lever',
    {
      source_job_id: job.id,
      board_token: board,
      title: job.text,
      company: company ?? nameOfToken(board),
      // The country belongs to the only location; with several it says nothing.
      locations: places.length === 1 ? places.map((raw) => ({ raw, country: job.country })) : places,
      workplace: job.workplaceType,
      employment_type: categories?.commitment,
      salary: job.salaryRange ?? undefined,
      date_posted: job.createdAt,
      description_html: fullText(job),
      job_url: job.hostedUrl,
      apply_url: job.applyUrl,
      department: categories?.department,
      team: categories?.team,
      seniority: categories?.level,
      raw: company === undefined ? { company_from: 'board' } : {},
    },
    { now },
  )
}

/** The description alone omits requirements and benefits: most of the text. */
function fullText(job: Job): string {
  const lists = job.lists.map(({ text, content }) => `<h3>${text ?? ''}</h3><ul>${content ?? ''}</ul>`)
  const start = job.description ?? [job.opening, job.descriptionBody].filter(Boolean).join('\n')
  return [start, ...lists, job.additional, job.salaryDescription].filter(Boolean).join('\n')
}
