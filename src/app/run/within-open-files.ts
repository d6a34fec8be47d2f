/** Keeps concurrency within the open-file limit: each page in flight needs a socket, and files and DNS lookups need some, too. */
import type { EventBus } from '../../core/events.ts'
import { openFilesMax, openFilesNow, openFilesWords } from '../../core/open-files.ts'

/** Reserved for the run record, snapshots, DNS lookups and idle connections. */
const RESERVE = 16

export function withinOpenFiles(concurrency: number, bus: EventBus): number {
  const [max, now] = [openFilesMax(), openFilesNow()]
  if (max === undefined || now === undefined) return concurrency
  const possible = Math.max(1, max - now - RESERVE)
  if (possible >= concurrency) return concurrency
  bus.emit({
    type: 'log',
    level: 'warn',
    message: `${possible} of ${concurrency} pages at once: ${openFilesWords()}. Raise it, for example with \`ulimit -n 4096\`, or lower --concurrency.`,
  })
  return possible
}
