/**
 * The store's keys, cached in memory so that made-up keys do not cost a query each. They are read at most every two seconds, and
 * once more for an unknown key if the caller has tries left (see identify.ts).
 */
import { type ApiKey, type ApiKeys, hashOfKey } from '../../../server/access/keys.ts'

/** Together with the interval of the check on open streams, this is below the 5 s after which a revoked key must not work. */
export const FRESH_MS = 2_000
/** How often the time of last use is stored, instead of on every request. */
const USED_EVERY_MS = 60_000

export class KnownKeys {
  readonly #keys: ApiKeys
  readonly #now: () => number
  #known: ReadonlyMap<string, ApiKey> = new Map()
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #haveExisted = false
  readonly #usedAtMs = new Map<string, number>()

  constructor(keys: ApiKeys, now: () => number = () => performance.now()) {
    this.#keys = keys
    this.#now = now
  }

  /** Searches the cached keys. */
  async find(key: string): Promise<ApiKey | undefined> {
    if (this.#now() - this.#readAtMs > FRESH_MS) await this.#read()
    return await this.#used(this.#known.get(hashOfKey(key)))
  }

  /** Searches the keys in the store now: the key may just have been created. */
  async findNew(key: string): Promise<ApiKey | undefined> {
    await this.#reading // it may have started before the key was created
    await this.#read()
    return await this.#used(this.#known.get(hashOfKey(key)))
  }

  /** Whether the store has, or ever had, a key. */
  async haveExisted(): Promise<boolean> {
    this.#haveExisted ||= await this.#keys.haveExisted()
    return this.#haveExisted
  }

  /** Concurrent callers share one query. */
  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readNow(): Promise<void> {
    const atMs = this.#now()
    this.#known = await this.#keys.inUse()
    this.#readAtMs = atMs
    const ids = new Set([...this.#known.values()].map(({ id }) => id))
    for (const id of this.#usedAtMs.keys()) if (!ids.has(id)) this.#usedAtMs.delete(id)
  }

  async #used(key: ApiKey | undefined): Promise<ApiKey | undefined> {
    if (key === undefined) return undefined
    const nowMs = this.#now()
    if (nowMs - (this.#usedAtMs.get(key.id) ?? Number.NEGATIVE_INFINITY) > USED_EVERY_MS) {
      this.#usedAtMs.set(key.id, nowMs)
      await this.#keys.markUsed(key.id).catch(() => {}) // the key is valid anyway
    }
    return key
  }
}
