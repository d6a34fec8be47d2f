/** File tasks: how they are written to the frontier and read back. */
import { ScrapeError } from '../core/errors.ts'
import { FILES_LANE, type Json, type NewTask, type Task } from '../core/task.ts'
import type { FileJob, FileOrder, FileRecord, StoredFile } from './contract.ts'

/** For files that exist on one machine only: in the spool with this id (`spool.ts`). */
export function pinnedLane(spoolId: string): string {
  return `${FILES_LANE}@${spoolId}`
}

/** Records go first: they are fast, and a file that cannot be found is of no use. */
const RECORD_PRIORITY = 1_000_000

/** Throws `E_ROUTE_DATA` for data that is not a file order. */
export function orderOf({ data, url }: Pick<Task, 'data' | 'url'>): FileOrder {
  const order = data as unknown as FileOrder | null
  const isText = (value: unknown) => typeof value === 'string' && value !== ''
  switch (order?.type) {
    case 'download':
      return order
    case 'upload':
      if (isText(order.path) && isText(order.name)) return order
      break
    case 'db_update':
      if (typeof order.record === 'object' && isText(order.record?.taskId)) return order
      break
  }
  throw new ScrapeError('E_ROUTE_DATA', 'the task is not a file download', { url })
}

export function recordOf(job: FileJob, stored: StoredFile, storedAtMs: number): FileRecord {
  const { fetchedBytes: _, ...file } = stored
  return {
    runId: job.runId,
    taskId: job.task.id,
    scraper: job.scraper,
    user: job.task.session ?? '',
    url: job.task.url,
    ...file,
    storedAtMs,
    meta: job.order.meta ?? null,
  }
}

/**
 * The task that writes the record. Its URL is not the file's, because a record has no host that could be busy. It is never
 * pinned, since any machine can do it.
 */
export function recordTask(task: Task, record: FileRecord): NewTask {
  return {
    url: `record://files/${task.id}`,
    key: `record:${task.id}`,
    route: task.route,
    data: { type: 'db_update', record } as unknown as Json,
    depth: task.depth,
    priority: RECORD_PRIORITY,
    lane: FILES_LANE,
    session: task.session,
  }
}
