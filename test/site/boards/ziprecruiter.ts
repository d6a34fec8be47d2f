/**
 * A loopback ZipRecruiter: a shell whose `script#js_variables` holds 20 cards per page, the number of pages, and one posting in
 * full.
 */
import type { Answer, Site } from '../../browser/site.ts'
import { type BoardOptions, openBoard } from './walls.ts'

export const ZIPRECRUITER_SEARCH = '/jobs-search'
const CARDS = 20

export const zipKey = (n: number) => `Zip_${String(n).padStart(4, '0')}`

function card(n: number, site: string): Record<string, unknown> {
  return {
    listingKey: zipKey(n),
    title: `Driver ${n}`,
    company: { name: 'Hauler & Co' },
    location: { city: 'Denver', stateCode: 'CO', countryCode: 'US', displayName: 'Denver, CO, USA' },
    ...(n % 4 === 3 ? {} : { pay: { min: 24.5, max: 31, interval: 1 } }),
    employmentTypes: [{ name: n % 2 === 0 ? 1 : 3 }],
    status: { postedAtUtc: '2026-11-10T07:30:00Z' },
    shortDescription: 'Drive a truck with a load of "bricks" </b>.',
    rawCanonicalZipJobPageUrl: `${site}/c/Hauler/Job/Driver/-in-Denver,CO?jid=${n}`,
    applyButtonConfig: { externalApplyUrl: n % 5 === 0 ? `https://apply.example/driver/${n}` : '' },
  }
}

const details = (n: number) => ({
  getJobDetailsResponse: {
    jobDetails: {
      listingKey: zipKey(n),
      title: `Driver ${n}`,
      htmlFullDescription: `<p>Drive truck <b>${n}</b> over the Rockies.</p>`,
      hiringCompany: { name: 'Hauler & Co' },
    },
  },
})

const shell = (variables: object): string =>
  `<!doctype html><html><head><title>Jobs</title></head><body><div id="react_container"></div><script id="js_variables" type="application/json">${JSON.stringify(variables).replaceAll('</', '<\\/')}</script></body></html>`

export async function startZiprecruiterMock(options: BoardOptions): Promise<Site> {
  const { jobs, isRedesigned = false } = options
  const maxPages = Math.max(1, Math.ceil(jobs / CARDS))
  const search: Answer = (request, response) => {
    const page = Number(new URL(request.url!, 'http://board').searchParams.get('page') ?? 1)
    const from = (page - 1) * CARDS
    const numbers = Array.from({ length: Math.max(0, Math.min(CARDS, jobs - from)) }, (_, i) => from + i)
    const variables = {
      hydrateJobCardsResponse: { jobCards: numbers.map((n) => card(n, site.url)) },
      listJobKeysResponse: { jobKeys: numbers.map((n) => ({ listingKey: zipKey(n) })) },
      page,
      maxPages,
      ...(numbers.length > 0 ? details(from) : {}),
    }
    const { hydrateJobCardsResponse: _, ...others } = variables
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(shell(isRedesigned ? others : variables))
  }
  const posting: Answer = (request, response) => {
    const n = Number(new URL(request.url!, 'http://board').searchParams.get('jid'))
    response.setHeader('content-type', 'text/html; charset=utf-8').end(shell(details(n)))
  }
  const site = await openBoard(
    { [ZIPRECRUITER_SEARCH]: search, '/c/Hauler/Job/Driver/-in-Denver,CO': posting },
    options,
  )
  return site
}
