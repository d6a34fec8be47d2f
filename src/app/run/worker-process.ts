/** A worker in its own process: takes its orders from the parent, sends its events back, and ends with it. */

import { loadScraper } from '../../config/load-scraper.ts'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { sendLast } from '../../core/child.ts'
import { toScrapeError } from '../../core/errors.ts'
import { createEventBus, type RunEvent } from '../../core/events.ts'
import { every } from '../../core/every.ts'
import { redactValue } from '../../core/redact.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import { openFrontier } from '../../frontier/open.ts'
import { RunFolder } from '../../runs/run-folder.ts'
import type { WorkerMessage, WorkerOrders } from './processes.ts'
import { placeIn, work } from './worker.ts'

/** Events are sent in batches: one message each would cost more than the page. */
const BUNDLE_MS = 100

const stop = new AbortController()
process.on('SIGTERM', () => stop.abort(new Error('SIGTERM')))
process.on('SIGINT', () => {}) // Ctrl-C reaches the whole group; the parent decides and sends SIGTERM
process.on('disconnect', () => process.exit(1)) // an orphan's leases are swept; it must not keep fetching

process.once('message', async (orders: WorkerOrders) => {
  const waiting: RunEvent[] = []
  const sendEvents = () => {
    if (waiting.length > 0) send({ kind: 'events', events: waiting.splice(0) })
  }
  const bundling = every(sendEvents, BUNDLE_MS)
  let end: CrawlEnd
  try {
    end = await carryOut(orders, (event) => waiting.push(sendable(event)))
  } catch (error) {
    end = { how: 'halted', error: toScrapeError(error, 'E_HANDLER') }
  }
  clearInterval(bundling)
  sendEvents()
  const { how } = end
  const { code, message } = end.how === 'halted' ? end.error : {}
  process.removeAllListeners('disconnect')
  sendLast({ kind: 'end', end: { how, code, message } } satisfies WorkerMessage)
})

/** A handler may log anything, but messages to the parent must be JSON. */
function sendable(event: RunEvent): RunEvent {
  return event.type === 'log' && event.extra !== undefined
    ? { ...event, extra: redactValue(event.extra) as object }
    : event
}

async function carryOut(orders: WorkerOrders, onEvent: (event: RunEvent) => void): Promise<CrawlEnd> {
  const { scraper, file } = await loadScraper(orders.scraperFile)
  const compiled = compileScraper(scraper, orders.limits, file)
  const folder = new RunFolder(orders.folder)
  const bus = createEventBus()
  bus.on(onEvent)
  await using frontier = await openFrontier(orders.frontierUrl, { runId: folder.runId })
  // Arguments arrive as text and numbers; the schema converts them again.
  const spec = { ...orders.spec, args: checkArgs(scraper, orders.spec.args as Record<string, unknown>) }
  const place = placeIn(folder, spec.isOneOfMany)
  return await work(spec, { compiled, frontier, bus, place }, stop.signal)
}

function send(message: WorkerMessage): void {
  // The callback keeps a parent that dies at this moment from causing an unhandled error.
  if (process.connected) process.send?.(message, () => {})
}
