/**
 * Sitemaps: the pages that a site itself lists, read as a stream.
 *
 *   urlset › url › loc · sitemapindex › sitemap › loc (followed, up to 3 deep, no file twice) · RSS › item › link ·
 *   Atom › entry › link · plain text, a URL per line; each of them also as gzip
 *
 * Errors stay local: a bad entry is returned as such, a bad file ends where it breaks, a bad file of an index is skipped; each is
 * reported. Entities other than XML's own five are not expanded and DTDs are ignored. However hostile a file is, other work runs
 * between two chunks of it. Pages of hosts that were not requested are skipped and counted.
 */
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { ScrapeError } from '../core/errors.ts'
import { hostOf, normaliseUrl } from '../core/url.ts'
import { ForeignHosts } from './own-hosts.ts'
import { createSitemapParser, type SitemapEntry } from './sitemap-parser.ts'

export interface SitemapPage {
  /** Normalised. */
  url: string
  /** As written in the file. */
  lastmod?: string
  /** From 0 to 1. */
  priority?: number
  /** As written in the file. */
  images?: readonly string[]
}

/** An entry that is not the URL of a page. */
interface InvalidEntry {
  /** As written in the file. */
  text: string
  /** The file it is in. */
  sitemap: string
  error: ScrapeError
}

/** The bytes of a file, in chunks. Throws `ScrapeError`. */
export type FetchBytes = (url: string, signal: AbortSignal) => AsyncIterable<Uint8Array>

export interface SitemapLimits {
  /**
   * Entries read in total. Default 1,000,000. The protocol allows 50,000 per file, and some sites exceed that: each file is read
   * until this limit is reached.
   */
  urlsMax?: number
  /** Bytes read from one file, after gzip. Default 50 MiB, the protocol's own limit. */
  bytesMax?: number
  /** An index in an index in an index is 3 deep. Default 3. */
  depthMax?: number
  /** Files read in total. Default 10,000. */
  filesMax?: number
  /** Which hosts may have pages, and files in addition to those on the host of the index. Default: any host. */
  isOwn?: (host: string) => boolean
  signal?: AbortSignal
  /** Called with what was skipped and why. */
  onProblem?: (problem: SitemapProblem) => void
}

export interface SitemapProblem {
  sitemap: string
  message: string
  /** Entries that were skipped because of their host. */
  foreign?: number
}

const DEFAULTS = { urlsMax: 1_000_000, bytesMax: 50 * 1024 ** 2, depthMax: 3, filesMax: 10_000 }

/** In the order of the files, including bad entries. Throws only if the first file cannot be fetched, or when aborted. */
export async function* readSitemap(
  url: string,
  fetchBytes: FetchBytes,
  limits: SitemapLimits = {},
): AsyncGenerator<SitemapPage | InvalidEntry, void, undefined> {
  const seen = new Set<string>([withoutFragment(new URL(url))])
  const stack: SitemapFile[] = [{ url, depth: 1 }]
  const { isOwn = () => true } = limits
  const foreign = new ForeignHosts()
  let room = limits.urlsMax ?? DEFAULTS.urlsMax
  for (let file = stack.pop(); file !== undefined; file = stack.pop()) {
    const children: SitemapFile[] = []
    try {
      for await (const entries of readFile(file.url, fetchBytes, { ...limits, urlsMax: room })) {
        room -= entries.length
        for (const entry of entries) {
          limits.signal?.throwIfAborted()
          if (entry.kind === 'page') {
            const page = toPage(entry, file)
            if ('error' in page || isOwn(hostOf(page.url))) yield page
            else foreign.add(hostOf(page.url))
          } else {
            const child = toChild(entry, file, seen, limits)
            if (child === undefined) continue
            if (isOwn(hostOf(child.url)) || hostOf(child.url) === hostOf(file.url)) children.push(child)
            else foreign.add(hostOf(child.url))
          }
        }
      }
    } catch (error) {
      const isOnlyThisFile = file.depth > 1 && error instanceof ScrapeError && error.verdict !== 'halt'
      if (!isOnlyThisFile || limits.signal?.aborted === true) throw error
      limits.onProblem?.({ sitemap: file.url, message: error.message })
    }
    stack.push(...children.reverse()) // in the order of the file
    if (room <= 0 && stack.length > 0) {
      limits.onProblem?.({ sitemap: url, message: `${stack.length} files not read: the limit on entries is reached` })
      break
    }
  }
  const left = foreign.text()
  if (left !== undefined) limits.onProblem?.({ sitemap: url, message: left, foreign: foreign.total })
}

