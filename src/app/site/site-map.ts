/** The URLs of a site as listed by the site itself: sitemaps named in robots.txt, /sitemap.xml, else the links on the page. */
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import { normaliseUrl } from '../../core/url.ts'
import { allLinks } from '../../extract/html.ts'
import { ANY_CONTENT } from '../../fetch/http/accept.ts'
import { ownHosts } from '../../sources/own-hosts.ts'
import { type FetchBytes, readSitemap, type SitemapPage, type SitemapProblem } from '../../sources/sitemap.ts'
import { errorJson, type OnePage, withFlag } from '../tools/one-page.ts'

interface SiteMapRequest {
  chain: OnePage
  /** Normalised. */
  url: string
  /** Maximum number of URLs. */
  max: number
  /** Also list sitemap entries for other hosts. Default false. */
  isAnyHost?: boolean
  signal: AbortSignal
}

/** Where URLs came from, in the order queried. */
interface MapSource {
  url: string
  kind: 'sitemap' | 'page'
  urls: number
  error: ReturnType<typeof errorJson> | null
}

export interface SiteMap {
  urls: SitemapPage[]
  sources: MapSource[]
  /** There are more than `max`. */
  isCut: boolean
  /** Sitemap entries that were skipped because they are for other hosts. */
  otherHosts: number
  /** The first hundred omissions from the sitemaps, with the reason. */
  problems: SitemapProblem[]
  /** Why there are no URLs: the failure of the last source. */
  error: ScrapeError | undefined
}

const PROBLEMS_MAX = 100
const SITEMAPS_MAX = 100

export async function mapSite(request: SiteMapRequest): Promise<SiteMap> {
  const { chain, url, signal } = request
  const map: SiteMap = { urls: [], sources: [], isCut: false, otherHosts: 0, problems: [], error: undefined }
  const seen = new Set<string>()
  const named = await sitemapsNamed(chain, url, signal)
  for (const sitemap of named) if (!map.isCut) await addSitemap(map, seen, sitemap, request)
  if (map.urls.length === 0) {
    const usual = new URL('/sitemap.xml', url).href
    if (!named.includes(usual)) await addSitemap(map, seen, usual, request)
  }
  if (map.urls.length === 0) await addPage(map, seen, request)
  if (map.urls.length > 0) map.error = undefined
  return map
}

/** Empty if robots.txt cannot be read; whether the site's pages may be read is decided page by page. */
export async function sitemapsNamed(
  { fetcher }: Pick<OnePage, 'fetcher'>,
  url: string,
  signal: AbortSignal,
): Promise<string[]> {
  try {
    const rules = await fetcher.robots?.rules(url, signal)
    const urls = (rules?.sitemaps ?? []).map((text) => URL.parse(text, url)?.href)
    return [...new Set(urls.filter((one) => one !== undefined))].slice(0, SITEMAPS_MAX)
  } catch (error) {
    if (error instanceof ScrapeError && error.verdict !== 'halt') return []
    throw error
  }
}

/** Sitemaps are fetched like pages, under the same rules: robots.txt, rate limits, private addresses, body size. */
export function sitemapBytes({ fetcher }: Pick<OnePage, 'fetcher'>): FetchBytes {
  return async function* (url, signal) {
    yield (await fetcher.fetch({ url: normaliseUrl(url), accept: ANY_CONTENT }, signal)).body
  }
}

async function addSitemap(map: SiteMap, seen: Set<string>, sitemap: string, request: SiteMapRequest): Promise<void> {
  const { chain, url, max, signal, isAnyHost = false } = request
  const isOwn = ownHosts({ sites: [url], isAny: isAnyHost })
  const source: MapSource = { url: sitemap, kind: 'sitemap', urls: 0, error: null }
  map.sources.push(source)
  const onProblem = (problem: SitemapProblem) => {
    map.otherHosts += problem.foreign ?? 0
    if (map.problems.length < PROBLEMS_MAX) map.problems.push(problem)
  }
  await settle(map, source, async () => {
    for await (const page of readSitemap(sitemap, sitemapBytes(chain), { signal, isOwn, onProblem })) {
      if ('error' in page) {
        onProblem({ sitemap: page.sitemap, message: page.error.message })
        continue
      }
      if (seen.has(page.url)) continue
      if (map.urls.length >= max) {
        map.isCut = true
        return
      }
      seen.add(page.url)
      map.urls.push(page)
      source.urls++
    }
  })
}

async function addPage(map: SiteMap, seen: Set<string>, { chain, url, max, signal }: SiteMapRequest): Promise<void> {
  const source: MapSource = { url, kind: 'page', urls: 0, error: null }
  map.sources.push(source)
  await settle(map, source, async () => {
    const page = await chain.fetcher.fetch({ url }, signal)
    const { host } = new URL(page.url)
    const links = /html/.test(page.contentType || 'html') ? allLinks(page.text, page.url) : []
    for (const link of [page.url, ...links.map((one) => one.url)]) {
      const found = normalised(link)
      if (found === undefined || new URL(found).host !== host || seen.has(found)) continue
      if (map.urls.length >= max) {
        map.isCut = true
        return
      }
      seen.add(found)
      map.urls.push({ url: found })
      source.urls++
    }
  })
}

async function settle(map: SiteMap, source: MapSource, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (thrown) {
    const error = toScrapeError(thrown, 'E_CONNECTION', { url: source.url })
    if (error.verdict === 'halt') throw error
    map.error = withFlag(error)
    source.error = errorJson(map.error)
  }
}

function normalised(url: string): string | undefined {
  try {
    return normaliseUrl(url)
  } catch {
    return undefined
  }
}
