/** The producer: finds URLs in sitemaps and lists, assigns lanes and priorities by the rules, and adds them to a run's queue. */
import { ScrapeError, toErrorRecord } from '../../core/errors.ts'
import { hostOf, normaliseUrl } from '../../core/url.ts'
import type { FoundUrl } from '../../sources/contract.ts'
import { urlLines } from '../../sources/file.ts'
import { ownHosts } from '../../sources/own-hosts.ts'
import type { Route } from '../../sources/routing.ts'
import { readSitemap } from '../../sources/sitemap.ts'
import { sitemapBytes, sitemapsNamed } from '../site/site-map.ts'
import type { OnePage } from '../tools/one-page.ts'

export interface ProduceRequest {
  chain: Pick<OnePage, 'fetcher'>
  /** Sitemaps, sitemap indexes, feeds. */
  sitemaps: readonly string[]
  /** Sites whose robots.txt lists their sitemaps; if it lists none, /sitemap.xml is read. */
  sites: readonly string[]
  urls: readonly string[]
  /** `-` is standard input. */
  urlsFile: string | undefined
  /** Omit pages whose last change is before this time. */
  sinceMs: number | undefined
  /** Sitemaps only add pages of their own site (or of the site whose robots.txt lists them), and of these hosts. */
  hosts?: readonly string[]
  /** Queue pages of any host. */
  isAnyHost?: boolean
  /** Maximum number of entries per sitemap, including all its files. */
  urlsMax?: number
  rules: Route | undefined
  signal: AbortSignal
  /** Reports which parts of the sitemaps could not be read or were skipped, and why; `foreign` counts entries for other hosts. */
  onProblem: (message: string, foreign?: number) => void
}

export async function* produced(request: ProduceRequest): AsyncGenerator<FoundUrl> {
  for await (const found of sources(request)) {
    const routing = request.rules?.(found.text)
    yield routing === undefined ? found : { ...found, ...routing }
  }
}

async function* sources(request: ProduceRequest): AsyncGenerator<FoundUrl> {
  for (const text of request.urls) yield { text, from: '--url', isNamed: true }
  if (request.urlsFile !== undefined) yield* urlLines(request.urlsFile, request.signal)
  yield* ofSitemaps(request)
}

/**
 * A sitemap that cannot be read is reported and skipped: the others may list a million pages, and a dead entry in a robots.txt is
 * not the user's mistake. If there was no other source, it becomes the error.
 */
async function* ofSitemaps(request: ProduceRequest): AsyncGenerator<FoundUrl> {
  const { urls, urlsFile, signal, onProblem } = request
  let isAnyRead = urls.length > 0 || urlsFile !== undefined
  let failure: ScrapeError | undefined
  for await (const { sitemap, site } of sitemapsOf(request)) {
    try {
      yield* ofSitemap(sitemap, site, request)
      isAnyRead = true
    } catch (error) {
      if (!(error instanceof ScrapeError) || error.verdict === 'halt' || signal.aborted) throw error
      failure ??= error
      onProblem(`${sitemap} cannot be read: ${error.message} (${error.code})`)
    }
  }
  if (failure !== undefined && !isAnyRead) throw failure
}

/**
 * Yields each sitemap with its site: a robots.txt may list a sitemap on another host, which then contains the pages of that site.
 */
async function* sitemapsOf({ sitemaps, sites, chain, signal }: ProduceRequest) {
  for (const sitemap of sitemaps) yield { sitemap, site: sitemap }
  for (const site of sites) {
    const named = await sitemapsNamed(chain, normaliseUrl(site), signal)
    const files = named.length > 0 ? named : [new URL('/sitemap.xml', site).href]
    for (const sitemap of files) yield { sitemap, site }
  }
}

async function* ofSitemap(sitemap: string, site: string, request: ProduceRequest): AsyncGenerator<FoundUrl> {
  const { chain, sitemaps, sites, sinceMs, signal, onProblem, hosts = [], isAnyHost = false, urlsMax } = request
  const named = new Set([...sitemaps, ...sites].map((text) => hostOf(normaliseUrl(text))))
  const entries = readSitemap(normaliseUrl(sitemap), sitemapBytes(chain), {
    signal,
    isOwn: ownHosts({ sites: [normaliseUrl(site)], more: hosts, isAny: isAnyHost }),
    urlsMax,
    onProblem: ({ sitemap: at, message, foreign }) => onProblem(`${at}: ${message}`, foreign),
  })
  for await (const entry of entries) {
    if ('error' in entry) {
      yield { text: entry.text, from: entry.sitemap, isNamed: false, error: toErrorRecord(entry.error) }
      continue
    }
    const { url, lastmod, priority } = entry
    if (sinceMs !== undefined && Date.parse(lastmod ?? '') < sinceMs) continue
    yield {
      text: url,
      from: sitemap,
      isNamed: named.has(hostOf(url)),
      // 0.5 is the default of a page without a priority: no more and no less urgent than others.
      priority: priority === undefined ? undefined : Math.round(priority * 10) - 5,
    }
  }
}
