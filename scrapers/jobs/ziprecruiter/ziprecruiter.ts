/**
 * ZipRecruiter's search pages (United States and Canada; elsewhere it responds with 403): 20 cards per page in
 * `script#js_variables`, which also contains the number of pages. With `details`, also the page of each posting.
 */
import { defineScraper, ScrapeError } from 'sluice'
import { isWanted, postingKey, postingSchema, type RawPosting, type Search, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { afterSearch, entriesOf, listOf, number, part, readAs, text, under } from '../shared.ts'

const VARIABLES = 'script#js_variables'
const PAGES_MAX = 100
/** Numbers instead of words; a word is used as it is. */
const TYPES = ['', 'full_time', 'part_time', 'contract', 'internship', 'temporary']
const INTERVALS = ['', 'hour', 'day', 'week', 'month', 'year']
const CURRENCIES: Readonly<Record<string, string>> = { US: 'USD', CA: 'CAD' }

const Card = z.object({
  listingKey: z.string().min(1),
  title: z.string().min(1),
  company: part(z.object({ name: text })),
  location: part(z.object({ city: text, stateCode: text, countryCode: text, displayName: text })),
  pay: part(z.object({ min: number, max: number, interval: number })),
  employmentTypes: listOf(z.object({ name: z.union([z.number(), z.string()]) })),
  status: part(z.object({ postedAtUtc: text })),
  shortDescription: text,
  rawCanonicalZipJobPageUrl: text,
  applyButtonConfig: part(z.object({ externalApplyUrl: text })),
})
type Card = z.infer<typeof Card>

const ListVariables = z.object({
  hydrateJobCardsResponse: z.object({ jobCards: z.array(z.unknown()) }),
  maxPages: z.number(),
})
const JobVariables = z.object({
  getJobDetailsResponse: z.object({
    jobDetails: z.object({ listingKey: z.string(), htmlFullDescription: z.string(), externalApplyUrl: text }),
  }),
})

export default defineScraper({
  name: 'ziprecruiter',
  description: 'Job search of ZipRecruiter (US and Canada), from its public pages',
  optIn:
    'ZipRecruiter’s terms are understood to prohibit automated access; read them before you turn it on. It answers 403 outside the US and Canada.',
  args: z.object({
    site: z.url().default('https://www.ziprecruiter.com/'),
    /** Visit the page of each posting, for its whole description. */
    details: z.boolean().default(false),
    /** Miles around the location. */
    radius: z.coerce.number().int().min(0).max(500).optional(),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: { data: z.object({ left: z.number().int(), page: z.number().int() }), priority: 1 },
    job: { data: Card, accept: [404, 410] },
  },
  start: ({ args, enqueue }) => enqueue('list', { url: searchUrl(args, 1), data: { left: args.results, page: 1 } }),
  handlers: {
    async list({ $, url, data, args, fetchedAt, emit, enqueue }) {
      const variables = readAs(ListVariables, $.json(VARIABLES), url)
      const { jobCards } = variables.hydrateJobCardsResponse
      const cards = await entriesOf(Card, jobCards, emit)
      if (cards.length === 0 && (jobCards.length > 0 || data.page < variables.maxPages))
        throw new ScrapeError(
          'E_SELECTOR_EMPTY',
          `no cards on page ${data.page} of ${variables.maxPages} (${url.href})`,
        )
      const postings = cards.map((card) => ({
        card,
        posting: toPosting('ziprecruiter', ofCard(card, args), { now: fetchedAt }),
      }))
      const wanted = postings
        .filter(({ posting }) => isWanted(posting, afterSearch(args), fetchedAt))
        .slice(0, data.left)
      for (const { card, posting } of wanted) {
        const page = args.details ? pageOf(card, args.site) : undefined
        if (page === undefined) await emit(posting)
        else await enqueue('job', { url: page, data: card })
      }
      const left = data.left - wanted.length
      const next = data.page + 1
      if (left > 0 && next <= Math.min(variables.maxPages, PAGES_MAX))
        await enqueue('list', { url: searchUrl(args, next), data: { left, page: next } })
    },
    async job({ $, status, url, data, args, fetchedAt, emit, skip }) {
      if (status !== 200) skip('the posting is closed')
      const { jobDetails } = readAs(JobVariables, $.json(VARIABLES), url).getJobDetailsResponse
      if (jobDetails.listingKey !== data.listingKey)
        throw new ScrapeError(
          'E_SELECTOR_EMPTY',
          `the page is of another posting, ${jobDetails.listingKey} (${url.href})`,
        )
      const card = ofCard(data, args)
      const posting = toPosting(
        'ziprecruiter',
        {
          ...card,
          description_html: jobDetails.htmlFullDescription,
          apply_url: jobDetails.externalApplyUrl || card.apply_url,
          raw: {},
        },
        { now: fetchedAt },
      )
      if (isWanted(posting, afterSearch(args), fetchedAt)) await emit(posting)
    },
  },
  // Its firewall blocks quickly: one request at a time, 2 to 5 s apart.
  limits: {
    concurrency: 1,
    perHost: { concurrency: 1, delay: '2s-5s' },
    retries: 2,
    backoff: '5s',
    // A list page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 1, company: 0.95, job_url: 1 } },
})

function searchUrl(args: Search & { site: string; radius?: number | undefined }, page: number): URL {
  const url = under(args.site, 'jobs-search')
  const { search, location, since, remote, radius } = args
  url.searchParams.set('search', search)
  url.searchParams.set('location', location)
  if (radius !== undefined) url.searchParams.set('radius', String(radius))
  if (since !== undefined) url.searchParams.set('days_ago', String(Math.max(1, Math.ceil(since))))
  if (remote === true) url.searchParams.set('remote', '1')
  url.searchParams.set('page', String(page))
  return url
}

function ofCard(card: Card, { site, remote }: Search & { site: string }): RawPosting {
  const { pay, location } = card
  const country = location?.countryCode ?? ''
  return {
    source_job_id: card.listingKey,
    board_token: new URL(site).host,
    title: card.title,
    company: card.company?.name ?? null,
    locations: location
      ? [{ raw: location.displayName, city: location.city, region: location.stateCode, country: location.countryCode }]
      : [],
    // The card does not say; the search was for remote work only.
    is_remote: remote === true ? true : null,
    employment_type: card.employmentTypes.map(({ name }) => (typeof name === 'number' ? (TYPES[name] ?? '') : name)),
    ...(pay
      ? {
          salary: {
            min: pay.min,
            max: pay.max,
            currency: CURRENCIES[country] ?? null,
            interval: INTERVALS[pay.interval ?? 0] || null,
          },
        }
      : {}),
    date_posted: card.status?.postedAtUtc,
    description_html: card.shortDescription,
    job_url: pageOf(card, site)?.href ?? under(site, `jobs-search?lk=${encodeURIComponent(card.listingKey)}`).href,
    apply_url: card.applyButtonConfig?.externalApplyUrl || null,
    raw: { is_snippet: true },
  }
}

/** The posting's own page, if it is on this site: cards may lead anywhere. */
function pageOf({ rawCanonicalZipJobPageUrl: address }: Card, site: string): URL | undefined {
  const url = URL.parse(address ?? '', site)
  return url !== null && url.host === new URL(site).host && address ? url : undefined
}
