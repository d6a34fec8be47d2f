/** Drops what was seen before, by key, a batch at a time. Exact within the `capacity` most recently seen keys. */
import { LruSet } from '../core/lru-set.ts'

export interface DedupOptions<T> {
  /** How many keys are remembered; default 100,000. */
  capacity?: number
  keyOf: (value: T) => string
}

export class Dedup<T> {
  readonly #seen: LruSet
  readonly #keyOf: (value: T) => string
  readonly #keys: string[] = []
  #isNew = new Uint8Array(64)
  #duplicates = 0

  constructor({ capacity = 100_000, keyOf }: DedupOptions<T>) {
    this.#seen = new LruSet(capacity)
    this.#keyOf = keyOf
  }

  /** How many values were dropped so far. */
  get duplicates(): number {
    return this.#duplicates
  }

  /** Leaves the values not seen before in `batch`, in order, and returns that same array. */
  keepNew(batch: T[]): T[] {
    const count = batch.length
    const keys = this.#keys
    keys.length = 0
    for (let i = 0; i < count; i++) keys.push(this.#keyOf(batch[i]!))
    if (this.#isNew.length < count) this.#isNew = new Uint8Array(count)
    const isNew = this.#isNew
    const fresh = this.#seen.addBatch(keys, isNew)
    if (fresh === count) return batch
    this.#duplicates += count - fresh
    let kept = 0
    for (let i = 0; i < count; i++) if (isNew[i] === 1) batch[kept++] = batch[i]!
    batch.length = kept
    return batch
  }
}
