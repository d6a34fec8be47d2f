import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { LruSet } from './lru-set.ts'

/** The obvious implementation: slow, and plainly correct. */
class NaiveLru {
  readonly keys = new Map<string, true>()
  readonly capacity: number
  constructor(capacity: number) {
    this.capacity = capacity
  }
  add(key: string): boolean {
    const isNew = !this.keys.delete(key)
    if (isNew && this.keys.size === this.capacity) {
      for (const oldest of this.keys.keys()) {
        this.keys.delete(oldest)
        break
      }
    }
    this.keys.set(key, true)
    return isNew
  }
}

/** Few distinct keys, so that repeats, refreshes and evictions all happen; any characters, including the empty string. */
const key = fc.oneof(
  fc.integer({ min: 0, max: 40 }).map((n) => `https://x.test/${n}`),
  fc.string({ unit: 'binary', maxLength: 3 }),
)

describe('LruSet', () => {
  it('answers every has and add like a plain LRU', () => {
    const command = fc.record({ op: fc.constantFrom('add', 'add', 'add', 'has', 'clear-rarely'), key })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.array(command, { maxLength: 300, size: 'max' }),
        (capacity, commands) => {
          const set = new LruSet(capacity)
          const naive = new NaiveLru(capacity)
          for (const { op, key } of commands) {
            if (op === 'has') assert.equal(set.has(key), naive.keys.has(key))
            else if (op === 'add') assert.equal(set.add(key), naive.add(key))
            else if (key === '') {
              set.clear()
              naive.keys.clear()
            }
            assert.equal(set.size, naive.keys.size)
          }
          for (const { key } of commands) assert.equal(set.has(key), naive.keys.has(key))
        },
      ),
      { numRuns: 150 },
    )
  })

  it('adds a batch exactly as one by one', () => {
    const batches = fc.array(fc.array(key, { maxLength: 80, size: 'max' }), { maxLength: 10 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), batches, (capacity, batches) => {
        const set = new LruSet(capacity)
        const naive = new NaiveLru(capacity)
        for (const batch of batches) {
          const isNew = new Uint8Array(batch.length)
          const fresh = set.addBatch(batch, isNew)
          assert.deepEqual(
            [...isNew],
            batch.map((key) => Number(naive.add(key))),
          )
          assert.equal(
            fresh,
            isNew.reduce((sum, one) => sum + one, 0),
          )
        }
      }),
      { numRuns: 100 },
    )
  })

  it('remembers exactly one key with capacity 1', () => {
    const set = new LruSet(1)
    assert.equal(set.add('a'), true)
    assert.equal(set.add('a'), false)
    assert.equal(set.add('b'), true)
    assert.equal(set.has('a'), false)
    assert.equal(set.has('b'), true)
    assert.equal(set.size, 1)
  })

  it('evicts the key that was added or refreshed longest ago', () => {
    const set = new LruSet(3)
    for (const key of ['a', 'b', 'c', 'a', 'd']) set.add(key)
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].filter((key) => set.has(key)),
      ['a', 'c', 'd'],
    )
  })

  it('does not refresh a key that is only looked up', () => {
    const set = new LruSet(2)
    set.add('a')
    set.add('b')
    set.has('a')
    set.add('c')
    assert.equal(set.has('a'), false)
  })

  it('agrees with a plain LRU over 100,000 adds with evictions throughout', () => {
    const set = new LruSet(1_000)
    const naive = new NaiveLru(1_000)
    let state = 1
    for (let i = 0; i < 100_000; i++) {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
      const key = `https://x.test/${(state >> 8) % 3_000}`
      if (set.add(key) !== naive.add(key)) assert.fail(`add ${i} of ${key} differs`)
    }
    assert.equal(set.size, 1_000)
  })

  it('distinguishes keys that differ in one character or only in length', () => {
    const set = new LruSet(100_000)
    const keys = new Set<string>()
    for (let length = 0; length <= 40; length++) {
      for (const filler of ['\0', 'a', '\uffff']) {
        keys.add(filler.repeat(length))
        for (let at = 0; at < length; at++) {
          for (const other of ['\0', '\u0001', 'b', 'a\0', '\u0100', '\ud800'])
            keys.add(filler.repeat(at) + other + filler.repeat(length - at - 1))
        }
      }
    }
    for (const key of keys) assert.equal(set.add(key), true, JSON.stringify(key))
    for (const key of keys) assert.equal(set.has(key), true, JSON.stringify(key))
  })

  it('reports none of 400,000 distinct keys as known', () => {
    const set = new LruSet(400_000)
    for (let i = 0; i < 400_000; i++) if (!set.add(`k${i.toString(36)}`)) assert.fail(`k${i} was called known`)
    assert.equal(set.size, 400_000)
  })

  it('rejects a nonsensical capacity', () => {
    for (const capacity of [0, -1, 1.5, Number.NaN, 2 ** 29]) assert.throws(() => new LruSet(capacity), RangeError)
  })
})
