/** Traps and sitemaps: whole sites that never end, each read by one command. */
import { gzipSync } from 'node:zlib'
import { type Behaviour, type HostileSite, html, openHostileSite, respond } from '../../test/site/hostile.ts'

export interface EndlessSite {
  readonly family: 'traps' | 'sitemaps'
  readonly name: string
  /** Maximum number of requests that the command may send. */
  readonly requestsMax: number
  /** The response to each path. */
  readonly answer: Behaviour
  /** Options of `sluice crawl` or `sluice map`. */
  readonly args?: readonly string[]
  /** Minimum number of URLs that `sluice map` must find. */
  readonly urlsMin?: number
}

const link = (href: string) => `<a href="${href}">next</a>`
const page =
  (make: (request: { path: string; query: URLSearchParams; n: number }, site: HostileSite) => string): Behaviour =>
  (socket, request, site) => {
    const path = request.target.split('?')[0]!
    if (path === '/robots.txt') return respond(404)(socket, request, site)
    return html(make({ path, query: request.query, n: site.requests.length }, site))(socket, request, site)
  }

const xml =
  (files: Record<string, (site: HostileSite) => string | Buffer>): Behaviour =>
  (socket, request, site) => {
    const file = files[request.target.split('?')[0]!]
    return (file === undefined ? respond(404) : respond(200, file(site), { 'Content-Type': 'application/xml' }))(
      socket,
      request,
      site,
    )
  }
const index = (urls: readonly string[]) =>
  `<?xml version="1.0"?><sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`
const urlset = (urls: readonly string[]) =>
  `<?xml version="1.0"?><urlset>${urls.map((url) => `<url><loc>${url}</loc></url>`).join('')}</urlset>`
const paths = (site: HostileSite, count: number) => Array.from({ length: count }, (_, i) => `${site.origin}/p/${i}`)

export const ENDLESS_SITES: readonly EndlessSite[] = [
  {
    family: 'traps',
    name: 'endless paths',
    requestsMax: 200,
    answer: page(({ path }) => `<h1>deep</h1>${link(`${path === '/' ? '' : path}/deeper/`)}`),
  },
  {
    family: 'traps',
    name: 'session ids',
    requestsMax: 200,
    answer: page(({ n }) => `<h1>shop</h1>${link(`/?sid=${n}a`)}${link(`/?sid=${n}b`)}`),
  },
  {
    family: 'traps',
    name: 'calendar',
    requestsMax: 200,
    answer: page(({ query }) => `<h1>no events</h1>${link(`/?month=${Number(query.get('month') ?? 0) + 1}`)}`),
  },
  {
    family: 'traps',
    name: 'random parameters',
    requestsMax: 200,
    answer: page(({ n }) => `<h1>list ${n}</h1>${[1, 2, 3].map((i) => link(`/list?x${n * i}=${n}`)).join('')}`),
  },
  {
    family: 'sitemaps',
    name: 'index that names itself',
    requestsMax: 20,
    answer: xml({ '/sitemap.xml': (site) => index([`${site.origin}/sitemap.xml`, `${site.origin}/a.xml`]), '/a.xml': (site) => urlset(paths(site, 10)) }),
    urlsMin: 10,
  },
  {
    family: 'sitemaps',
    name: 'gzip bomb',
    requestsMax: 20,
    answer: xml({ '/sitemap.xml': () => gzipSync(Buffer.alloc(200_000_000)) }),
  },
  {
    family: 'sitemaps',
    name: 'entity bomb',
    requestsMax: 20,
    answer: xml({ '/sitemap.xml': (site) => `<!DOCTYPE x [<!ENTITY a "${'a'.repeat(1000)}"><!ENTITY b "${'&a;'.repeat(1000)}"><!ENTITY c SYSTEM "file:///etc/passwd">]>${urlset([`${site.origin}/&b;&c;`, ...paths(site, 10)])}` }),
    urlsMin: 10,
  },
  {
    family: 'sitemaps',
    name: 'bad bytes in the middle',
    requestsMax: 20,
    answer: xml({ '/sitemap.xml': (site) => urlset([...paths(site, 5), '\x00\xff<<<', ...paths(site, 10)]) }),
    urlsMin: 10,
  },
  {
    family: 'sitemaps',
    name: '60,000 URLs',
    requestsMax: 20,
    args: ['--max', '100000'],
    answer: xml({ '/sitemap.xml': (site) => urlset(paths(site, 60_000)) }),
    urlsMin: 60_000,
  },
] // biome-ignore format: a table

/** Every path responds alike. */
export async function openEndlessSite({ answer }: EndlessSite): Promise<HostileSite> {
  return await openHostileSite({ answer })
}
