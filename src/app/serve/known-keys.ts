/**
 * The store's keys in memory, so that no caller can make the server ask the store once for each key it invents: they are read at most
 * every two seconds, and once more for a key nobody knows yet, if the caller may still be wrong (see identify.ts).
 */
import { type ApiKey, type ApiKeys, hashOfKey } from '../../orchestrator/access/keys.ts'

/** With the interval at which open streams are looked at, below the 5 s after which a revoked key must be worth nothing. */
export const FRESH_MS = 2_000
/** How often the time of last use is written down: not for every request. */
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

  /** Among those read a moment ago. */
  async find(key: string): Promise<ApiKey | undefined> {
    if (this.#now() - this.#readAtMs > FRESH_MS) await this.#read()
    return await this.#used(this.#known.get(hashOfKey(key)))
  }

  /** Among those there are now: it may have been made since. */
  async findNew(key: string): Promise<ApiKey | undefined> {
    await this.#reading // it may have begun before the key was made
    await this.#read()
    return await this.#used(this.#known.get(hashOfKey(key)))
  }

  /** Whether the store has, or ever had, a key. */
  async haveExisted(): Promise<boolean> {
    this.#haveExisted ||= await this.#keys.haveExisted()
    return this.#haveExisted
  }

  /** Callers that come while it is being read share one reading. */
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
      await this.#keys.markUsed(key.id).catch(() => {}) // the key is right all the same
    }
    return key
  }
}
