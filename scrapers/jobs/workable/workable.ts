/**
 * Workable, which throttles hard. By default the widget's response: the whole board with all texts in one request. With
 * `api=pages` the paged API, which separates requirements, benefits and hybrid work, at the cost of a request for each posting.
 */
import { defineScraper } from 'sluice'
import { isWanted, mayBeWanted, postingKey, postingSchema, searchArgs } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertFilled,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  isChoosy,
  nextOf,
  type Rest,
  readAs,
  restSchema,
  text,
  under,
  walkOn,
} from '../shared.ts'
import { PagedJob, pagedPosting, WidgetJob, widgetPosting } from './posting.ts'

const HOST = 'https://apply.workable.com/'
/** A list may grow a little while it is read; beyond that it is a loop. */
const GROWTH_MAX = 100

const Widget = z.object({ name: z.string(), jobs: z.array(z.unknown()) })
const List = z.object({ total: z.number(), results: z.array(z.unknown()), nextPage: text })
const filters = { query: z.string(), location: z.array(z.string()), department: z.array(z.string()) }
const bodySchema = z.object({
  ...filters,
  worktype: z.array(z.string()),
  remote: z.array(z.string()),
  token: z.string().optional(),
})

const listRef = z.object({ token: z.string().optional(), listed: z.number() })

export default defineScraper({
  name: 'workable',
  description: 'Postings of an employer on Workable (apply.workable.com/BOARD)',
  args: z.object({
    board: boardToken.describe('the employer, as in apply.workable.com/BOARD'),
    site: z.url().optional().describe('in place of apply.workable.com'),
    api: z
      .enum(['widget', 'pages'])
      .default('widget')
      .describe('widget: all in one request; pages: a request for each posting'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    widget: { match: '/*/widget/accounts/:board', accept: GONE_STATUSES },
    list: {
      match: '/*/accounts/:board/jobs',
      post: 'body',
      accept: GONE_STATUSES,
      priority: 1,
      /** `listed`: number of postings on the previous pages. */
      data: z.object({ body: bodySchema, listed: z.number(), rest: restSchema }),
    },
    job: { match: '/*/jobs/:shortcode', accept: [404, 410], data: z.object({ rest: restSchema.optional() }) },
  },
  start: ({ args, enqueue }) =>
    args.api === 'widget'
      ? enqueue('widget', under(args.site ?? HOST, `api/v1/widget/accounts/${args.board}?details=true`))
      : enqueue('list', listTarget(args, restSchema.parse({ left: args.results }), { listed: 0 })),
  handlers: {
    async widget({ args, status, url, fetchedAt, json, emit }) {
      assertBoard(status, { board: args.board, url })
      const { name, jobs } = readAs(Widget, json(), url)
      const postings = (await entriesOf(WidgetJob, jobs, emit))
        .map((job) => widgetPosting(job, args.board, name, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
        .slice(0, args.results)
      for (const posting of postings) await emit(posting)
    },
    async list({ args, data, status, url, fetchedAt, json, emit, enqueue }) {
      assertBoard(status, { board: args.board, url })
      const { total, results, nextPage } = readAs(List, json(), url)
      const { rest } = data
      if (nextPage || data.listed === 0) assertFilled(results, { offset: 0, total, url })
      const listed = data.listed + results.length
      if (listed > total + GROWTH_MAX) throw new Error(`the list goes on after all ${total} postings`)
      const jobs = (await entriesOf(PagedJob, results, emit))
        .filter((job) => mayBeWanted(pagedPosting(job, args.board, fetchedAt), args, fetchedAt))
        .map(({ shortcode }) => jobUrl(args, shortcode))
      const lists = nextPage && results.length > 0 ? [{ token: nextPage, listed }] : []
      const isOneByOne = isChoosy(args) && total > args.results
      const now = isOneByOne ? [] : jobs.slice(0, rest.left)
      await enqueue('job', now)
      const next = nextTask({ ...rest, left: rest.left - now.length, jobs: isOneByOne ? jobs : [], lists }, args)
      if (next !== undefined) await enqueue(next.route, next.target)
    },
    async job({ args, data, status, url, fetchedAt, json, log, emit, enqueue }) {
      let emitted = 0
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const posting = pagedPosting(readAs(PagedJob, json(), url), args.board, fetchedAt)
        if (isWanted(posting, args, fetchedAt) && (await emit(posting)) === 'new') emitted = 1
      }
      if (data.rest === undefined) return
      const next = nextTask({ ...data.rest, left: data.rest.left - emitted }, args)
      if (next !== undefined) await enqueue(next.route, next.target)
    },
  },
  // Two at a time, 600 ms apart, and long waits after errors: more causes 429s, and these last.
  limits: {
    concurrency: 2,
    perHost: { concurrency: 2, delay: '600ms' },
    retries: 5,
    backoff: '5s',
    backoffMax: '60s',
    bodyMax: '64MiB',
    // A list page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

type Where = { board: string; site?: string | undefined }

const jobUrl = ({ board, site = HOST }: Where, shortcode: string | number) =>
  under(site, `api/v2/accounts/${board}/jobs/${shortcode}`).href

/** A list has one URL; its token says which page. Its key does not contain the token, so that a repeated token is noticed. */
function listTarget({ board, site = HOST }: Where, rest: Rest, { token, listed }: z.output<typeof listRef>) {
  const all = { query: '', location: [], department: [], worktype: [], remote: [] }
  const body = token === undefined ? all : { ...all, token }
  const url = under(site, `api/v3/accounts/${board}/jobs`)
  return { url, key: `${url.href} ${token ?? ''} ${listed}`, data: { body, listed, rest } }
}

function nextTask(rest: Rest, where: Where) {
  const [job] = walkOn(rest, 0)
  if (job !== undefined) return { route: 'job', target: job } as const
  const next = nextOf(rest)
  return next && ({ route: 'list', target: listTarget(where, next.rest, listRef.parse(next.list)) } as const)
}
