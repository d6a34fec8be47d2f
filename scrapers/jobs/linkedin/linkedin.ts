/**
 * LinkedIn as guests see it, without an account: fragments of ten cards, then, with `details`, the page of each posting.
 *
 *   start=0 ──▶ start=10 ──▶ … ends at a fragment without content, at status 400, at start=1000, or when `results` are found
 *
 * Pages follow one another, because the total is unknown. They advance by 10 however few cards came, because the site counts
 * positions, not cards.
 */
import { defineScraper, ScrapeError } from 'sluice'
import {
  isWanted,
  mayBeWanted,
  postingKey,
  postingSchema,
  type RawPosting,
  type Search,
  searchArgs,
  toPosting,
} from 'sluice/jobs'
import * as z from 'zod'
import { afterSearch, readAs, text, under } from '../shared.ts'

const STEP = 10
const START_MAX = 1000
const TYPE_LETTERS: Partial<Record<NonNullable<Search['type']>, string>> = {
  full_time: 'F',
  part_time: 'P',
  contract: 'C',
  temporary: 'T',
  internship: 'I',
  volunteer: 'V',
  other: 'O',
}
/** Where a guest who has seen enough is redirected. */
const WALL = /^\/(?:authwall|signup|login|uas|checkpoint)(?:\/|$)/

const Card = z.object({
  id: z.string().regex(/^\d+$/),
  title: z.string().min(1),
  company: text,
  companyUrl: text,
  location: text,
  date: text,
  salary: text,
})
type Card = z.infer<typeof Card>

