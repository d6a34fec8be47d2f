/**
 * Google's job search. Without scripts it returns an empty shell, so the first page is opened in a browser; further ones are
 * requested with the token in the page. Google takes its postings from employers' own markup: reading that (`sluice run jobs`) is
 * better whenever the employer is known.
 */
import { defineScraper, ScrapeError } from 'sluice'
import { mayBeWanted, postingKey, postingSchema, type Search, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { afterSearch, under } from '../shared.ts'
import { type FoundJob, nextToken, readJobArrays } from './job-arrays.ts'

const PAGES_MAX = 100
const SHOWN_MS_MAX = 5_000
const MARK = '520084652'
const TYPE_WORDS: Partial<Record<NonNullable<Search['type']>, string>> = {
  full_time: 'full time',
  part_time: 'part time',
  contract: 'contractor',
  internship: 'internship',
  temporary: 'temporary',
}

const pageData = z.object({ left: z.number().int(), page: z.number().int() })

export default defineScraper({
  name: 'google',
  description: 'Google’s job search, in a browser',
  optIn:
    'Google’s terms are understood to prohibit automated searches; read them before you turn it on. What it shows comes from employers’ own pages, which can be read in its place.',
  args: z.object({
    site: z.url().default('https://www.google.com/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    search: {
      fetch: 'browser',
      browser: { block: ['image', 'font', 'media'] },
      data: pageData,
      accept: { suspect: true }, // the handler recognises the block pages of this site
    },
    more: { data: pageData },
  },
  start: ({ args, enqueue }) => enqueue('search', { url: searchUrl(args), data: { left: args.results, page: 1 } }),
  handlers: {
    async search({ page, html, url, data, args, fetchedAt, emit, enqueue }) {
      refuseWall(url, html)
      // Scripts may still be running when the page has loaded. A string, because it runs in the page, not here.
      const isShown = `document.documentElement.innerHTML.includes('${MARK}')`
      await page.waitForFunction(isShown, { timeout: SHOWN_MS_MAX }).catch(() => {})
      const shown = await page.content()
      const { postings, next } = readPage(shown, url, args, fetchedAt, data)
      for (const posting of postings) await emit(posting)
      if (next !== undefined) await enqueue('more', next)
    },
    async more({ html, url, data, args, fetchedAt, emit, enqueue }) {
      refuseWall(url, html)
      const { postings, next } = readPage(html, url, args, fetchedAt, data)
      for (const posting of postings) await emit(posting)
      if (next !== undefined) await enqueue('more', next)
    },
  },
  // Google counts closely and responds with a captcha: one page at a time, 3 to 8 s apart.
  limits: {
    concurrency: 1,
    perHost: { concurrency: 1, delay: '3s-8s' },
    retries: 1,
    backoff: '10s',
    // A page that fails ends the list, and would look like a short one.
    failAt: 0,
  },
  expect: { filled: { title: 1, company: 0.95, job_url: 1 } },
})

/** The postings of a page, and where the next page is. */
function readPage(
  text: string,
  url: URL,
  args: Search & { site: string },
  now: Date,
  { left, page }: z.infer<typeof pageData>,
) {
  const { jobs, broken } = readJobArrays(text)
  if (jobs.length === 0) throw noJobs(text, url, broken)
  const postings = jobs
    .map((job) => toPosting('google', rawOf(job, args), { now }))
    // Nor does it state the employment type: that was part of the search, and Google has applied it.
    .filter((posting) => mayBeWanted(posting, afterSearch(args), now))
    .slice(0, left)
  const token = nextToken(text)
  const isEnough = left - postings.length <= 0 || page >= PAGES_MAX
  const next =
    token === undefined || isEnough
      ? undefined
      : { url: moreUrl(args.site, token), data: { left: left - postings.length, page: page + 1 } }
  return { postings, next }
}

/** A page without postings never counts as an empty search: Google does not say so in a way that differs from a wall. */
function noJobs(text: string, url: URL, broken: number): ScrapeError {
  if (broken === 0 && isShell(text))
    return new ScrapeError('E_BLOCKED', `Google answered with its script shell (${url.href})`, { url: url.href })
  const what = broken > 0 ? `${broken} postings in another layout` : 'no postings'
  return new ScrapeError('E_SELECTOR_EMPTY', `${what} in the page (${url.href})`, { url: url.href })
}

function searchUrl(args: Search & { site: string }): URL {
  const { search, location, since, remote, type } = args
  const words = [
    search,
    'jobs',
    type === undefined ? undefined : TYPE_WORDS[type],
    remote === true ? 'remote' : undefined,
    location === '' ? undefined : `near ${location}`,
    since === undefined ? undefined : sinceWords(since),
  ]
  const url = under(args.site, 'search')
  url.searchParams.set('q', words.filter(Boolean).join(' '))
  url.searchParams.set('udm', '8')
  return url
}

function sinceWords(days: number): string | undefined {
  if (days <= 1) return 'since yesterday'
  if (days <= 3) return 'in the last 3 days'
  if (days <= 7) return 'in the last week'
  return days <= 31 ? 'in the last month' : undefined
}

function moreUrl(site: string, token: string): URL {
  const url = under(site, 'async/callback:550')
  url.searchParams.set('fc', token)
  url.searchParams.set('fcv', '3')
  return url
}

function rawOf(job: FoundJob, { site, remote }: Search & { site: string }) {
  return {
    source_job_id: job.id,
    board_token: new URL(site).host,
    title: job.title,
    company: job.company,
    locations: [job.location],
    // The array does not say; the search was for remote work only.
    is_remote: remote === true ? true : null,
    date_posted: job.age,
    description_text: job.description,
    job_url: job.url,
  }
}

const isShell = (html: string) => html.includes('httpservice/retry/enablejs')

function refuseWall(url: URL, html: string): void {
  const details = { url: url.href }
  if (url.pathname.startsWith('/sorry/'))
    throw new ScrapeError('E_CAPTCHA', `Google wants proof of a human (${url.href})`, details)
  if (url.hostname.startsWith('consent.') || url.pathname.startsWith('/consent.'))
    throw new ScrapeError('E_BLOCKED', `Google asks for consent before it shows anything (${url.href})`, details)
  if (isShell(html) && html.length < 5_000 && !html.includes(MARK))
    throw new ScrapeError('E_BLOCKED', `Google answered with its script shell (${url.href})`, details)
}
