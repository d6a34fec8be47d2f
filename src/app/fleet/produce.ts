/** The producer: finds URLs in sitemaps and lists, gives each its lane and priority by the rules, and feeds them to a run. */
import { toErrorRecord } from '../../core/errors.ts'
import { normaliseUrl } from '../../core/url.ts'
import type { FoundUrl } from '../../sources/contract.ts'
import { urlLines } from '../../sources/file.ts'
import type { Route } from '../../sources/routing.ts'
import { readSitemap } from '../../sources/sitemap.ts'
import type { OnePage } from '../author/one-page.ts'
import { sitemapsNamed } from '../site/site-map.ts'

export interface ProduceRequest {
  chain: Pick<OnePage, 'fetcher'>
  /** Sitemaps, indexes of sitemaps, feeds. */
  sitemaps: readonly string[]
  /** Sites whose robots.txt names their sitemaps; without such a line /sitemap.xml. */
  sites: readonly string[]
  urls: readonly string[]
  /** `-` is standard input. */
  urlsFile: string | undefined
  /** Pages that say they were last changed before this are left out. */
  sinceMs: number | undefined
  rules: Route | undefined
  signal: AbortSignal
  onProblem: (message: string) => void
}

export async function* produced(request: ProduceRequest): AsyncGenerator<FoundUrl> {
  for await (const found of sources(request)) {
    const routing = request.rules?.(found.text)
    yield routing === undefined ? found : { ...found, ...routing }
  }
}

async function* sources(request: ProduceRequest): AsyncGenerator<FoundUrl> {
  for (const text of request.urls) yield { text, from: '--url' }
  if (request.urlsFile !== undefined) yield* urlLines(request.urlsFile, request.signal)
  for (const sitemap of request.sitemaps) yield* ofSitemap(sitemap, request)
  for (const site of request.sites) {
    const named = await sitemapsNamed(request.chain, normaliseUrl(site), request.signal)
    for (const sitemap of named.length > 0 ? named : [new URL('/sitemap.xml', site).href])
      yield* ofSitemap(sitemap, request)
  }
}

async function* ofSitemap(
  sitemap: string,
  { chain, sinceMs, signal, onProblem }: ProduceRequest,
): AsyncGenerator<FoundUrl> {
  async function* fetchBytes(url: string, fetchSignal: AbortSignal) {
    yield (await chain.fetcher.fetch({ url: normaliseUrl(url) }, fetchSignal)).body
  }
  const invalid: FoundUrl[] = []
  const pages = readSitemap(normaliseUrl(sitemap), fetchBytes, {
    signal,
    onInvalidUrl: (text, error, from) => void invalid.push({ text, from, error: toErrorRecord(error) }),
    onProblem: ({ sitemap: at, message }) => onProblem(`${at}: ${message}`),
  })
  for await (const { url, lastmod, priority } of pages) {
    yield* invalid.splice(0)
    if (sinceMs !== undefined && Date.parse(lastmod ?? '') < sinceMs) continue
    // 0.5 is what a page has that says nothing: no more and no less urgent than others.
    yield { text: url, from: sitemap, ...(priority === undefined ? {} : { priority: Math.round(priority * 10) - 5 }) }
  }
  yield* invalid
}
