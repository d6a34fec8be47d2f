/**
 * A set of strings that remembers the `capacity` most recently added ones by a 128-bit fingerprint of each.
 *
 * It does not keep the strings, so that none outlives its page: kept ones were moved to the old generation one by one, which cost
 * a fifth of the pipeline's time, and a key cut out of a page (`html.slice(…)`) held that whole page in memory. The price is that
 * "known" is only as certain as 128 bits are: among n keys the chance of one false answer is about n²/2^129, that is 10^-29 for
 * the 100,000 of a pipeline, less than that of a memory error. The seed is drawn once per process. A site that constructs two
 * keys with one fingerprint only hides the second of its own pages, which it can do by not linking it.
 *
 * A table (open addressing, linear probing) finds the entry by the first 32 bits, the other 96 confirm it, and a doubly linked
 * list in typed arrays keeps the order.
 */

const EMPTY = -1

export class LruSet {
  readonly capacity: number
  #size = 0
  readonly #mask: number
  /** Two numbers per slot: the first word of the fingerprint, then the entry (EMPTY: none). */
  readonly #table: Int32Array
  /** Four numbers per entry. */
  readonly #prints: Int32Array
  readonly #older: Int32Array
  readonly #newer: Int32Array
  #newest = EMPTY
  #oldest = EMPTY
  /** The fingerprints of a batch. */
  #batch = new Int32Array(64 * 4)
  /** Keeps the compiler from dropping the reads that warm the cache. */
  protected touched = 0

  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > 2 ** 28) {
      throw new RangeError(`capacity must be a whole number from 1 to 2^28, not ${capacity}`)
    }
    this.capacity = capacity
    const slots = 2 ** Math.ceil(Math.log2(capacity * 2 + 1))
    this.#mask = slots - 1
    this.#table = new Int32Array(slots * 2).fill(EMPTY)
    this.#prints = new Int32Array(capacity * 4)
    this.#older = new Int32Array(capacity)
    this.#newer = new Int32Array(capacity)
  }

  get size(): number {
    return this.#size
  }

  /** Whether the key is remembered. Does not refresh it. */
  has(key: string): boolean {
    takeFingerprint(key, this.#batch, 0)
    return this.#find(this.#batch, 0) !== EMPTY
  }

  /** Remembers the key as the newest one; true if it was not known. */
  add(key: string): boolean {
    takeFingerprint(key, this.#batch, 0)
    return this.#insert(this.#batch, 0)
  }

  /**
   * Adds keys in order and sets `isNew` for those that were not known; returns how many were new. Much faster than `add` on a
   * large set: all keys are hashed, and the table lines of new and evicted ones touched, before the first insert, so that cache
   * misses overlap.
   */
  addBatch(keys: readonly string[], isNew: Uint8Array): number {
    const count = keys.length
    if (isNew.length < count) throw new RangeError(`isNew has ${isNew.length} places for ${count} keys`)
    if (this.#batch.length < count * 4) this.#batch = new Int32Array(count * 4)
    const batch = this.#batch
    const table = this.#table
    const mask = this.#mask
    let touched = 0
    let leaving = this.#size + count > this.capacity ? this.#oldest : EMPTY
    for (let i = 0; i < count; i++) {
      takeFingerprint(keys[i]!, batch, i * 4)
      touched ^= table[(batch[i * 4]! & mask) * 2]!
      if (leaving === EMPTY) continue
      touched ^= table[(this.#prints[leaving * 4]! & mask) * 2]!
      leaving = this.#newer[leaving]!
    }
    this.touched = touched
    let fresh = 0
    for (let i = 0; i < count; i++) {
      const added = this.#insert(batch, i * 4) ? 1 : 0
      isNew[i] = added
      fresh += added
    }
    return fresh
  }

  clear(): void {
    this.#table.fill(EMPTY)
    this.#size = 0
    this.#newest = EMPTY
    this.#oldest = EMPTY
  }

  /** The entry of the fingerprint at `at` in `from`. */
  #find(from: Int32Array, at: number): number {
    const table = this.#table
    const mask = this.#mask
    const prints = this.#prints
    const first = from[at]!
    for (let slot = first & mask; ; slot = (slot + 1) & mask) {
      const entry = table[slot * 2 + 1]!
      if (entry === EMPTY) return EMPTY
      if (table[slot * 2] !== first) continue
      const own = entry * 4
      if (prints[own + 1] === from[at + 1] && prints[own + 2] === from[at + 2] && prints[own + 3] === from[at + 3])
        return entry
    }
  }

  #insert(from: Int32Array, at: number): boolean {
    const known = this.#find(from, at)
    if (known !== EMPTY) {
      this.#refresh(known)
      return false
    }
    let entry = this.#size
    if (entry === this.capacity) entry = this.#evict()
    else this.#size++
    const prints = this.#prints
    const own = entry * 4
    const first = from[at]!
    prints[own] = first
    prints[own + 1] = from[at + 1]!
    prints[own + 2] = from[at + 2]!
    prints[own + 3] = from[at + 3]!
    this.#link(entry)
    const table = this.#table
    const mask = this.#mask
    let slot = first & mask
    while (table[slot * 2 + 1] !== EMPTY) slot = (slot + 1) & mask
    table[slot * 2] = first
    table[slot * 2 + 1] = entry
    return true
  }

  #link(entry: number): void {
    const newest = this.#newest
    this.#older[entry] = newest
    this.#newer[entry] = EMPTY
    if (newest === EMPTY) this.#oldest = entry
    else this.#newer[newest] = entry
    this.#newest = entry
  }

  #refresh(entry: number): void {
    if (entry === this.#newest) return
    const older = this.#older[entry]!
    const newer = this.#newer[entry]!
    this.#older[newer] = older
    if (older === EMPTY) this.#oldest = newer
    else this.#newer[older] = newer
    this.#link(entry)
  }

  /** Forgets the oldest key and returns its entry for reuse. */
  #evict(): number {
    const entry = this.#oldest
    const newer = this.#newer[entry]!
    this.#oldest = newer
    if (newer === EMPTY) this.#newest = EMPTY
    else this.#older[newer] = EMPTY

    const table = this.#table
    const mask = this.#mask
    let hole = this.#prints[entry * 4]! & mask
    while (table[hole * 2 + 1] !== entry) hole = (hole + 1) & mask
    // Backward shift instead of tombstones: lookups stay as short after a billion evictions as after none.
    for (let slot = (hole + 1) & mask; table[slot * 2 + 1] !== EMPTY; slot = (slot + 1) & mask) {
      const home = table[slot * 2]! & mask
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue
      table[hole * 2] = table[slot * 2]!
      table[hole * 2 + 1] = table[slot * 2 + 1]!
      hole = slot
    }
    table[hole * 2 + 1] = EMPTY
    return entry
  }
}

