/** The queue by itself, for programs that fetch by their own means: enqueue, claim, complete. */
import type { UrlQueue, UrlQueueOptions } from '../frontier/postgres/url-queue.ts'

export type { UrlQueue, UrlQueueOptions }

/** Opens a queue of URLs in PostgreSQL (`postgres://…`). The driver is loaded now, not with the public names. */
export async function openUrlQueue(url: string, options: UrlQueueOptions): Promise<UrlQueue> {
  const { openUrlQueue: open } = await import('../frontier/postgres/url-queue.ts')
  return await open(url, options)
}
