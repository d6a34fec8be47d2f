/** Keeps concurrency within the open-file limit: each page in flight needs a socket, and files and DNS lookups need some, too. */
import type { EventBus } from '../../core/events.ts'
import { openFilesMax, openFilesNow, openFilesWords } from '../../core/open-files.ts'

/** Reserved for the log, the run record, snapshots and DNS lookups. */
const RESERVE = 8
/** A page takes a connection that is free; the one that has just become free may still be settling. 36 were seen with 18 pages. */
const SOCKETS_PER_PAGE = 2

export function withinOpenFiles(concurrency: number, bus: EventBus): number {
  const [max, now] = [openFilesMax(), openFilesNow()]
  if (max === undefined || now === undefined) return concurrency
  const possible = Math.max(1, Math.floor((max - now - RESERVE) / SOCKETS_PER_PAGE))
  if (possible >= concurrency) return concurrency
  bus.emit({
    type: 'log',
    level: 'warn',
    message: `${possible} of ${concurrency} pages at once: ${openFilesWords()}. Raise it, for example with \`ulimit -n 4096\`, or lower --concurrency.`,
  })
  return possible
}