interface SitemapFile {
  url: string
  depth: number
}

/** In batches: three nested generators per entry cost more than parsing it. */
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
    if (urls > urlsMax) return problem(`more than ${urlsMax} entries; the rest is skipped`)
    if (bytes > bytesMax) return problem(`more than ${bytesMax} bytes; the rest is skipped`)
    if (parser.isStopped) return
  }
  parser.end()
  yield parser.take().slice(0, urlsMax - urls)
}

const PIECE_BYTES = 65_536

/**
 * Whole pages come as one chunk; in smaller pieces, the first URLs are known before the last are read. Without yielding, a whole
 * chunk would be parsed in one run of microtasks: minutes in which no timer, socket or signal of the process is served.
 */
async function* pieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      yield chunk.subarray(at, at + PIECE_BYTES)
      await turn()
    }
  }
}

/** Detected by its first bytes, not its name: `.xml.gz` is as often served unpacked as `.xml` is packed. */
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
  yield* unpacked(whole, problem)
}

/** gzip expands at most a thousandfold: no bomb has more than 17 MiB unpacked at once. */
const PACKED_BYTES = 16_384

/**
 * Does not use the stream's iterator: it discards its buffer if the file turns out to be truncated or damaged, and in tolerant
 * mode (`Z_SYNC_FLUSH`) it does not report that.
 */
async function* unpacked(
  source: AsyncIterable<Uint8Array>,
  problem: (message: string) => void,
): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const ready: Uint8Array[] = []
  gunzip.on('data', (chunk: Uint8Array) => ready.push(chunk))
  const over = once(gunzip, 'end') // or a failure; comes before the end of the file if something else follows the gzip data
  over.catch(() => {}) // awaited below, unless the caller stops early
  try {
    for await (const chunk of source) {
      for (let at = 0; at < chunk.length && !gunzip.readableEnded; at += PACKED_BYTES) {
        const written = Promise.withResolvers<unknown>()
        gunzip.write(chunk.subarray(at, at + PACKED_BYTES), written.resolve)
        await Promise.race([written.promise, over]) // after the end, the callback is never called
        yield* ready.splice(0)
      }
      if (gunzip.readableEnded) return
    }
    gunzip.end()
    await over
    yield* ready.splice(0)
  } catch (error) {
    if (error !== gunzip.errored) throw error
    yield* ready.splice(0)
    problem(`damaged or cut gzip (${(error as Error).message}); the rest is skipped`)
  } finally {
    gunzip.destroy()
  }
}

function toPage(entry: SitemapEntry, file: SitemapFile): SitemapPage | InvalidEntry {
  try {
    const priority = entry.priority === undefined ? Number.NaN : Number(entry.priority)
    return {
      url: normaliseUrl(entry.loc, file.url),
      ...(entry.lastmod === undefined ? {} : { lastmod: entry.lastmod }),
      ...(priority >= 0 && priority <= 1 ? { priority } : {}),
      ...(entry.images === undefined ? {} : { images: entry.images }),
    }
  } catch (error) {
    return { text: entry.loc, sitemap: file.url, error: error as ScrapeError }
  }
}

function withoutFragment(url: URL): string {
  url.hash = ''
  return url.href
}

/** The next file of an index, unless it was read before or exceeds the limits. */
function toChild(
  entry: SitemapEntry,
  file: SitemapFile,
  seen: Set<string>,
  limits: SitemapLimits,
): SitemapFile | undefined {
  const { depthMax, filesMax } = { ...DEFAULTS, ...limits }
  const parsed = URL.parse(entry.loc, file.url)
  const url = parsed === null ? '' : withoutFragment(parsed)
  if (seen.has(url) || !/^https?:/.test(url)) return undefined
  if (file.depth >= depthMax || seen.size >= filesMax) {
    limits.onProblem?.({ sitemap: file.url, message: `not followed, too deep or too many files: ${url}` })
    return undefined
  }
  seen.add(url)
  return { url, depth: file.depth + 1 }
}
