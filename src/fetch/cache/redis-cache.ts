/**
 * Response cache in Redis: `content:URL`, recently fetched pages for all workers and runs on one Redis.
 *
 * Redis itself expires stale pages, by its own clock, so the workers' clocks need not agree. While Redis is down, every page is
 * fetched. Best used with a separate database or server, with `maxmemory` and `allkeys-lru`: evicting data, which a frontier
 * must never do, is right for a cache.
 */
import type { Page } from '../../core/page.ts'
import { OptionalRedis, type OptionalRedisOptions } from '../../drivers/redis/optional.ts'
import type { FetchRequest } from '../contract.ts'
import { CACHE_FRESH_MS, cacheKeyOf, isKeepable, type RemoteCache, toCachedPage, toStoredPage } from './cache.ts'
import { decodePage, encodePage } from './redis-cache-value.ts'

export interface RedisCacheOptions extends OptionalRedisOptions {
  /** Default 60 s. */
  freshMs?: number
  /** Larger values are not stored; counts the compressed body, the headers and everything else. Default 2 MiB. */
  valueBytesMax?: number
  /** Larger bodies are neither stored nor accepted. Default 16 MiB. */
  bodyBytesMax?: number
  now?: () => number
}

/** Total size of bodies being written to Redis; beyond it, pages are not cached. */
const WRITING_BYTES_MAX = 32 * 1024 ** 2

/** Throws `E_SERVICE` if Redis cannot be reached now; later outages are tolerated. */
export async function openRedisCache(options: RedisCacheOptions): Promise<RemoteCache> {
  const redis = new OptionalRedis('the cache’s Redis', options)
  await redis.open()
  return new RedisCache(redis, options)
}

class RedisCache implements RemoteCache {
  readonly #redis: OptionalRedis
  readonly #freshMs: number
  readonly #valueBytesMax: number
  readonly #bodyBytesMax: number
  readonly #now: () => number
  readonly #writes = new Set<Promise<void>>()
  #writingBytes = 0

  constructor(redis: OptionalRedis, options: RedisCacheOptions) {
    this.#redis = redis
    this.#freshMs = options.freshMs ?? CACHE_FRESH_MS
    this.#valueBytesMax = options.valueBytesMax ?? 2 * 1024 ** 2
    this.#bodyBytesMax = options.bodyBytesMax ?? 16 * 1024 ** 2
    this.#now = options.now ?? Date.now
  }

  async get(request: FetchRequest): Promise<Page | undefined> {
    const value = await this.#redis.ask((connection) => connection.getBuffer(keyOf(request)))
    if (value === undefined || value === null) return undefined
    const page = await decodePage(value, this.#bodyBytesMax)
    // A page from the future comes from a clock ahead of ours; Redis expires it in time anyway.
    if (page === undefined || this.#now() - page.fetchedAtMs >= this.#freshMs) return undefined
    return toCachedPage(request, page)
  }

  set(request: FetchRequest, page: Page): void {
    const bytes = page.body.length
    if (!isKeepable(request, page) || bytes > this.#bodyBytesMax) return
    if (this.#redis.isAway || this.#writingBytes + bytes > WRITING_BYTES_MAX) return
    const freshMs = Math.floor(Math.min(this.#freshMs, page.fetchedAtMs + this.#freshMs - this.#now()))
    if (freshMs < 1) return
    this.#writingBytes += bytes
    const write = this.#write(keyOf(request), page, freshMs).finally(() => {
      this.#writingBytes -= bytes
      this.#writes.delete(write)
    })
    this.#writes.add(write)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#writes)
    this.#redis.close()
  }

  async #write(key: string, page: Page, freshMs: number): Promise<void> {
    const value = await encodePage(toStoredPage(page), this.#valueBytesMax)
    if (value !== undefined) await this.#redis.ask((connection) => connection.set(key, value, 'PX', freshMs))
  }
}

function keyOf(request: FetchRequest): string {
  return `content:${cacheKeyOf(request)}`
}
