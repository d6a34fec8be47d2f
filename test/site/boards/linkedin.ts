/**
 * A loopback LinkedIn, as a guest sees it: fragments of 10 cards, `start` in steps of 10, only a comment past the end (or status
 * 400), a page for each posting. Every fifth posting states its pay, every seventh is closed when its page is opened.
 */
import type { Answer, Site } from '../../browser/site.ts'
import { type BoardOptions, openBoard } from './walls.ts'

export const LINKEDIN_SEARCH = '/jobs-guest/jobs/api/seeMoreJobPostings/search'
const DETAIL = '/jobs-guest/jobs/api/jobPosting/'
const CARDS = 10

export interface LinkedinOptions extends BoardOptions {
  /** What follows the last posting. Default `comment`. */
  end?: 'comment' | 'status400'
  /** The day of the first posting; each following one is a day older. */
  newestDay?: string
}

export const linkedinId = (n: number) => String(4_000_000_000 + n)
export const isClosed = (n: number) => n % 7 === 6

function dayOf(n: number, newestDay: string): string {
  return new Date(Date.parse(newestDay) - n * 86_400_000).toISOString().slice(0, 10)
}

function card(n: number, day: string): string {
  const id = linkedinId(n)
  const pay = n % 5 === 0 ? '<span class="job-search-card__salary-info">$120,000.00 - $150,000.00</span>' : ''
  return `<li><div class="base-card base-search-card base-search-card--link job-search-card" data-entity-urn="urn:li:jobPosting:${id}">
    <a class="base-card__full-link absolute" href="https://uk.linkedin.com/jobs/view/engineer-${n}-at-acme-${id}?position=${n}&amp;trackingId=x"><span class="sr-only">Engineer ${n}</span></a>
    <div class="base-search-card__info"><h3 class="base-search-card__title">  Engineer ${n}
    </h3><h4 class="base-search-card__subtitle"><a href="https://uk.linkedin.com/company/acme?trk=public_jobs">Acme &amp; Sons</a></h4>
    <div class="base-search-card__metadata"><span class="job-search-card__location">London, England, United Kingdom</span>${pay}
    <time class="job-search-card__listdate" datetime="${day}">3 days ago</time></div></div></div></li>`
}

function detail(n: number): string {
  const criteria = [
    ['Seniority level', 'Mid-Senior level'],
    ['Employment type', 'Full-time'],
    ['Job function', 'Engineering'],
    ['Industries', 'Software Development'],
  ]
    .map(
      ([name, text]) =>
        `<li class="description__job-criteria-item"><h3 class="description__job-criteria-subheader">${name}</h3><span class="description__job-criteria-text">${text}</span></li>`,
    )
    .join('')
  const pay = n % 5 === 0 ? '<div class="salary compensation__salary">$120,000.00/yr - $150,000.00/yr</div>' : ''
  return `<section><h2 class="top-card-layout__title">Engineer ${n}</h2>
    <a class="topcard__org-name-link" href="https://uk.linkedin.com/company/acme?trk=x">Acme &amp; Sons</a>
    <span class="topcard__flavor topcard__flavor--bullet">London, England, United Kingdom</span>
    <span class="posted-time-ago__text">3 days ago</span><figcaption class="num-applicants__caption">25 applicants</figcaption>
    ${pay}<button data-tracking-control-name="public_jobs_apply-link-${n % 2 === 0 ? 'onsite' : 'offsite'}">Apply</button>
    <div class="show-more-less-html__markup"><p>Build engine <strong>${n}</strong>.</p></div><ul>${criteria}</ul></section>`
}

export async function startLinkedinMock(options: LinkedinOptions): Promise<Site> {
  const { jobs, end = 'comment', newestDay = '2026-11-10', isRedesigned = false } = options
  const search: Answer = (request, response) => {
    const start = Number(new URL(request.url!, 'http://board').searchParams.get('start'))
    if (start >= jobs && end === 'status400') return void response.writeHead(400).end()
    const numbers = Array.from({ length: Math.max(0, Math.min(CARDS, jobs - start)) }, (_, i) => start + i)
    const cards = numbers.map((n) => card(n, dayOf(n, newestDay))).join('')
    const fragment = cards === '' ? '<!DOCTYPE html>\n\n<!---->' : `<!DOCTYPE html>\n\n${cards}`
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(isRedesigned ? fragment.replaceAll('base-search-card', 'jobs-card') : fragment)
  }
  const details = Array.from({ length: jobs }, (_, n): [string, Answer] => [
    `${DETAIL}${linkedinId(n)}`,
    isClosed(n) ? (_, response) => void response.writeHead(404).end() : detail(n),
  ])
  return await openBoard({ [LINKEDIN_SEARCH]: search, ...Object.fromEntries(details) }, options)
}
