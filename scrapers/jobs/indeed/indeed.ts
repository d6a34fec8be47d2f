/**
 * Indeed's search pages, whose cards are an object in a script, and, with `details`, the page of each posting with its markup.
 *
 * Pages step by 10 and show about 15 cards, with sponsored ones repeated, in an order that changes: the keys of cards seen so far
 * travel with the next page's task. The list ends with a page that shows nothing new.
 */
import { defineScraper, ScrapeError } from 'sluice'
import {
  isWanted,
  mayBeWanted,
  postingKey,
  postingSchema,
  type RawPosting,
  readAssignedJson,
  readJobPostings,
  type Search,
  type Seen,
  searchArgs,
  toPosting,
} from 'sluice/jobs'
import * as z from 'zod'
import { afterSearch, entriesOf, flag, listOf, number, part, readAs, text, under } from '../shared.ts'

const STEP = 10
const START_MAX = 1000
const ANCHOR = 'window.mosaic.providerData["mosaic-provider-jobcards"]'
const REMOTE = '0kf:attr(DSQF7);'
const TYPES: Partial<Record<NonNullable<Search['type']>, string>> = {
  full_time: 'fulltime',
  part_time: 'parttime',
  contract: 'contract',
  temporary: 'temporary',
  internship: 'internship',
}
/** Countries whose host is not their ISO code. */
const HOSTS: Readonly<Record<string, string>> = { us: 'www', gb: 'uk' }

const CardFields = z.object({
  jobkey: z.string().regex(/^[0-9a-f]{16}$/),
  title: text,
  displayTitle: text,
  company: text,
  companyRating: number,
  companyReviewCount: number,
  formattedLocation: text,
  jobLocationCity: text,
  jobLocationState: text,
  remoteLocation: flag,
  remoteWorkModel: part(z.object({ type: text, text })),
  jobTypes: listOf(z.string()),
  salarySnippet: part(z.object({ text, currency: text })),
  extractedSalary: part(z.object({ min: number, max: number, type: text })),
  formattedRelativeTime: text,
  pubDate: number,
  snippet: text,
  thirdPartyApplyUrl: text,
})
const Card = CardFields.refine(({ displayTitle, title }) => !!(displayTitle || title), { error: 'no title' })
type Card = z.infer<typeof Card>

const Model = z.object({
  metaData: z.object({ mosaicProviderJobCardsModel: z.object({ results: z.array(z.unknown()) }) }),
})

