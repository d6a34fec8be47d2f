import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Channel } from './channel.ts'

/** Runs everything that is ready. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('Channel', () => {
  it('hands values over in order, without a promise while there is room', async () => {
    const channel = new Channel<number>(4)
    for (const n of [1, 2, 3, 4]) assert.equal(channel.push(n), undefined)
    assert.equal(channel.size, 4)
    assert.deepEqual(channel.takeBatch(3), [1, 2, 3])
    assert.deepEqual(channel.takeBatch(3), [4])
  })

  it('makes the producer wait when full, and lets it in when half empty', async () => {
    const channel = new Channel<number>(4)
    for (const n of [1, 2, 3, 4]) void channel.push(n)
    let isIn = false
    const waiting = channel.push(5)?.then(() => {
      isIn = true
    })
    assert.deepEqual(channel.takeBatch(1), [1])
    await settle()
    assert.equal(isIn, false, 'three of four: not yet half empty')
    assert.deepEqual(channel.takeBatch(1), [2])
    await waiting
    assert.deepEqual(channel.takeBatch(9), [3, 4, 5])
  })

  it('keeps the order between a waiting producer and the next one', async () => {
    const channel = new Channel<number>(4)
    for (const n of [1, 2, 3, 4]) void channel.push(n)
    const first = channel.push(5)
    void channel.takeBatch(1) // there is a free slot now, but 5 was first
    const second = channel.push(6)
    assert.notEqual(second, undefined)
    void channel.takeBatch(1)
    await Promise.all([first, second])
    assert.deepEqual(channel.takeBatch(9), [3, 4, 5, 6])
  })

  it('gives a waiting worker everything that was pushed before it ran', async () => {
    const channel = new Channel<number>(8)
    const batch = channel.takeBatch(64)
    for (const n of [1, 2, 3]) void channel.push(n)
    assert.deepEqual(await batch, [1, 2, 3])
  })

  it('wakes another worker when the first leaves values behind', async () => {
    const channel = new Channel<number>(8)
    const workers = [channel.takeBatch(2), channel.takeBatch(2), channel.takeBatch(2)]
    for (const n of [1, 2, 3, 4, 5]) void channel.push(n)
    assert.deepEqual(await Promise.all(workers), [[1, 2], [3, 4], [5]])
  })

  it('hands out the remaining values after close, then empty batches, and is drained', async () => {
    const channel = new Channel<number>(2)
    void channel.push(1)
    void channel.push(2)
    const waiting = channel.push(3)
    channel.close()
    let isDrained = false
    const drained = channel.drained.then(() => {
      isDrained = true
    })
    assert.deepEqual(channel.takeBatch(2), [1, 2])
    await waiting
    await settle()
    assert.equal(isDrained, false)
    assert.deepEqual(channel.takeBatch(2), [3])
    await drained
    assert.deepEqual(channel.takeBatch(2), [])
    assert.throws(() => channel.push(4), /closed/)
  })

  it('ends the wait of every worker on close', async () => {
    const channel = new Channel<number>(2)
    const workers = [channel.takeBatch(1), channel.takeBatch(1)]
    channel.close()
    assert.deepEqual(await Promise.all(workers), [[], []])
  })

  it('ends all waits with the reason it is closed with', async () => {
    const reason = new Error('disk full')
    const full = new Channel<number>(1)
    void full.push(1)
    const push = full.push(2)
    full.close(reason)
    await assert.rejects(push!, reason)
    assert.throws(() => full.push(3), reason)
    assert.throws(() => full.takeBatch(1), reason)
    await assert.rejects(full.drained, reason)

    const empty = new Channel<number>(1)
    const take = empty.takeBatch(1)
    empty.close(reason)
    await assert.rejects(async () => take, reason)
  })

  it('loses, repeats and reorders nothing, whatever the sizes and speeds', async () => {
    const sizes = fc.record({
      capacity: fc.constantFrom(1, 2, 4, 16, 512),
      count: fc.integer({ min: 0, max: 700 }),
      workers: fc.integer({ min: 1, max: 5 }),
      batch: fc.integer({ min: 1, max: 70 }),
      slowEvery: fc.integer({ min: 1, max: 9 }),
    })
    await fc.assert(
      fc.asyncProperty(sizes, async ({ capacity, count, workers, batch, slowEvery }) => {
        const channel = new Channel<number>(capacity)
        const taken: number[] = []
        let largest = 0
        const work = async () => {
          for (let turn = 0; ; turn++) {
            const values = await channel.takeBatch(batch)
            if (values.length === 0) return
            taken.push(...values)
            if (turn % slowEvery === 0) await settle()
          }
        }
        const done = Array.from({ length: workers }, work)
        for (let n = 0; n < count; n++) {
          await channel.push(n)
          largest = Math.max(largest, channel.size)
        }
        channel.close()
        await Promise.all(done)
        await channel.drained
        assert.deepEqual(
          taken,
          Array.from({ length: count }, (_, n) => n),
        )
        assert.ok(largest <= capacity)
      }),
      { numRuns: 40 },
    )
  })

  it('refuses a capacity that is not a power of two', () => {
    for (const capacity of [0, 3, 1.5, -2]) assert.throws(() => new Channel(capacity), RangeError)
  })
})
