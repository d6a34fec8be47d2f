/**
 * Sitemaps: the pages a site lists itself, read as a stream.
 *
 *   urlset › url › loc · sitemapindex › sitemap › loc (followed, up to 3 deep, no file twice) · RSS › item › link ·
 *   Atom › entry › link · plain text, a URL per line; each of them also as gzip
 *
 * What is broken costs itself, not the rest: a bad entry is left out, a bad file ends where it breaks, a bad file of an index is
 * skipped; each is reported. Entities other than XML's own five are never expanded and no DTD is obeyed.
 */
import { pipeline, Readable } from 'node:stream'
import { constants, createGunzip } from 'node:zlib'
import { ScrapeError } from '../core/errors.ts'
import { normaliseUrl } from '../core/url.ts'
import { createSitemapParser, type SitemapEntry } from './sitemap-parser.ts'

export interface SitemapPage {
  /** Normalised. */
  url: string
  /** As the file says it. */
  lastmod?: string
  /** From 0 to 1. */
  priority?: number
  /** As the file spells them. */
  images?: readonly string[]
}

/** The bytes of a file, in as many pieces as they come. Throws `ScrapeError`. */
export type FetchBytes = (url: string, signal: AbortSignal) => AsyncIterable<Uint8Array>

export interface SitemapLimits {
  /** Entries read of one file. Default 50,000, the protocol's own limit. */
  urlsMax?: number
  /** Bytes read of one file, after gzip. Default 50 MiB, the protocol's own limit. */
  bytesMax?: number
  /** An index in an index in an index is 3 deep. Default 3. */
  depthMax?: number
  /** Files read in all. Default 10,000. */
  filesMax?: number
  signal?: AbortSignal
  /** An entry that is no URL; without it, it is a problem like any other. */
  onInvalidUrl?: (text: string, error: ScrapeError, sitemap: string) => void
  /** What was left out and why. */
  onProblem?: (problem: { sitemap: string; message: string }) => void
}

const DEFAULTS = { urlsMax: 50_000, bytesMax: 50 * 1024 ** 2, depthMax: 3, filesMax: 10_000 }

/** Throws only when the first file cannot be fetched, or when it is aborted. */
export async function* readSitemap(
  url: string,
  fetchBytes: FetchBytes,
  limits: SitemapLimits = {},
): AsyncGenerator<SitemapPage, void, undefined> {
  const seen = new Set<string>([url])
  const stack: SitemapFile[] = [{ url, depth: 1 }]
  for (let file = stack.pop(); file !== undefined; file = stack.pop()) {
    const children: SitemapFile[] = []
    try {
      for await (const entries of readFile(file.url, fetchBytes, limits)) {
        for (const entry of entries) {
          limits.signal?.throwIfAborted()
          if (entry.kind === 'page') {
            const page = toPage(entry, file, limits)
            if (page !== undefined) yield page
          } else {
            const child = toChild(entry, file, seen, limits)
            if (child !== undefined) children.push(child)
          }
        }
      }
    } catch (error) {
      const isOnlyThisFile = file.depth > 1 && error instanceof ScrapeError && error.verdict !== 'halt'
      if (!isOnlyThisFile || limits.signal?.aborted === true) throw error
      limits.onProblem?.({ sitemap: file.url, message: error.message })
    }
    stack.push(...children.reverse()) // in the order of the file
  }
}

interface SitemapFile {
  url: string
  depth: number
}

/** In batches: three nested generators for every single entry cost more than parsing it. */
async function* readFile(url: string, fetchBytes: FetchBytes, limits: SitemapLimits): AsyncGenerator<SitemapEntry[]> {
  const { urlsMax, bytesMax } = { ...DEFAULTS, ...limits }
  const problem = (message: string) => limits.onProblem?.({ sitemap: url, message })
  const parser = createSitemapParser(problem)
  const signal = limits.signal ?? new AbortController().signal
  let bytes = 0
  let urls = 0
  for await (const chunk of pieces(gunzipped(fetchBytes(url, signal), problem))) {
    bytes += chunk.length
    parser.write(bytes > bytesMax ? chunk.subarray(0, chunk.length - (bytes - bytesMax)) : chunk)
    const entries = parser.take()
    yield entries.slice(0, urlsMax - urls)
    urls += entries.length
    if (urls > urlsMax) return problem(`more than ${urlsMax} entries; the rest is left out`)
    if (bytes > bytesMax) return problem(`more than ${bytesMax} bytes; the rest is left out`)
    if (parser.isStopped) return
  }
  parser.end()
  yield parser.take().slice(0, urlsMax - urls)
}

/** Whole pages come as one chunk; in pieces, the first URLs are known before the last are read. */
async function* pieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const PIECE_BYTES = 65_536
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) yield chunk.subarray(at, at + PIECE_BYTES)
  }
}

/** By its first bytes, not by its name: `.xml.gz` is as often served unpacked as `.xml` is not. */
async function* gunzipped(
  source: AsyncIterable<Uint8Array>,
  problem: (message: string) => void,
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  let isDone = false
  while (head.length < 2 && !isDone) {
    const { value, done } = await chunks.next()
    isDone = done === true
    if (value !== undefined) head = Buffer.concat([head, value])
  }
  const whole = (async function* () {
    yield head
    yield* { [Symbol.asyncIterator]: () => chunks }
  })()
  if (head[0] !== 0x1f || head[1] !== 0x8b) return yield* whole
  // Z_SYNC_FLUSH: of a file that was cut, what came is read.
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
  pipeline(Readable.from(whole, { objectMode: false }), gunzip, () => {}) // errors come out of gunzip below
  try {
    yield* gunzip
  } catch (error) {
    if (error instanceof ScrapeError || !(error instanceof Error) || !('errno' in error)) throw error
    problem(`damaged gzip (${error.message}); the rest is left out`)
  }
}

function toPage(entry: SitemapEntry, file: SitemapFile, limits: SitemapLimits): SitemapPage | undefined {
  try {
    const priority = entry.priority === undefined ? Number.NaN : Number(entry.priority)
    return {
      url: normaliseUrl(entry.loc, file.url),
      ...(entry.lastmod === undefined ? {} : { lastmod: entry.lastmod }),
      ...(priority >= 0 && priority <= 1 ? { priority } : {}),
      ...(entry.images === undefined ? {} : { images: entry.images }),
    }
  } catch (error) {
    if (limits.onInvalidUrl !== undefined) limits.onInvalidUrl(entry.loc, error as ScrapeError, file.url)
    else limits.onProblem?.({ sitemap: file.url, message: (error as ScrapeError).message })
    return undefined
  }
}

/** The next file of an index, unless it was read before or leads too far. */
function toChild(
  entry: SitemapEntry,
  file: SitemapFile,
  seen: Set<string>,
  limits: SitemapLimits,
): SitemapFile | undefined {
  const { depthMax, filesMax } = { ...DEFAULTS, ...limits }
  const url = URL.parse(entry.loc, file.url)?.href
  if (url === undefined || seen.has(url) || !/^https?:/.test(url)) return undefined
  if (file.depth >= depthMax || seen.size >= filesMax) {
    limits.onProblem?.({ sitemap: file.url, message: `not followed, too deep or too many files: ${url}` })
    return undefined
  }
  seen.add(url)
  return { url, depth: file.depth + 1 }
}
