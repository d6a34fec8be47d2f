/**
 * A loopback Glassdoor: a search redirects to its page under /Job/…SRCH_….htm, further pages are …_IP{n}.htm, 30 cards each, at
 * most 30 pages. Class names are hashed; a button says whether there is more.
 */
import type { Answer, Site } from '../../browser/site.ts'
import { type BoardOptions, openBoard } from './walls.ts'

export const GLASSDOOR_SEARCH = '/Job/jobs.htm'
const CARDS = 30
const PAGES_MAX = 40
const SLUG = '/Job/denver-cook-jobs-SRCH_IL.0,6_IC1148170_KO7,11'

export const glassdoorId = (n: number) => String(1_009_000_000 + n)

function card(n: number): string {
  const pay = ['$18 - $24 Per Hour (Glassdoor est.)', 'Employer provided:$60K - $80K (Employer provided)', ''][n % 3]!
  const age = ['3d', '24h', '30d+'][n % 3]!
  return `<li class="JobsList_jobListItem__wjTHv" data-test="jobListing" data-jobid="${glassdoorId(n)}" data-brandviews="x">
    <div class="JobCard_jobCardWrapper__vX29z"><span class="EmployerProfile_compactEmployerName__9MGcV" data-test="employer-short-name">Kitchen &amp; Co</span>
    <a class="JobCard_jobTitle__GLyJ1" data-test="job-title" href="/job-listing/cook-JV_IC1148170_KO0,4.htm?jl=${glassdoorId(n)}">Cook ${n}</a>
    <div class="JobCard_location__Ds1fM" data-test="emp-location">${n % 4 === 0 ? 'Remote' : 'Denver, CO'}</div>
    ${pay === '' ? '' : `<div class="JobCard_salaryEstimate__QpbTW" data-test="detailSalary">${pay}</div>`}
    <div class="JobCard_jobDescriptionSnippet__l1tnl" data-test="descSnippet">Cook meals.</div>
    <div class="JobCard_listingAge__jJsuc" data-test="job-age">${age}</div></div></li>`
}

function searchPage(numbers: readonly number[], hasMore: boolean, jobs: number): string {
  return `<!doctype html><html><head><title>Cook Jobs</title></head><body><h1 data-test="search-title">${jobs} cook jobs in Denver</h1>
    <ul class="JobsList_jobsList__lqjTr" data-test="jobs-list">${numbers.map(card).join('')}</ul>
    ${hasMore ? '<button data-test="load-more" type="button">Show more jobs</button>' : ''}</body></html>`
}

export async function startGlassdoorMock(options: BoardOptions): Promise<Site> {
  const { jobs, isRedesigned = false } = options
  const pages = Array.from(
    { length: Math.min(PAGES_MAX, Math.max(1, Math.ceil(jobs / CARDS))) },
    (_, i): [string, Answer] => {
      const from = i * CARDS
      const numbers = Array.from({ length: Math.max(0, Math.min(CARDS, jobs - from)) }, (_, k) => from + k)
      const html = searchPage(numbers, from + CARDS < jobs, jobs)
      const answer = isRedesigned ? html.replaceAll('data-test="jobListing"', 'data-test="listing"') : html
      return [i === 0 ? `${SLUG}.htm` : `${SLUG}_IP${i + 1}.htm`, answer]
    },
  )
  const search: Answer = (request, response) => {
    const { search: query } = new URL(request.url!, 'http://board')
    response.writeHead(302, { location: `${SLUG}.htm${query}` }).end()
  }
  return await openBoard({ [GLASSDOOR_SEARCH]: search, ...Object.fromEntries(pages) }, options)
}
