/**
 * A loopback Indeed: 15 cards per page although `start` steps by 10, so pages overlap; two sponsored cards are repeated on every
 * page, the order differs between requests, and past the end the last page is shown again. The data is a script's object.
 */
import type { Answer, Site } from '../../browser/site.ts'
import { type BoardOptions, openBoard } from './walls.ts'

export const INDEED_SEARCH = '/jobs'
const CARDS = 15
const STEP = 10
const SPONSORED = 2

export const indeedKey = (n: number) => n.toString(16).padStart(16, '0')

function indeedCard(n: number, nowMs: number): Record<string, unknown> {
  return {
    jobkey: indeedKey(n),
    title: `Nurse ${n}`,
    displayTitle: `Nurse ${n}`,
    company: n % 11 === 10 ? undefined : 'St. Mary "General"',
    companyRating: 4.1,
    companyReviewCount: 120,
    formattedLocation: n % 3 === 0 ? 'Remote in Austin, TX 78701' : 'Austin, TX 78701',
    jobLocationCity: 'Austin',
    jobLocationState: 'TX',
    remoteLocation: n % 3 === 0,
    jobTypes: [n % 2 === 0 ? 'Full-time' : 'Part-time'],
    salarySnippet: { text: '$30 - $40 an hour', currency: 'USD' },
    extractedSalary: { min: 30, max: 40, type: 'HOURLY' },
    formattedRelativeTime: '3 days ago',
    pubDate: nowMs - 3 * 86_400_000,
    // A search for the first "};" would stop here.
    snippet: `<ul><li>Care for "patients" }; window.mosaic = {\\</li></ul>`,
    thirdPartyApplyUrl: n % 4 === 0 ? `https://apply.example/nurse/${n}` : undefined,
  }
}

function searchPage(cards: readonly object[], total: number, isRedesigned: boolean): string {
  const model = {
    metaData: { mosaicProviderJobCardsModel: { results: cards, totalJobCount: total } },
  }
  const name = isRedesigned ? 'mosaic-provider-cards-v2' : 'mosaic-provider-jobcards'
  const json = JSON.stringify(model).replaceAll('</', '<\\/')
  return `<!doctype html><html><head><title>nurse jobs | Indeed</title></head><body><script>window.mosaic.providerData["mosaic-provider-header"]={"a":"};"};
    if (window.mosaic.providerData["${name}"] === undefined) {}
    window.mosaic.providerData["${name}"] = ${json};window._initialData={"totalJobCount":${total}};</script></body></html>`
}

function jobPage(n: number): string {
  const posting = {
    '@context': 'https://schema.org',
    '@type': 'JobPosting',
    title: `Nurse ${n}`,
    description: `<p>Care for patients on ward <b>${n}</b>.</p>`,
    datePosted: '2026-11-12T08:00:00.000Z',
    validThrough: '2027-03-12T08:00:00.000Z',
    employmentType: 'FULL_TIME',
    hiringOrganization: { '@type': 'Organization', name: 'St. Mary "General"', sameAs: 'https://stmary.example/' },
    jobLocation: {
      '@type': 'Place',
      address: { '@type': 'PostalAddress', addressLocality: 'Austin', addressRegion: 'TX', addressCountry: 'US' },
    },
    baseSalary: {
      '@type': 'MonetaryAmount',
      currency: 'USD',
      value: { '@type': 'QuantitativeValue', minValue: 30, maxValue: 40, unitText: 'HOUR' },
    },
  }
  return `<!doctype html><html><head><title>Nurse ${n}</title><script type="application/ld+json">${JSON.stringify(posting)}</script></head><body><h1>Nurse ${n}</h1></body></html>`
}

export async function startIndeedMock(options: BoardOptions): Promise<Site> {
  const { jobs, isRedesigned = false } = options
  const nowMs = Date.now()
  let asked = 0
  const search: Answer = (request, response) => {
    const wantedStart = Number(new URL(request.url!, 'http://board').searchParams.get('start') ?? 0)
    const lastStart = Math.max(0, Math.floor((jobs - 1) / STEP) * STEP)
    const start = Math.min(wantedStart, lastStart)
    const places = Array.from({ length: Math.max(0, Math.min(CARDS, jobs - start)) }, (_, i) => start + i)
    const shown = [...Array.from({ length: Math.min(SPONSORED, jobs) }, (_, i) => i), ...places]
    if (asked++ % 2 === 1) shown.reverse()
    const cards = shown.map((n) => indeedCard(n, nowMs))
    response.setHeader('content-type', 'text/html; charset=utf-8').end(searchPage(cards, jobs, isRedesigned))
  }
  const view: Answer = (request, response) => {
    const key = new URL(request.url!, 'http://board').searchParams.get('jk') ?? ''
    response.setHeader('content-type', 'text/html; charset=utf-8').end(jobPage(Number.parseInt(key, 16)))
  }
  return await openBoard({ [INDEED_SEARCH]: search, '/viewjob': view }, options)
}
