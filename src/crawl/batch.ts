/** Takes values out of a channel, up to a batch at a time, and writes them. */
import type { Channel } from './channel.ts'

export interface BatchOptions<T> {
  channel: Channel<T>
  /** Writes a batch; returns a promise only if it has to wait. */
  write: (batch: T[]) => undefined | Promise<void>
  /** Most values per write; default 64. */
  batchMax?: number
  /** Called before a batch of `size` values, smaller than `batchMax`, is written: waits for more if that is worthwhile. */
  gather?: (size: number) => undefined | Promise<void>
}

/**
 * Resolves when the channel is closed and its last value has been written. If a write fails, the channel is closed with that
 * error, so that producers stop waiting, and the error is thrown here.
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