export default defineScraper({
  name: 'linkedin',
  description: 'Job search of LinkedIn, from its public pages for guests',
  optIn:
    'LinkedIn’s robots.txt opens with a notice that prohibits automated access without its express permission. Public pages are read slowly, and nobody logs in.',
  args: z.object({
    site: z.url().default('https://www.linkedin.com/'),
    /** Visit the page of each posting, for description, type, seniority and pay. */
    details: z.boolean().default(true),
    /** Miles around the location. */
    distance: z.coerce.number().int().min(0).max(200).optional(),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    // Lists have priority over postings, because a site's list shifts while it is being read.
    list: {
      data: z.object({ left: z.number().int(), start: z.number().int() }),
      accept: { status: [400], empty: true }, // a list ends with an empty response
      priority: 1,
    },
    job: { data: Card, accept: [404, 410] },
  },
  start: ({ args, enqueue }) => enqueue('list', { url: searchUrl(args, 0), data: { left: args.results, start: 0 } }),
  handlers: {
    async list({ $, html, status, url, data, args, fetchedAt, emit, enqueue, log }) {
      refuseWall(url)
      if (status === 400 && data.start === 0)
        throw new ScrapeError('E_STATUS', `LinkedIn does not take this search (status 400 from ${url.href})`)
      // A search without results still contains a comment; an empty first page is a silent block.
      if (data.start === 0 && html.trim() === '')
        throw new ScrapeError('E_EMPTY', `no content on the first page of the search (${url.href})`)
      if (status === 400 || isEmptyFragment(html)) return
      const cards = $.all('div.base-search-card[data-entity-urn]').map((card) =>
        readAs(
          Card,
          {
            id: card.ownAttr('data-entity-urn')?.split(':').at(-1),
            title: card.text('.base-search-card__title'),
            company: card.text('.base-search-card__subtitle', { optional: true }),
            companyUrl: card.attr('.base-search-card__subtitle a', 'href', { optional: true })?.replace(/[?#].*$/, ''),
            location: card.text('.job-search-card__location', { optional: true }),
            date: card.attr('time[datetime]', 'datetime', { optional: true }),
            salary: card.text('.job-search-card__salary-info', { optional: true }),
          },
          url,
        ),
      )
      if (cards.length === 0)
        throw new ScrapeError('E_SELECTOR_EMPTY', `a page without cards that is not empty either (${url.href})`)
      const postings = cards.map((card) => ({
        card,
        posting: toPosting('linkedin', ofCard(card, args), { now: fetchedAt }),
      }))
      const wanted = postings
        .filter(({ posting }) => (args.details ? mayBeWanted : isWanted)(posting, afterSearch(args), fetchedAt))
        .slice(0, data.left)
      if (args.details)
        await enqueue(
          'job',
          wanted.map(({ card }) => ({ url: detailUrl(args.site, card.id), data: card })),
        )
      else for (const { posting } of wanted) await emit(posting)
      const left = data.left - wanted.length
      if (left <= 0) return
      const start = data.start + STEP
      if (start < START_MAX) await enqueue('list', { url: searchUrl(args, start), data: { left, start } })
      else log.warn(`LinkedIn shows ${START_MAX} places of a search: narrow it to see more`)
    },
    async job({ $, status, url, data, args, fetchedAt, emit, skip }) {
      refuseWall(url)
      if (status !== 200) skip('the posting is closed')
      const facts = new Map(
        $.all('.description__job-criteria-item').map((fact) => [
          fact.text('.description__job-criteria-subheader'),
          fact.text('.description__job-criteria-text'),
        ]),
      )
      const card = ofCard(data, args)
      const posting = toPosting(
        'linkedin',
        {
          ...card,
          title: $.text('.top-card-layout__title'),
          description_html: $.html('.show-more-less-html__markup'),
          employment_type: facts.get('Employment type') ?? card.employment_type,
          seniority: facts.get('Seniority level'),
          function: facts.get('Job function'),
          industry: facts.get('Industries'),
          // Omitted if the board states none: the description is then searched.
          ...salaryOf($.text('.compensation__salary', { optional: true }) ?? data.salary),
          raw: {
            easy_apply: $.exists('[data-tracking-control-name*="apply-link-onsite"]'),
            applicants: $.text('.num-applicants__caption', { optional: true }),
          },
        },
        { now: fetchedAt },
      )
      if (isWanted(posting, afterSearch(args), fetchedAt)) await emit(posting)
    },
  },
  // About ten pages per address are let through at speed, then come 429s: one request at a time, 3 to 7 s apart.
  limits: {
    concurrency: 1,
    perHost: { concurrency: 1, delay: '3s-7s' },
    retries: 4,
    backoff: '1.5s',
    // A list page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 1, company: 0.99, job_url: 1 } },
})

function searchUrl(args: Search & { site: string; distance?: number | undefined }, start: number): URL {
  const url = under(args.site, 'jobs-guest/jobs/api/seeMoreJobPostings/search')
  const { search, location, since, remote, type, distance } = args
  const letter = type === undefined ? undefined : TYPE_LETTERS[type]
  if (search !== '') url.searchParams.set('keywords', search)
  if (location !== '') url.searchParams.set('location', location)
  if (distance !== undefined) url.searchParams.set('distance', String(distance))
  if (since !== undefined) url.searchParams.set('f_TPR', `r${Math.ceil(since * 86_400)}`)
  if (remote !== undefined) url.searchParams.set('f_WT', remote ? '2' : '1,3')
  if (letter !== undefined) url.searchParams.set('f_JT', letter)
  url.searchParams.set('sortBy', 'DD')
  url.searchParams.set('start', String(start))
  return url
}

const detailUrl = (site: string, id: string) => under(site, `jobs-guest/jobs/api/jobPosting/${id}`)

function ofCard(card: Card, { site, remote, type }: Search & { site: string }): RawPosting {
  return {
    source_job_id: card.id,
    board_token: new URL(site).host,
    title: card.title,
    company: card.company ?? null,
    company_url: card.companyUrl,
    locations: [card.location],
    // The card has neither; the search was restricted to these.
    is_remote: remote === true ? true : null,
    employment_type: type !== undefined && type in TYPE_LETTERS ? type : null,
    ...salaryOf(card.salary),
    date_posted: card.date,
    job_url: under(site, `jobs/view/${card.id}`).href,
  }
}

const salaryOf = (salary: string | null | undefined) => (salary === null || salary === undefined ? {} : { salary })

/** Past its end the site returns only a doctype and a comment. */
function isEmptyFragment(html: string): boolean {
  return html.length < 1000 && html.replace(/<!--[\s\S]*?-->|<!doctype[^>]*>/gi, '').trim() === ''
}

function refuseWall(url: URL): void {
  if (WALL.test(url.pathname))
    throw new ScrapeError('E_LOGIN_WALL', `LinkedIn wants a login (${url.href})`, { url: url.href })
}
