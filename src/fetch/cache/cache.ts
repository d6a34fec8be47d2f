/**
 * Response cache: answers a repeated request with the page fetched a moment ago.
 *
 * For repeated runs while a scraper is being written, and for pages that many tasks share. It ignores Cache-Control: users who
 * turn it on decide how old a page may be. Only plain successful pages are kept, and pages that belong to one visitor (cookies
 * set, credentials sent) only under that visitor's session.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Page, PageTimings } from '../../core/page.ts'
import type { FetchRequest } from '../contract.ts'
import { decodeText } from '../http/charset.ts'

export interface ResponseCache extends Disposable {
  /** A page that is not older than `freshMs`, with `fromCache: true`. */
  get(request: FetchRequest): Page | undefined
  /** Stores the page if it may be cached. */
  set(request: FetchRequest, page: Page): void
}

/** A cache on the network, shared by a fleet. */
export interface RemoteCache extends AsyncDisposable {
  /** As `ResponseCache.get`. Never rejects: if the cache does not answer, there is no page. */
  get(request: FetchRequest): Promise<Page | undefined>
  /** Returns at once. */
  set(request: FetchRequest, page: Page): void
}

export interface CacheOptions {
  /** Default 60 s. */
  freshMs?: number
  /** The oldest pages are evicted first. Default 64 MiB in memory, 1 GiB in a file. */
  bytesMax?: number
  now?: () => number
}

/** Where pages are stored; `createCache` decides which ones. */
interface CacheStore extends Disposable {
  get(key: string): StoredPage | undefined
  set(key: string, page: StoredPage): void
}

/** A page without the parts that can be derived from the rest. */
export type StoredPage = Pick<Page, 'url' | 'redirects' | 'status' | 'contentType' | 'charset' | 'fetchedAtMs'> & {
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: Buffer
  readonly wireBytes: number
  readonly timings: PageTimings
}

export const CACHE_FRESH_MS = 60_000

export function createMemoryCache(options: CacheOptions = {}): ResponseCache {
  const pages = new LRUCache<string, StoredPage>({
    maxSize: options.bytesMax ?? 64 * 1024 ** 2,
    sizeCalculation: (page) => page.body.length + 2000, // headers and URL, roughly
  })
  return createCache(
    {
      get: (key) => pages.get(key),
      set: (key, page) => void pages.set(key, page),
      [Symbol.dispose]: () => pages.clear(),
    },
    options,
  )
}

export function createCache(store: CacheStore, options: CacheOptions): ResponseCache {
  const now = options.now ?? Date.now
  const freshMs = options.freshMs ?? CACHE_FRESH_MS
  return {
    get(request) {
      const page = store.get(cacheKeyOf(request))
      if (page === undefined) return undefined
      const ageMs = now() - page.fetchedAtMs
      return ageMs >= 0 && ageMs < freshMs ? toCachedPage(request, page) : undefined
    },
    set(request, page) {
      if (isKeepable(request, page)) store.set(cacheKeyOf(request), toStoredPage(page))
    },
    [Symbol.dispose]: () => store[Symbol.dispose](),
  }
}

export function toStoredPage(page: Page): StoredPage {
  const { url, redirects, status, contentType, charset, fetchedAtMs, headers, body, timings } = page
  const wireBytes = page.bytes.wire
  return { url, redirects, status, contentType, charset, fetchedAtMs, headers, body, timings, wireBytes }
}

export function toCachedPage(request: FetchRequest, stored: StoredPage): Page {
  return new CachedPage(request.url, stored)
}

export function isKeepable(request: FetchRequest, page: Page): boolean {
  if (page.status !== 200 || page.fromCache) return false
  if (request.session !== undefined) return true
  const isPersonal = request.headers?.['authorization'] !== undefined || request.headers?.['cookie'] !== undefined
  return !isPersonal && page.headers['set-cookie'] === undefined
}

/** Same URL, same session, same extra headers (language, credentials): nothing else changes the request. */
export function cacheKeyOf({ url, session, headers }: FetchRequest): string {
  if (session === undefined && headers === undefined) return url
  const sorted = Object.entries(headers ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  return `${url} ${hash('sha256', JSON.stringify([session ?? null, sorted]), 'base64url')}`
}

class CachedPage implements Page {
  readonly requestedUrl: string
  readonly fromCache = true
  readonly #stored: StoredPage
  #text: string | undefined

  constructor(requestedUrl: string, stored: StoredPage) {
    this.requestedUrl = requestedUrl
    this.#stored = stored
  }

  get url(): string {
    return this.#stored.url
  }

  get redirects(): readonly string[] {
    return this.#stored.redirects
  }

  get status(): number {
    return this.#stored.status
  }

  get headers(): Readonly<Record<string, string | string[]>> {
    return this.#stored.headers
  }

  get body(): Buffer {
    return this.#stored.body
  }

  get contentType(): string {
    return this.#stored.contentType
  }

  get charset(): string {
    return this.#stored.charset
  }

  get text(): string {
    this.#text ??= decodeText(this.body, this.charset)
    return this.#text
  }

  get bytes(): { readonly wire: number; readonly decoded: number } {
    return { wire: this.#stored.wireBytes, decoded: this.body.length }
  }

  get timings(): PageTimings {
    return this.#stored.timings
  }

  get fetchedAtMs(): number {
    return this.#stored.fetchedAtMs
  }

  /** The cache keeps the body. */
  release(): void {
    this.#text = undefined
  }
}
