/**
 * What observing costs: microseconds per page for the figures of the progress bar and for the Prometheus metrics.
 *
 *   node bench/observe.ts [--json]
 */
import { createEventBus, type EventOf } from '../src/core/events.ts'
import { openMetrics } from '../src/observe/metrics.ts'
import { createTally } from '../src/observe/tally.ts'

const ROUNDS = 6
const EVENTS = 50_000

const page: EventOf<'page'> = {
  type: 'page',
  outcome: 'ok',
  url: 'https://shop.example/book/1',
  host: 'shop.example',
  route: 'book',
  attempt: 1,
  status: 200,
  bytes: 50_000,
  queueMs: 1,
  fetchMs: 80,
  parseMs: 2,
}

/** The best of several rounds: other work on the machine can only make it slower. */
function microsecondsPerPage(listen: (event: EventOf<'page'>) => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const startMs = performance.now()
    for (let i = 0; i < EVENTS; i++) listen(page)
    best = Math.min(best, ((performance.now() - startMs) * 1000) / EVENTS)
  }
  return Number(best.toFixed(2))
}

const metrics = await openMetrics({ version: '0', withProcess: false })
const bus = createEventBus()
metrics.watchEvents('books', bus)
const figures = {
  tally: microsecondsPerPage(createTally().record),
  metrics: microsecondsPerPage(bus.emit),
}
if (process.argv.includes('--json')) console.log(JSON.stringify(figures))
else console.table(figures)
