import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { writeBatches } from './batch.ts'
import { Channel } from './channel.ts'
import { Dedup } from './dedup.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('writeBatches', () => {
  it('writes everything in batches of at most the given size', async () => {
    const channel = new Channel<number>(512)
    const sizes: number[] = []
    const done = writeBatches({
      channel,
      write: (batch) => {
        sizes.push(batch.length)
        return undefined
      },
    })
    for (let n = 0; n < 1_000; n++) {
      const waiting = channel.push(n)
      if (waiting !== undefined) await waiting
    }
    channel.close()
    await done
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      1_000,
    )
    assert.ok(sizes.every((size) => size <= 64))
    assert.ok(sizes.includes(64))
  })

  it('slows the producer down to a slow writer instead of growing', async () => {
    const channel = new Channel<number>(16)
    const gate = Promise.withResolvers<void>()
    let inWriters = 0
    const done = writeBatches({
      channel,
      workers: 2,
      batchMax: 4,
      write: (batch) => {
        inWriters += batch.length
        return gate.promise
      },
    })
    let pushed = 0
    const producing = (async () => {
      for (; pushed < 1_000; pushed++) await channel.push(pushed)
    })()
    for (let turn = 0; turn < 20; turn++) await settle()
    assert.ok(pushed <= 16 + inWriters + 1, `${pushed} pushed while ${inWriters} are with the writers`)
    gate.resolve()
    await producing
    channel.close()
    await done
    assert.equal(inWriters, 1_000)
  })

  it('ends with the writer’s error and frees the waiting producer', async () => {
    const channel = new Channel<number>(2)
    const done = writeBatches({ channel, workers: 3, batchMax: 1, write: () => Promise.reject(new Error('disk full')) })
    const producing = (async () => {
      for (let n = 0; ; n++) await channel.push(n)
    })()
    await assert.rejects(producing, /disk full/)
    await assert.rejects(done, /disk full/)
  })

  it('keeps up to `workers` writes waiting at once', async () => {
    const channel = new Channel<number>(16)
    let waiting = 0
    let most = 0
    const done = writeBatches({
      channel,
      workers: 3,
      batchMax: 2,
      write: async () => {
        most = Math.max(most, ++waiting)
        await settle()
        waiting--
      },
    })
    for (let n = 0; n < 100; n++) await channel.push(n)
    channel.close()
    await done
    assert.equal(most, 3)
  })
})

describe('Dedup', () => {
  it('leaves the first of each key, in order, and counts the others', () => {
    const dedup = new Dedup<{ url: string; n: number }>({ keyOf: ({ url }) => url })
    const batch = [
      { url: 'a', n: 1 },
      { url: 'b', n: 2 },
      { url: 'a', n: 3 },
    ]
    assert.deepEqual(
      dedup.keepNew(batch).map(({ n }) => n),
      [1, 2],
    )
    assert.deepEqual(dedup.keepNew([{ url: 'b', n: 4 }]), [])
    assert.deepEqual(dedup.keepNew([{ url: 'c', n: 5 }]).length, 1)
    assert.equal(dedup.duplicates, 2)
  })

  it('takes batches larger than any before', () => {
    const dedup = new Dedup<string>({ keyOf: (key) => key })
    const batch = Array.from({ length: 500 }, (_, n) => `k${n % 400}`)
    assert.equal(dedup.keepNew(batch).length, 400)
    assert.equal(dedup.duplicates, 100)
  })

  it('forgets the oldest keys beyond its capacity', () => {
    const dedup = new Dedup<string>({ capacity: 2, keyOf: (key) => key })
    assert.deepEqual(dedup.keepNew(['a', 'b', 'c', 'a']), ['a', 'b', 'c', 'a'])
  })
})
