/** Workers between a channel and a writer: each takes what is there, up to a batch, and writes it. */
import type { Channel } from './channel.ts'

export interface BatchOptions<T> {
  channel: Channel<T>
  /** Takes a batch; returns a promise only when it has to wait. */
  write: (batch: T[]) => undefined | Promise<void>
  /** How many writes may wait at once. In one thread this hides the writer's latency, it adds no CPU. Default 4. */
  workers?: number
  /** Most values per write; default 64. */
  batchMax?: number
}

/**
 * Resolves when the channel was closed and its last value written. When a write fails, the channel is closed with that error,
 * so that producers stop waiting, the other workers end, and the error is thrown here.
 */
export async function writeBatches<T>(options: BatchOptions<T>): Promise<void> {
  const { channel, workers = 4 } = options
  const results = await Promise.allSettled(Array.from({ length: workers }, () => work(options)))
  for (const result of results) if (result.status === 'rejected') throw result.reason
  await channel.drained
}

async function work<T>({ channel, write, batchMax = 64 }: BatchOptions<T>): Promise<void> {
  try {
    for (;;) {
      let batch = channel.takeBatch(batchMax)
      if (batch instanceof Promise) batch = await batch
      if (batch.length === 0) return
      const waiting = write(batch)
      if (waiting !== undefined) await waiting
    }
  } catch (error) {
    channel.close(error ?? new Error('a write failed without saying why'))
    throw error
  }
}
