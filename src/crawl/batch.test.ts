import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { writeBatches } from './batch.ts'
import { Channel } from './channel.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('writeBatches', () => {
  it('waits for more values if asked to, and writes them together', async () => {
    const channel = new Channel<number>(8)
    const written: number[][] = []
    const done = writeBatches({
      channel,
      gather: async () => void channel.push(2),
      write: (batch) => {
        written.push(batch)
        return undefined
      },
    })
    await channel.push(1)
    for (let turn = 0; turn < 5; turn++) await settle()
    channel.close()
    await done
    assert.deepEqual(written, [[1, 2]])
  })

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
    const done = writeBatches({ channel, batchMax: 1, write: () => Promise.reject(new Error('disk full')) })
    const producing = (async () => {
      for (let n = 0; ; n++) await channel.push(n)
    })()
    await assert.rejects(producing, /disk full/)
    await assert.rejects(done, /disk full/)
  })
})
