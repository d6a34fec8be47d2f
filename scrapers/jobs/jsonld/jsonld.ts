/**
 * Any careers page whose jobs are described in JobPosting markup (JSON-LD or microdata): the jobs on the page itself and on the
 * pages it lists or links; or, on request, those in the site's sitemaps.
 */
import { defineScraper, ScrapeError } from 'sluice'
import {
  isWanted,
  mentionsJobPosting,
  postingKey,
  postingSchema,
  readJobPostings,
  readListedUrls,
  searchArgs,
  toPosting,
} from 'sluice/jobs'
import * as z from 'zod'
import { jobTargets, restSchema, walkOn } from '../shared.ts'
import { isJobPage, jobLinks, nextPage } from './links.ts'
import { sitemapEntries, sitemapsOfRobots, sitemapText } from './sitemaps.ts'

const PAGES_MAX = 1000
/** Limited, because they travel from task to task. */
const SITEMAPS_MAX = 200

export default defineScraper({
  name: 'jsonld',
  description: 'Postings of any careers page with JobPosting markup (JSON-LD or microdata)',
  args: z.object({
    site: z
      .url({ protocol: /^https?$/, error: 'the address of the careers page is needed: --site URL' })
      .describe('the careers page'),
    links: z.string().min(1).optional().describe('part of the address of every job page; left out: the usual words'),
    sitemap: z.stringbool().or(z.boolean()).default(false).describe('find the job pages in the sitemaps of the site'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    /** `left`: number of postings still wanted after the previous pages. */
    list: { priority: 1, data: z.object({ left: z.number().optional(), page: z.number().default(1) }) },
    robots: { priority: 2, accept: { status: [401, 403, 404, 410], types: ['*/*'], empty: true } },
    /** Read one after the other: `queue` has the remaining ones. */
    sitemap: {
      priority: 1,
      accept: { status: [404, 410], types: ['*/*'], empty: true }, // some are compressed, some have arbitrary content types
      data: z.object({ left: z.number().optional(), queue: z.array(z.string()) }),
    },
    /** `isNamed`: listed explicitly as a job page, so it must be one. */
    job: { accept: [404, 410], data: z.object({ isNamed: z.boolean().default(false), rest: restSchema.optional() }) },
  },
  start: ({ args, enqueue }) =>
    args.sitemap ? enqueue('robots', new URL('/robots.txt', args.site)) : enqueue('list', args.site),
  handlers: {
    async list({ $, args, data, html, url, fetchedAt, emit, enqueue, log }) {
      const left = data.left ?? args.results
      const found = readJobPostings($, url.href)
      if (found.length === 0 && mentionsJobPosting(html)) throw unreadable(url)
      const postings = found.map((raw) => toPosting('jsonld', raw, { now: fetchedAt }))
      const wanted = postings.filter((posting) => isWanted(posting, args, fetchedAt)).slice(0, left)
      for (const posting of wanted) await emit(posting)

      const known = new Set([url.href, ...postings.map(({ job_url }) => job_url)])
      const listed = readListedUrls($, url.href)
      const isNamed = listed.length > 0 || args.links !== undefined
      const candidates = (listed.length > 0 ? listed : jobLinks($, url, args.links)).filter((link) => !known.has(link))
      const next = nextPage($, url)
      if (found.length + candidates.length === 0 && next === undefined && data.page === 1) throw nothing(url)
      const room = { ...args, results: left - wanted.length }
      const jobs = room.results > 0 ? jobTargets(candidates, room) : []
      await enqueue(
        'job',
        jobs.map((job) => ({ ...job, data: { ...job.data, isNamed } })),
      )
      const used = wanted.length + Math.min(candidates.length, room.results)
      if (next === undefined || used >= left) return
      if (data.page >= PAGES_MAX) log.warn(`more than ${PAGES_MAX} pages; the rest is skipped`)
      else await enqueue('list', { url: next, data: { left: left - used, page: data.page + 1 } })
    },
    async robots({ url, status, html, enqueue }) {
      const [first, ...queue] = sitemapsOfRobots(status === 200 ? html : '', url)
      if (first !== undefined) await enqueue('sitemap', { url: first, data: { queue } })
    },
    async sitemap({ args, data, status, url, body, enqueue, log }) {
      const { pages, sitemaps } = status === 200 ? sitemapEntries(sitemapText(body), url) : { pages: [], sitemaps: [] }
      if (status !== 200) log.warn(`no sitemap at ${url.href}`)
      const left = data.left ?? args.results
      const jobs = pages.filter((page) => isJobPage(new URL(page), url, args.links))
      if (pages.length > 0) log.info(`${jobs.length} job pages among ${pages.length} addresses of ${url.href}`)
      await enqueue('job', jobTargets(jobs, { ...args, results: left }))
      const [next, ...queue] = [...sitemaps, ...data.queue]
      if (queue.length > SITEMAPS_MAX) log.warn(`more than ${SITEMAPS_MAX} sitemaps; the rest is skipped`)
      if (next === undefined || jobs.length >= left) return
      await enqueue('sitemap', { url: next, data: { left: left - jobs.length, queue: queue.slice(0, SITEMAPS_MAX) } })
    },
    async job({ $, args, data, status, html, url, fetchedAt, emit, enqueue, log }) {
      let emitted = 0
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const found = readJobPostings($, url.href)
        if (found.length === 0 && (data.isNamed || mentionsJobPosting(html))) throw unreadable(url)
        if (found.length === 0) log.info(`no JobPosting markup on ${url.href}: no job page, it seems`)
        for (const raw of found) {
          const posting = toPosting('jsonld', raw, { now: fetchedAt })
          if (isWanted(posting, args, fetchedAt) && (await emit(posting)) === 'new') emitted++
        }
      }
      const next = walkOn(data.rest, emitted)
      await enqueue(
        'job',
        next.map((job) => ({ ...job, data: { ...job.data, isNamed: data.isNamed } })),
      )
    },
  },
  limits: { concurrency: 4, perHost: { concurrency: 2, rps: 2 }, linksMax: 100_000 },
  // An empty careers page and one that lost its markup look the same from here.
  expect: { items: { min: 1 }, filled: { title: 0.99, job_url: 0.99 } },
})

function unreadable(url: URL): ScrapeError {
  return new ScrapeError(
    'E_SELECTOR_EMPTY',
    `no readable JobPosting markup in a page that should have it (${url.href})`,
    {
      url: url.href,
    },
  )
}

function nothing(url: URL): ScrapeError {
  return new ScrapeError('E_SELECTOR_EMPTY', `no job postings, and no links to any, on ${url.href}`, {
    url: url.href,
    fix: 'Is it the careers page? Say what job pages are called (--arg links=/stellen/), or try --arg sitemap=true.',
  })
}
