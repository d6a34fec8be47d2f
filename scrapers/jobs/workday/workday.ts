/**
 * Workday: list pages of 20 by POST, a response for each posting, and lists of 2000 and more in parts (`list.ts`).
 *
 * The first page of a list states its total, so the others are fetched concurrently. Only a search for fewer postings than there
 * are, which the list cannot filter, goes one by one.
 */
import { defineScraper, ScrapeError } from 'sluice'
import { isWanted, mayBeWanted, postingKey, postingSchema, searchArgs } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertFilled,
  assertMoved,
  boardToken,
  companyArg,
  entriesOf,
  GONE_STATUSES,
  isChoosy,
  nextOf,
  type Rest,
  readAs,
  restSchema,
  under,
} from '../shared.ts'
import { afterPage, bodyOf, bodySchema, List, listRef, PAGE_SIZE, PARTS_MAX, planOf } from './list.ts'
import { JobAnswer, ListedJob, listedPosting, type Tenant, wholePosting } from './posting.ts'

/** Responses of a tenant with problems, or of one that moved: HTML with status 200. */
const WHY_HTML = 'HTML in place of JSON'
const INSTANCE_NEEDED = 'wd and a number, as in the address: --arg instance=wd5'
const JSON_PLEASE = { accept: 'application/json' }

export default defineScraper({
  name: 'workday',
  description: 'Postings of an employer on Workday (BOARD.INSTANCE.myworkdayjobs.com/CAREERS)',
  args: z.object({
    board: boardToken.describe('the tenant: BOARD of BOARD.wd5.myworkdayjobs.com/CAREERS'),
    instance: z
      .string({ error: INSTANCE_NEEDED })
      .regex(/^wd\d{1,4}$/, { error: INSTANCE_NEEDED })
      .describe('wd5 of BOARD.wd5.myworkdayjobs.com/CAREERS'),
    careers: z
      .string({ error: 'the careers site is needed, as the address has it: --arg careers=NAME' })
      .pipe(boardToken)
      .describe('CAREERS of BOARD.wd5.myworkdayjobs.com/CAREERS, without the language before it'),
    site: z.url().optional().describe('in place of BOARD.INSTANCE.myworkdayjobs.com'),
    company: companyArg,
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: {
      post: 'body',
      headers: JSON_PLEASE,
      accept: GONE_STATUSES,
      priority: 1,
      data: z.object({
        body: bodySchema,
        /** Maximum number of postings from this page. */
        take: z.number().optional(),
        end: z.number().default(0),
        partsMax: z.number().default(PARTS_MAX),
        /** Path that the previous page, or the first one, starts with. */
        first: z.string().default(''),
        rest: restSchema.optional(),
      }),
    },
    job: {
      headers: JSON_PLEASE,
      accept: [403, 404, 410],
      data: z.object({ path: z.string(), rest: restSchema.optional() }),
    },
  },
  start: ({ args, enqueue }) => enqueue('list', { url: apiUrl(args, '/jobs'), data: { body: bodyOf(args.search) } }),
  handlers: {
    async list({ args, data, status, url, fetchedAt, html, json, log, emit, enqueue, retry }) {
      assertBoard(status, { board: `${args.board}/${args.careers}`, url })
      if (isHtml(html)) retry(undefined, WHY_HTML)
      const list = readAs(List, json(), url)
      const { appliedFacets: facets, offset } = data.body
      const plan = offset === 0 ? planOf(list, facets, data.partsMax) : undefined
      assertFilled(list.jobPostings, { offset, total: plan === undefined ? data.end : list.total, url })
      if (plan?.isCut) log.warn(`a list of more than ${list.total} postings cannot be read to its end`, { facets })
      const listed = await entriesOf(ListedJob, list.jobPostings, emit)
      const first = listed[0]?.externalPath ?? ''
      assertMoved(first, data.first, url)
      const jobs = listed
        .filter((job) => mayBeWanted(listedPosting(job, args, fetchedAt), args, fetchedAt))
        .map(({ externalPath }) => externalPath)

      const isTooMuch = plan !== undefined && Object.keys(facets).length === 0 && plan.countMax > args.results
      if (data.rest !== undefined || (isTooMuch && (isChoosy(args) || plan.splits.length > 0))) {
        const walk = { left: args.results, step: 0, jobs: [], lists: [], ...data.rest }
        const { now, rest, dropped } = afterPage(walk, { ...data, jobs, first, plan, isChoosy: isChoosy(args) })
        if (dropped > 0) log.warn(`${dropped} parts of the list are left out: too many to carry along`)
        await enqueue(
          'job',
          now.map((path) => jobTarget(args, path)),
        )
        const next = nextTask(rest, args)
        if (next !== undefined) await enqueue(next.route, next.target)
        return
      }
      await enqueue(
        'job',
        jobs.slice(0, data.take ?? args.results).map((path) => jobTarget(args, path)),
      )
      for (const { facets: part, partsMax } of plan?.splits ?? [])
        await enqueue('list', { url, data: { body: bodyOf(args.search, part), partsMax } })
      const end = Math.min(plan?.end ?? 0, args.results)
      for (let next = PAGE_SIZE; next < end; next += PAGE_SIZE) {
        const body = bodyOf(args.search, facets, next)
        await enqueue('list', { url, data: { body, end: plan?.end, first, take: args.results - next } })
      }
    },
    async job({ args, data, status, url, fetchedAt, html, json, log, emit, enqueue, retry }) {
      let emitted = 0
      if (status === 200 && isHtml(html)) retry(undefined, WHY_HTML)
      if (status === 403) assertClosed(html, url)
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const posting = wholePosting(readAs(JobAnswer, json(), url), data.path, args, fetchedAt)
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

type Where = Tenant & { site?: string | undefined; search: string }

function apiUrl({ board, instance, careers, site }: Where, path: string): URL {
  return under(site ?? `https://${board}.${instance}.myworkdayjobs.com/`, `wday/cxs/${board}/${careers}${path}`)
}

const isHtml = (body: string) => body.trimStart().startsWith('<')

/** A closed requisition is refused as S22. Any other refusal is not about the posting, which is retried later. */
function assertClosed(body: string, url: URL): void {
  if (isHtml(body)) throw new ScrapeError('E_FORBIDDEN', `status 403 from ${url.href}`, { url: url.href, status: 403 })
  if (/"errorCode"\s*:\s*"S22"/.test(body)) return
  throw new ScrapeError('E_RATE_LIMITED', `throttled: status 403 from ${url.href}`, { url: url.href, status: 403 })
}

function jobTarget(where: Where, path: string) {
  return { url: apiUrl(where, path), data: { path } }
}

function nextTask(rest: Rest, where: Where) {
  const next = nextOf(rest)
  if (next === undefined) return undefined
  if (next.job === undefined) {
    const { facets, offset, ...page } = listRef.parse(next.list)
    const data = { ...page, body: bodyOf(where.search, facets, offset), rest: next.rest }
    return { route: 'list', target: { url: apiUrl(where, '/jobs'), data } } as const
  }
  const url = apiUrl(where, next.job)
  const data = { path: next.job, rest: next.rest }
  return { route: 'job', target: { url, key: `${url.href} ${next.rest.step}`, data } } as const
}