export default defineScraper({
  name: 'indeed',
  description: 'Job search of Indeed, from its public pages',
  optIn:
    'Indeed’s terms prohibit automated access to its site without its permission, and it challenges plain requests at once. Challenges are reported, never solved.',
  args: z.object({
    /** Two letters that choose the host, such as de.indeed.com. */
    country: z
      .string()
      .regex(/^[a-z]{2}$/i, { error: 'two letters, such as us, gb or de' })
      .default('us'),
    site: z.url().optional(),
    /** Visit the page of each posting, for its whole description. */
    details: z.boolean().default(true),
    /** Distance from the location, in the country's own miles or kilometres. */
    radius: z.coerce.number().int().min(0).max(200).optional(),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: {
      data: z.object({ left: z.number().int(), start: z.number().int(), seen: z.array(z.string()) }),
      priority: 1,
    },
    job: { data: Card, accept: [404, 410] },
  },
  start: ({ args, enqueue }) =>
    enqueue('list', { url: searchUrl(args, 0), data: { left: args.results, start: 0, seen: [] } }),
  handlers: {
    async list({ html, url, data, args, fetchedAt, emit, enqueue, log }) {
      refuseWall(url)
      const value = readAssignedJson(html, ANCHOR)
      if (value === undefined)
        throw new ScrapeError('E_SELECTOR_EMPTY', `no ${ANCHOR} in the page (${url.href})`, { url: url.href })
      const { results } = readAs(Model, value, url).metaData.mosaicProviderJobCardsModel
      const cards = await entriesOf(Card, results, emit)
      if (cards.length === 0 && results.length > 0)
        throw new ScrapeError('E_SELECTOR_EMPTY', `not one of ${results.length} cards has its shape (${url.href})`)
      const seen = new Set(data.seen)
      const fresh = new Map(cards.filter(({ jobkey }) => !seen.has(jobkey)).map((card) => [card.jobkey, card]))
      const wanted = [...fresh.values()].filter((card) => isAsked(card, args, fetchedAt)).slice(0, data.left)
      if (args.details)
        await enqueue(
          'job',
          wanted.map((card) => ({ url: jobUrl(args, card.jobkey), data: card })),
        )
      else for (const card of wanted) await emit(toPosting('indeed', ofCard(card, args), { now: fetchedAt }))
      const left = data.left - wanted.length
      if (fresh.size === 0 || left <= 0) return
      const start = data.start + STEP
      if (start >= START_MAX) return log.warn(`Indeed shows ${START_MAX} places of a search: narrow it to see more`)
      await enqueue('list', { url: searchUrl(args, start), data: { left, start, seen: [...seen, ...fresh.keys()] } })
    },
    async job({ $, status, url, data, args, fetchedAt, emit, skip }) {
      refuseWall(url)
      if (status !== 200) skip('the posting is closed')
      const [markup] = readJobPostings($, url.href)
      if (markup === undefined)
        throw new ScrapeError('E_SELECTOR_EMPTY', `no JobPosting markup in the page (${url.href})`, { url: url.href })
      const card = ofCard(data, args)
      const { description_html, valid_through, company_url, date_posted } = markup
      const posting = toPosting(
        'indeed',
        {
          ...card,
          company: card.company ?? markup.company,
          company_url,
          description_html,
          valid_through,
          date_posted: date_posted ?? card.date_posted,
          employment_type: data.jobTypes.length > 0 ? data.jobTypes : markup.employment_type,
          ...(card.salary === undefined && markup.salary !== undefined ? { salary: markup.salary } : {}),
        },
        { now: fetchedAt },
      )
      if (isAnswer(posting, args, fetchedAt)) await emit(posting)
    },
  },
  // Indeed's limits are unknown, so it is as slow as the slowest board with known limits.
  limits: {
    concurrency: 1,
    perHost: { concurrency: 1, delay: '3s-7s' },
    retries: 3,
    backoff: '2s',
    // A list page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 1, company: 0.9, job_url: 1 } },
})

interface Place {
  country: string
  site?: string | undefined
}

function siteOf({ country, site }: Place): string {
  const code = country.toLowerCase()
  return site ?? `https://${HOSTS[code] ?? code}.indeed.com/`
}

function searchUrl(args: Search & Place & { radius?: number | undefined }, start: number): URL {
  const url = under(siteOf(args), 'jobs')
  const { search, location, since, remote, type, radius } = args
  const kind = type === undefined ? undefined : TYPES[type]
  url.searchParams.set('q', search)
  url.searchParams.set('l', location)
  if (radius !== undefined) url.searchParams.set('radius', String(radius))
  if (since !== undefined) url.searchParams.set('fromage', String(Math.max(1, Math.ceil(since))))
  if (remote === true) url.searchParams.set('sc', REMOTE)
  if (kind !== undefined) url.searchParams.set('jt', kind)
  url.searchParams.set('sort', 'date')
  url.searchParams.set('start', String(start))
  return url
}

/** The URL of the posting itself; the links of the cards are redirects that count clicks. */
function jobUrl(place: Place, key: string): URL {
  const url = under(siteOf(place), 'viewjob')
  url.searchParams.set('jk', key)
  return url
}

function isAsked(card: Card, args: Search & Place & { details: boolean }, now: Date): boolean {
  const { description_text: _, ...seen } = toPosting('indeed', ofCard(card, args), { now })
  return args.details ? mayBeWanted(seen, afterSearch(args), now) : isAnswer(seen, args, now)
}

/**
 * Indeed itself filters by remote work and the types it knows: if it was asked to, a posting without these fields is accepted.
 */
function isAnswer(posting: Seen, args: Search, now: Date): boolean {
  const isJudged = args.type === undefined || args.type in TYPES
  return (isJudged ? mayBeWanted : isWanted)(posting, afterSearch(args), now)
}

function ofCard(card: Card, args: Search & Place): RawPosting {
  const pay = card.extractedSalary
  return {
    source_job_id: card.jobkey,
    board_token: new URL(siteOf(args)).host,
    title: card.displayTitle || card.title || '',
    company: card.company ?? null,
    locations: [
      { raw: card.formattedLocation, city: card.jobLocationCity, region: card.jobLocationState, country: args.country },
    ],
    workplace: card.remoteWorkModel?.text ?? card.remoteWorkModel?.type,
    is_remote: card.remoteLocation,
    employment_type: card.jobTypes,
    ...(pay
      ? { salary: { min: pay.min, max: pay.max, interval: pay.type, currency: card.salarySnippet?.currency } }
      : card.salarySnippet?.text
        ? { salary: card.salarySnippet.text }
        : {}),
    date_posted: card.pubDate ?? card.formattedRelativeTime,
    description_html: card.snippet,
    job_url: jobUrl(args, card.jobkey).href,
    apply_url: card.thirdPartyApplyUrl,
    raw: { rating: card.companyRating, reviews: card.companyReviewCount, is_snippet: true },
  }
}

function refuseWall(url: URL): void {
  if (url.searchParams.get('from') === 'bot-detection')
    throw new ScrapeError('E_BLOCKED', `Indeed takes us for a robot (${url.href})`, { url: url.href })
}
