/**
 * SmartRecruiters: list pages of 100 without text, and a page for each posting.
 *
 * The first list page names the total, so all others are fetched side by side. Only a search for fewer postings than there are
 * goes one by one: whether a posting is wanted is known when it has been read.
 */
import { defineScraper } from 'sluice'
import { isWanted, postingKey, postingSchema, searchArgs } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  isChoosy,
  nextOf,
  number,
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

const List = z.object({ totalFound: z.number(), limit: number, content: z.array(z.unknown()) })

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
      match: '/*/postings',
      accept: GONE_STATUSES,
      priority: 1,
      data: z.object({ offset: z.number(), take: z.number().optional(), rest: restSchema.optional() }),
    },
    job: { match: '/*/postings/:id', accept: [404, 410], data: z.object({ rest: restSchema.optional() }) },
  },
  start: ({ args, enqueue }) => enqueue('list', { url: pageUrl(args, 0), data: { offset: 0 } }),
  handlers: {
    async list({ args, data, status, url, fetchedAt, json, log, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const { totalFound: total, limit, content } = readAs(List, json(), url)
      const size = Math.min(PAGE_SIZE, limit || PAGE_SIZE)
      if (data.offset === 0) warnIfEmpty(total, args.board, log)
      if (content.length === 0 && data.offset < total) log.warn(`an empty page at ${data.offset} of ${total} postings`)
      const jobs = (await entriesOf(Job, content, emit))
        .filter(
          (job) => job.visibility !== 'PRIVATE' && isWanted(postingOf(job, args.board, fetchedAt), args, fetchedAt),
        )
        .map((job) => under(url.origin + url.pathname, String(job.id)).href)

      if (data.rest !== undefined || (data.offset === 0 && isChoosy(args) && total > args.results)) {
        const lists = data.offset + size < total ? [data.offset + size] : []
        const next = nextTask({ ...(data.rest ?? { left: args.results, step: 0 }), jobs, lists }, args)
        if (next !== undefined) await enqueue(next.route, next.target)
        return
      }
      await enqueue('job', jobs.slice(0, data.take ?? args.results))
      if (data.offset > 0) return
      for (let offset = size; offset < Math.min(total, args.results); offset += size)
        await enqueue('list', { url: pageUrl(args, offset), data: { offset, take: args.results - offset } })
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
  const offset = Number(next.list)
  return { route: 'list', target: { url: pageUrl(where, offset), data: { offset, rest: next.rest } } } as const
}
