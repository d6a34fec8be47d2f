/**
 * Glassdoor's search pages. The site redirects a search to its own address, `/Job/…SRCH_….htm`; page n of it is `…_IP{n}.htm`, at
 * most 30 of them. Class names are hashed and change, so everything is found by `data-test`.
 */

import type { Selection } from 'sluice'
import { defineScraper, ScrapeError } from 'sluice'
import { isWanted, postingKey, postingSchema, type RawPosting, type Search, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { afterSearch, under } from '../shared.ts'

const PAGES_MAX = 30
const TYPES: Partial<Record<NonNullable<Search['type']>, string>> = {
  full_time: 'fulltime',
  part_time: 'parttime',
  contract: 'contract',
  internship: 'internship',
  temporary: 'temporary',
}

export default defineScraper({
  name: 'glassdoor',
  description: 'Job search of Glassdoor, from its public pages',
  optIn:
    'Glassdoor’s terms are understood to prohibit automated access; read them before you turn it on. It answers robots with a challenge, which is reported and never solved.',
  args: z.object({
    /** The country's site: glassdoor.com, glassdoor.co.uk, glassdoor.de … */
    domain: z
      .string()
      .regex(/^glassdoor\.[a-z]{2,3}(?:\.[a-z]{2})?$/, {
        error: 'such as glassdoor.com, glassdoor.co.uk or glassdoor.de',
      })
      .default('glassdoor.com'),
    site: z.url().optional(),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { list: { data: z.object({ left: z.number().int(), page: z.number().int() }) } },
  start: ({ args, enqueue }) => enqueue('list', { url: searchUrl(args), data: { left: args.results, page: 1 } }),
  handlers: {
    async list({ $, html, url, data, args, fetchedAt, emit, enqueue, log }) {
      refuseWall(html, url)
      const cards = $.all('li[data-test="jobListing"][data-jobid]')
      // An empty search says so; without cards and without that, it is another page.
      if (cards.length === 0 && !/^\s*0\b/.test($.text('[data-test="search-title"]')))
        throw new ScrapeError('E_SELECTOR_EMPTY', `no cards, but the search found something (${url.href})`)
      const postings = cards.map((card) => toPosting('glassdoor', ofCard(card, args), { now: fetchedAt }))
      const wanted = postings.filter((posting) => isWanted(posting, afterSearch(args), fetchedAt)).slice(0, data.left)
      for (const posting of wanted) await emit(posting)
      const left = data.left - wanted.length
      if (left <= 0 || !$.exists('button[data-test="load-more"]')) return
      if (data.page === PAGES_MAX)
        return log.warn(`Glassdoor shows ${PAGES_MAX} pages of a search: narrow it to see more`)
      const page = data.page + 1
      await enqueue('list', { url: pageUrl(url, page), data: { left, page } })
    },
  },
  // Its limits are unknown, so it is as slow as the slowest board with known limits.
  limits: {
    concurrency: 1,
    perHost: { concurrency: 1, delay: '3s-7s' },
    retries: 2,
    backoff: '5s',
    // A page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 1, company: 0.9, job_url: 1 } },
})

interface Place {
  domain: string
  site?: string | undefined
}
const siteOf = ({ domain, site }: Place) => site ?? `https://www.${domain}/`

function searchUrl(args: Search & Place): URL {
  const url = under(siteOf(args), 'Job/jobs.htm')
  const { search, location, since, remote, type } = args
  const kind = type === undefined ? undefined : TYPES[type]
  url.searchParams.set('sc.keyword', search)
  url.searchParams.set('locKeyword', location)
  if (since !== undefined) url.searchParams.set('fromAge', String(Math.max(1, Math.ceil(since))))
  if (remote === true) url.searchParams.set('remoteWorkType', '1')
  if (kind !== undefined) url.searchParams.set('jobType', kind)
  return url
}

/** Page n of a search, from the URL of any of its pages. */
function pageUrl(url: URL, page: number): URL {
  const next = new URL(url)
  next.pathname = url.pathname.replace(/(?:_IP\d+)?\.htm$/, `_IP${page}.htm`)
  if (next.pathname === url.pathname)
    throw new ScrapeError('E_SELECTOR_EMPTY', `the site did not send the search to a page with a number (${url.href})`)
  return next
}

function ofCard(card: Selection, args: Search & Place): RawPosting {
  const id = card.ownAttr('data-jobid') ?? ''
  const optional = (name: string) => card.text(`[data-test="${name}"]`, { optional: true })
  const job = under(siteOf(args), 'job-listing/j')
  job.searchParams.set('jl', id)
  const pay = optional('detailSalary')
  return {
    source_job_id: id,
    board_token: new URL(siteOf(args)).host,
    title: card.text('[data-test="job-title"]'),
    company: optional('employer-short-name') ?? optional('employer-name') ?? null,
    locations: [optional('emp-location')],
    // The card has neither; the search was restricted to these.
    is_remote: args.remote === true ? true : null,
    employment_type: args.type !== undefined && args.type in TYPES ? args.type : null,
    ...(pay === undefined ? {} : { salary: { raw: pay, isEstimate: !/employer[- ]provided/i.test(pay) } }),
    date_posted: ageWords(optional('job-age')),
    description_text: optional('descSnippet'),
    job_url: job.href,
    raw: { is_snippet: true },
  }
}

/** `3d`, `24h`, `30d+` → words that are parsed as dates. */
function ageWords(age: string | undefined): string | undefined {
  const [, count, unit, more] = /^(\d{1,3})\s*([hd])(\+?)$/.exec(age ?? '') ?? []
  return count === undefined ? age : `${count}${more} ${unit === 'h' ? 'hours' : 'days'} ago`
}

/** Its challenge may come with status 200. */
function refuseWall(html: string, url: URL): void {
  if (html.length < 20_000 && /Help Us Protect Glassdoor/i.test(html))
    throw new ScrapeError('E_BLOCKED', `Glassdoor wants proof of a human (${url.href})`, { url: url.href })
}
