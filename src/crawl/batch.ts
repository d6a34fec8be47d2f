/** Takes what is in a channel, up to a batch at a time, and writes it. */
import type { Channel } from './channel.ts'

export interface BatchOptions<T> {
  channel: Channel<T>
  /** Takes a batch; returns a promise only when it has to wait. */
  write: (batch: T[]) => undefined | Promise<void>
  /** Most values per write; default 64. */
  batchMax?: number
  /** Asked before a batch of `size` values, smaller than `batchMax`, is written: how long to wait for more. */
  gather?: (size: number) => undefined | Promise<void>
}

/**
 * Resolves when the channel was closed and its last value written. When a write fails, the channel is closed with that error,
 * so that producers stop waiting, and the error is thrown here.
 */
export async function writeBatches<T>({ channel, write, gather, batchMax = 64 }: BatchOptions<T>): Promise<void> {
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
