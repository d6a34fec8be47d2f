/**
 * SmartRecruiters: list pages of 100 without text, and a page for each posting.
 *
 * The first list page states the total, so all others are fetched concurrently. Only a search for fewer postings than there are
 * goes one by one: whether a posting matches is known only after it has been read.
 */
import { defineScraper } from 'sluice'
import { isWanted, mayBeWanted, postingKey, postingSchema, searchArgs } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertFilled,
  assertMoved,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  isChoosy,
  nextOf,
  type Rest,
  readAs,
  restSchema,
  under,
  walkOn,
  warnIfEmpty,
} from '../shared.ts'
import { Job, postingOf } from './posting.ts'

const API = 'https://api.smartrecruiters.com/'
const PAGE_SIZE = 100

const size = z.number().int().min(1).max(PAGE_SIZE).catch(PAGE_SIZE)
const List = z.object({ totalFound: z.number(), limit: size, content: z.array(z.unknown()) })
/** `first`: id that another page of the list starts with. */
const pageRef = z.object({ offset: z.number(), first: z.string().default('') })

export default defineScraper({
  name: 'smartrecruiters',
  description: 'Postings of an employer on SmartRecruiters (jobs.smartrecruiters.com/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in jobs.smartrecruiters.com/BOARD'),
    site: z.url().optional().describe('in place of api.smartrecruiters.com'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: {
      match: '/*/companies/:company/postings',
      accept: GONE_STATUSES,
      priority: 1,
      data: pageRef.extend({ take: z.number().optional(), rest: restSchema.optional() }),
    },
    job: {
      match: '/*/companies/:company/postings/:id',
      accept: [404, 410],
      data: z.object({ rest: restSchema.optional() }),
    },
  },
  start: ({ args, enqueue }) => enqueue('list', { url: pageUrl(args, 0), data: { offset: 0 } }),
  handlers: {
    async list({ args, data, status, url, fetchedAt, json, log, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const { totalFound: total, limit: size, content } = readAs(List, json(), url)
      assertFilled(content, { offset: data.offset, total, url })
      if (data.offset === 0) warnIfEmpty(total, args.board, log)
      const listed = await entriesOf(Job, content, emit)
      const first = String(listed[0]?.id ?? '')
      assertMoved(first, data.first, url)
      const jobs = listed
        .filter(
          (job) => job.visibility !== 'PRIVATE' && mayBeWanted(postingOf(job, args.board, fetchedAt), args, fetchedAt),
        )
        .map((job) => under(url.origin + url.pathname, String(job.id)).href)

      if (data.rest !== undefined || (data.offset === 0 && isChoosy(args) && total > args.results)) {
        const lists = data.offset + size < total ? [{ offset: data.offset + size, first }] : []
        const next = nextTask({ ...(data.rest ?? { left: args.results, step: 0 }), jobs, lists }, args)
        if (next !== undefined) await enqueue(next.route, next.target)
        return
      }
      await enqueue('job', jobs.slice(0, data.take ?? args.results))
      if (data.offset > 0) return
      for (let offset = size; offset < Math.min(total, args.results); offset += size)
        await enqueue('list', { url: pageUrl(args, offset), data: { offset, first, take: args.results - offset } })
    },
    async job({ args, data, status, url, fetchedAt, json, log, emit, enqueue }) {
      let emitted = 0
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const posting = postingOf(readAs(Job, json(), url), args.board, fetchedAt)
        if (isWanted(posting, args, fetchedAt) && (await emit(posting)) === 'new') emitted = 1
      }
      if (data.rest === undefined) return
      const next = nextTask({ ...data.rest, left: data.rest.left - emitted }, args)
      if (next !== undefined) await enqueue(next.route, next.target)
    },
  },
  limits: { concurrency: 4, perHost: { concurrency: 4, rps: 4 }, linksMax: 100_000 },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

type Where = { board: string; site?: string | undefined }

function pageUrl({ board, site = API }: Where, offset: number): URL {
  return under(site, `v1/companies/${board}/postings?limit=${PAGE_SIZE}&offset=${offset}`)
}

function nextTask(rest: Rest, where: Where) {
  const [job] = walkOn(rest, 0)
  if (job !== undefined) return { route: 'job', target: job } as const
  const next = nextOf(rest)
  if (next === undefined) return undefined
  const page = pageRef.parse(next.list)
  return { route: 'list', target: { url: pageUrl(where, page.offset), data: { ...page, rest: next.rest } } } as const
}
