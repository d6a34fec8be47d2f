/** The queue on its own, for programs that do their own fetching: enqueue, claim, complete. */
import type { UrlQueue, UrlQueueOptions } from '../frontier/postgres/url-queue.ts'

export type { UrlQueue, UrlQueueOptions }

/** Opens a queue of URLs in PostgreSQL (`postgres://…`). The driver is loaded on the first call, not with the public names. */
export async function openUrlQueue(url: string, options: UrlQueueOptions): Promise<UrlQueue> {
  const { openUrlQueue: open } = await import('../frontier/postgres/url-queue.ts')
  return await open(url, options)
}
