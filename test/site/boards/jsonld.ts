/** A loopback careers site: lists in pages, job pages with markup in all common variants, and sitemaps. */
import { escapeHtml } from '../html.ts'
import { type BoardAnswer, type BoardServer, type MockOptions, notFound, startBoardServer } from './ats-server.ts'

export interface CareersOptions extends MockOptions {
  /** How the list leads to the jobs. `nothing`: as if rendered by a script. */
  list?: 'links' | 'itemList' | 'postings' | 'nothing'
  /** Additional content of the first page. */
  extra?: string
  /** Job pages claim to describe a job, but the markup is unreadable. */
  isBroken?: boolean
  /** Job pages have no markup at all. */
  isBare?: boolean
}

export const PAGE_SIZE = 10
const DAY_MS = 86_400_000

/** What the n-th job page describes; higher numbers are older. */
function careersPosting(n: number) {
  return {
    '@context': 'https://schema.org',
    '@type': 'JobPosting',
    title: `${n % 2 === 0 ? 'Gardener' : 'Florist'} ${n}`,
    description: `<p>Grow ${n % 5 === 0 ? 'roses' : 'tulips'}.</p>`,
    identifier: { '@type': 'PropertyValue', name: 'Acme Gardens', value: `G-${n}` },
    datePosted: new Date(Date.UTC(2026, 10, 10) - n * DAY_MS).toISOString().slice(0, 10),
    employmentType: n % 3 === 0 ? 'FULL_TIME' : ['PART_TIME', 'TEMPORARY'],
    hiringOrganization: { '@type': 'Organization', name: 'Acme Gardens', sameAs: 'https://acme.test/' },
    jobLocation: {
      '@type': 'Place',
      address: {
        '@type': 'PostalAddress',
        addressLocality: n % 2 === 0 ? 'Kew' : 'Leiden',
        addressCountry: n % 2 === 0 ? 'GB' : 'NL',
      },
    },
    baseSalary: {
      '@type': 'MonetaryAmount',
      currency: 'EUR',
      value: { '@type': 'QuantitativeValue', minValue: 30_000 + n, maxValue: 40_000 + n, unitText: 'YEAR' },
    },
  }
}

const script = (text: string) => `<script type="application/ld+json">${text}</script>`

function microdata({
  title,
  description,
  datePosted,
  hiringOrganization,
  jobLocation,
}: ReturnType<typeof careersPosting>): string {
  const { addressLocality, addressCountry } = jobLocation.address
  return `<div itemscope itemtype="https://schema.org/JobPosting"><h2 itemprop="title">${title}</h2>
    <time itemprop="datePosted" datetime="${datePosted}">lately</time>
    <p itemprop="hiringOrganization" itemscope itemtype="https://schema.org/Organization"><b itemprop="name">${hiringOrganization.name}</b></p>
    <p itemprop="jobLocation" itemscope itemtype="https://schema.org/Place"><span itemprop="address" itemscope>
    <b itemprop="addressLocality">${addressLocality}</b> <b itemprop="addressCountry">${addressCountry}</b></span></p>
    <div itemprop="description">${description}</div></div>`
}

/** The same posting, as another site would write it. */
function markup(n: number): string {
  const posting = careersPosting(n)
  const json = JSON.stringify(posting)
  const ways = [
    () => script(json),
    () => script(`${json.replace('<p>Grow', '<p>\n\tGrow').slice(0, -1)},}`),
    () => script(escapeHtml(json)),
    () => script(`//<![CDATA[\n${json}\n//]]>`),
    () => microdata(posting),
    () => script(`{"@graph":[{"@type":"WebSite"},${json.replace('"title"', '"Title"')}]}`),
  ]
  return ways[n % ways.length]!()
}

const jobPath = (n: number) => `/careers/jobs/${n}-grow`

function listPage(page: number, { jobs, list = 'links', extra = '' }: CareersOptions, origin: string): string {
  const numbers = Array.from({ length: jobs }, (_, n) => n).slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)
  const shown = {
    links: () => numbers.map((n) => `<li><a href="${jobPath(n)}?lang=en#top">Job ${n}</a></li>`).join(''),
    itemList: () =>
      script(
        JSON.stringify({
          '@type': 'ItemList',
          itemListElement: numbers.map((n) => ({ '@type': 'ListItem', url: jobPath(n) })),
        }),
      ),
    postings: () => script(JSON.stringify(numbers.map((n) => ({ ...careersPosting(n), url: origin + jobPath(n) })))),
    nothing: () => '<div id="app"></div>',
  }[list]()
  const next =
    page * PAGE_SIZE < jobs && list !== 'nothing' ? `<a rel="next" href="/careers/?page=${page + 1}">More</a>` : ''
  return `<!doctype html><html><body><nav><a href="/careers/">Careers</a> <a href="/careers/jobs/search">Search</a>
    <a href="/careers/jobs/benefits-and-more">Benefits</a> <a href="/about">About</a></nav><ul>${shown}</ul>${next}${extra}</body></html>`
}

const sitemap = (root: string, entry: string, addresses: readonly string[]) => ({
  headers: { 'content-type': 'application/xml' },
  body: `<?xml version="1.0"?><${root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${addresses.map((address) => `<${entry}><loc>${address}</loc></${entry}>`).join('')}</${root}>`,
})

/** Its careers page is `careers/`. */
export async function startCareersMock(options: CareersOptions): Promise<BoardServer> {
  const { jobs, isBroken = false, isBare = false } = options
  return await startBoardServer(({ path, query, headers }): BoardAnswer => {
    const origin = `http://${headers.host}`
    if (path === '/careers/') return { body: listPage(Number(query.get('page') ?? 1), options, origin) }
    if (path === '/sitemap.xml')
      return sitemap('sitemapindex', 'sitemap', [
        `${origin}/sitemap-1.xml`,
        `${origin}/sitemap-2.xml`,
        'https://elsewhere.test/s.xml',
      ])
    if (path === '/sitemap-2.xml') return sitemap('urlset', 'url', [`${origin}/about`])
    if (path === '/sitemap-1.xml')
      return sitemap('urlset', 'url', [
        `${origin}/about`,
        ...Array.from({ length: jobs }, (_, n) => origin + jobPath(n)),
      ])
    if (path === '/careers/jobs/benefits-and-more') return { body: '<h1>We share our flowers</h1>' }
    const n = Number(/^\/careers\/jobs\/(\d+)-grow$/.exec(path)?.[1] ?? Number.NaN)
    if (!(n >= 0 && n < jobs)) return notFound
    const own = isBare ? '' : isBroken ? script('{"@type":"JobPosting","title":"Cut o') : markup(n)
    return { body: `<!doctype html><html><head><title>Job</title></head><body><h1>Job ${n}</h1>${own}</body></html>` }
  }, options)
}