const randomInt32 = () => (Math.random() * 2 ** 32) | 0
const SEED_A = randomInt32()
const SEED_B = randomInt32()
const SEED_C = randomInt32()
const SEED_D = randomInt32()

/**
 * MurmurHash3 (x86, 128 bits) over UTF-16 units, eight to a block. Four lanes keep the processor's multiplier busy: as fast as 64
 * bits unit by unit (100 ns for a URL of 50 characters, most of it reading the characters).
 */
function takeFingerprint(key: string, to: Int32Array, at: number): void {
  const length = key.length
  let a = SEED_A
  let b = SEED_B
  let c = SEED_C
  let d = SEED_D
  let i = 0
  for (const end = length - 7; i < end; i += 8) {
    a ^= mixA(key.charCodeAt(i) | (key.charCodeAt(i + 1) << 16))
    a = (Math.imul(((a << 19) | (a >>> 13)) + b, 5) + 0x561ccd1b) | 0
    b ^= mixB(key.charCodeAt(i + 2) | (key.charCodeAt(i + 3) << 16))
    b = (Math.imul(((b << 17) | (b >>> 15)) + c, 5) + 0x0bcaa747) | 0
    c ^= mixC(key.charCodeAt(i + 4) | (key.charCodeAt(i + 5) << 16))
    c = (Math.imul(((c << 15) | (c >>> 17)) + d, 5) + 0x96cd1c35) | 0
    d ^= mixD(key.charCodeAt(i + 6) | (key.charCodeAt(i + 7) << 16))
    d = (Math.imul(((d << 13) | (d >>> 19)) + a, 5) + 0x32ac3b17) | 0
  }
  // Up to seven units are left, padded with zeros; the length below distinguishes the padding from real zeros.
  if (i < length) {
    a ^= mixA(pairAt(key, i))
    if (i + 2 < length) b ^= mixB(pairAt(key, i + 2))
    if (i + 4 < length) c ^= mixC(pairAt(key, i + 4))
    if (i + 6 < length) d ^= mixD(key.charCodeAt(i + 6))
  }
  a ^= length
  b ^= length
  c ^= length
  d ^= length
  a = (a + b + c + d) | 0
  b = avalanche((b + a) | 0)
  c = avalanche((c + a) | 0)
  d = avalanche((d + a) | 0)
  a = avalanche(a)
  a = (a + b + c + d) | 0
  to[at] = a
  to[at + 1] = (b + a) | 0
  to[at + 2] = (c + a) | 0
  to[at + 3] = (d + a) | 0
}

function mixA(word: number): number {
  const k = Math.imul(word, 0x239b961b)
  return Math.imul((k << 15) | (k >>> 17), 0xab0e9789)
}

function mixB(word: number): number {
  const k = Math.imul(word, 0xab0e9789)
  return Math.imul((k << 16) | (k >>> 16), 0x38b34ae5)
}

function mixC(word: number): number {
  const k = Math.imul(word, 0x38b34ae5)
  return Math.imul((k << 17) | (k >>> 15), 0xa1e38b93)
}

function mixD(word: number): number {
  const k = Math.imul(word, 0xa1e38b93)
  return Math.imul((k << 18) | (k >>> 14), 0x239b961b)
}

/** Two units as one word, or the last one alone. */
function pairAt(key: string, i: number): number {
  const unit = key.charCodeAt(i)
  return i + 1 < key.length ? unit | (key.charCodeAt(i + 1) << 16) : unit
}

function avalanche(word: number): number {
  let h = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
