/** Workers between a channel and a writer: each takes what is there, up to a batch, and writes it. */
import type { BatchOptions } from './contract.ts'

/**
 * Resolves when the channel was closed and its last value written. When a write fails, the channel is closed with that error,
 * so that producers stop waiting, the other workers end, and the error is thrown here.
 */
export async function writeBatches<T>(options: BatchOptions<T>): Promise<void> {
  const { workers = 4 } = options
  const results = await Promise.allSettled(Array.from({ length: workers }, () => work(options)))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

async function work<T>({ channel, write, gather, batchMax = 64 }: BatchOptions<T>): Promise<void> {
  try {
    for (;;) {
      let batch = channel.takeBatch(batchMax)
      if (batch instanceof Promise) batch = await batch
      if (batch.length === 0) return
      if (gather !== undefined && batch.length < batchMax) {
        await gather(batch.length)
        if (channel.size > 0) batch.push(...(await channel.takeBatch(batchMax - batch.length)))
      }
      const waiting = write(batch)
      if (waiting !== undefined) await waiting
    }
  } catch (error) {
    channel.close(error ?? new Error('a write failed without saying why'))
    throw error
  }
}
