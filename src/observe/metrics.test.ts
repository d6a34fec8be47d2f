import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS } from '../core/error-table.ts'
import { createEventBus, type RunEvent } from '../core/events.ts'
import { type Metrics, openMetrics } from './metrics.ts'
import { METRICS } from './metrics-table.ts'

const page: RunEvent = {
  type: 'page',
  outcome: 'ok',
  url: 'https://x.test/',
  host: 'x.test',
  route: 'book',
  attempt: 1,
  bytes: 1000,
  queueMs: 1,
  fetchMs: 80,
  parseMs: 2,
}
const timeout = { code: 'E_TIMEOUT_BODY', class: 'timeout', message: '' } as const

const EVERY_EVENT: RunEvent[] = [
  { type: 'run.started', runId: 'r', scraper: 'books', resumed: false },
  page,
  { ...page, outcome: 'retried', error: timeout },
  { ...page, outcome: 'failed', attempt: 2, error: timeout },
  { type: 'committed', outcomes: 1, added: 1, itemsNew: 3, itemsSame: 2, itemsChanged: 1, backlog: 6, ms: 1 },
  { type: 'not-fetched', url: 'https://x.test/', counts: { robots: 1, depth: 12 } },
  { type: 'item.invalid', url: 'https://x.test/', route: 'book', problems: [], item: '{}' },
  { type: 'fields', items: 4, filled: { title: 4, price: 3 } },
  { type: 'throttled', host: 'x.test', untilMs: 1, reason: '429' },
  {
    type: 'blocked',
    url: 'https://x.test/',
    host: 'x.test',
    class: 'challenge',
    vendor: 'cloudflare',
    signal: 'title',
  },
  { type: 'circuit', host: 'x.test', state: 'open', reason: '10 of 10 requests failed', untilMs: 1 },
  { type: 'circuit', host: 'y.test', state: 'half-open', reason: 'probing' },
  { type: 'proxy', proxy: 'p1:8080', state: 'down', reason: 'refused' },
  { type: 'proxy', proxy: 'p2:8080', state: 'up', reason: 'answers' },
  { type: 'proxy', proxy: 'p2:8080', state: 'down', reason: 'blocked', host: 'x.test' },
  { type: 'identity.retired', id: 'i1', reason: 'blocked' },
  { type: 'lease.lost', url: 'https://x.test/', count: 1 },
  { type: 'leases.expired', returned: 2, dead: 1 },
  { type: 'sinks.flushed', items: 3, ms: 12, backlog: 4 },
  { type: 'worker.in-flight', workerId: 'w1', inFlight: 7, rssBytes: 1, cpuMs: 1 },
  { type: 'log', level: 'info', message: '' },
  { type: 'run.finished', runId: 'r', scraper: 'books', state: 'finished' },
  {
    type: 'file', outcome: 'stored', order: 'download', url: 'https://x.test/f', host: 'x.test', attempt: 1, ms: 5, bytes: 500,
  }, // biome-ignore format: one line reads better
  { type: 'browser', what: 'launched', reason: 'first page' },
  { type: 'pools', workerId: 'w1', pagesOpen: 1, pagesFree: 1, fileWorkers: 1 },
  { type: 'pools', workerId: 'w2', pagesOpen: 0, pagesFree: 5, fileWorkers: 2 },
]

const counts = async () => ({
  lanes: {
    files: { pending: 3, claimed: 0 },
    'files@here': { pending: 1, claimed: 0 },
    bulk: { pending: 1, claimed: 0 },
  },
  pending: 5,
  claimed: 2,
  completed: 9,
  failed: 1,
  dead: 1,
  oldestAgeMs: 90_000,
})

function listenerOf(metrics: Metrics): (event: RunEvent) => void {
  const bus = createEventBus()
  metrics.watchEvents('books', bus)
  return bus.emit
}

async function fed() {
  const metrics = await openMetrics({ version: '0.1.0', now: () => 1_000_000, withProcess: false })
  const listen = listenerOf(metrics)
  for (const event of EVERY_EVENT) listen(event)
  metrics.watchQueue('books', counts)
  metrics.watchMachine(() => ({
    cpuRatio: 0.5,
    memory: { usedBytes: 7, freeBytes: 3 },
    diskFreeBytes: 9,
    diskTotalBytes: 90,
    loopLagMs: 20,
  }))
  metrics.watchDeliveries(() => ({ delivered: 4, failed: 2, dead: 1 }))
  metrics.watchRuns(async () => [
    { scraper: 'books', lastSuccessAtMs: 1_000_000, schedule: { intervalMs: 3_600_000, sinceMs: 5000 } },
    { scraper: 'never', lastSuccessAtMs: undefined, schedule: undefined },
  ])
  metrics.watchScheduler(async () => 7000)
  metrics.watchWorkers('books', async () => ['working', 'working', 'stuck', 'ended'])
  return metrics
}

test('exports a value for every metric of the table once every event has happened', async () => {
  const text = await (await fed()).render()
  for (const [name, { type }] of Object.entries(METRICS)) {
    assert.match(text, new RegExp(`^# TYPE ${name} ${type}$`, 'm'))
    assert.match(text, new RegExp(`^${name}(_count)?(\\{[^}]*\\})? \\S+$`, 'm'), name)
  }
})

test('counts what the events say', async () => {
  const text = await (await fed()).render()
  for (const line of [
    'sluice_pages_total{scraper="books",route="book",outcome="ok"} 1',
    'sluice_pages_total{scraper="books",route="book",outcome="failed"} 1',
    'sluice_page_seconds_count{scraper="books",stage="fetch"} 3',
    'sluice_page_seconds_sum{scraper="books",stage="sink"} 0.012',
    'sluice_not_fetched_total{scraper="books",reason="depth"} 12',
    'sluice_not_fetched_total{scraper="books",reason="links"} 0',
    'sluice_items_total{scraper="books",change="new"} 3',
    'sluice_items_total{scraper="books",change="invalid"} 1',
    'sluice_queue_tasks{scraper="books",state="pending"} 5',
    'sluice_retries_total{class="timeout"} 1',
    'sluice_dead_letters_total{class="timeout"} 1',
    'sluice_dead_letters_total{class="crash"} 1',
    'sluice_leases_expired_total 3',
    'sluice_throttled_total{host="x.test"} 1',
    'sluice_blocked_total{class="challenge",vendor="cloudflare"} 1',
    'sluice_circuit_state{scraper="books"} 2',
    'sluice_webhook_deliveries_total{outcome="failed"} 2',
    'sluice_proxy_up{proxy="p1:8080"} 0',
    'sluice_proxy_up{proxy="p2:8080"} 1',
    'sluice_response_bytes_total 3000',
    'sluice_worker_in_flight{worker="w1"} 7',
    'sluice_worker_heartbeat_timestamp_seconds{worker="w1"} 1000',
    'sluice_sink_lag_items{sink="all"} 4',
    'sluice_field_filled_ratio{scraper="books",field="price"} 0.75',
    'sluice_run_last_success_timestamp_seconds{scraper="books"} 1000',
    `sluice_build_info{version="0.1.0",node="${process.version}"} 1`,
    'sluice_files_total{scraper="books",outcome="stored"} 1',
    'sluice_file_bytes_total{scraper="books"} 500',
    'sluice_file_tasks{scraper="books",state="pending"} 4',
    'sluice_file_workers 3',
    'sluice_browser_pages{state="free"} 6',
    'sluice_browser_events_total{event="launched"} 1',
    'sluice_cpu_usage_ratio 0.5',
    'sluice_memory_bytes{state="free"} 3',
    'sluice_disk_free_bytes 9',
    'sluice_disk_total_bytes 90',
    'sluice_queue_oldest_age_seconds{scraper="books"} 90',
    'sluice_schedule_since_timestamp_seconds{scraper="books"} 5',
    'sluice_schedule_interval_seconds{scraper="books"} 3600',
    'sluice_event_loop_lag_seconds 0.02',
    'sluice_scheduler_seen_timestamp_seconds 7',
    'scraper_requests_total{phase="start"} 2',
    'scraper_requests_total{phase="retry"} 1',
    'scraper_request_duration_seconds_count 3',
    'scraper_items_scraped_total 3',
    'scraper_retries_total 1',
    'scraper_errors_total{error_type="timeout"} 2',
  ]) {
    assert.ok(text.split('\n').includes(line), `${line}\n${text}`)
  }
})

test('puts hosts over the bound into one series', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false })
  const listen = listenerOf(metrics)
  for (let i = 0; i < 1000; i++) listen({ type: 'throttled', host: `h${i}.test`, untilMs: 1, reason: '' })
  const series = (await metrics.render()).split('\n').filter((line) => line.startsWith('sluice_throttled_total{'))
  assert.equal(series.length, 201)
  assert.equal(series.at(-1), 'sluice_throttled_total{host="other"} 800')
})

test('shows the worst circuit of all hosts', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false })
  const listen = listenerOf(metrics)
  const shown = async () => /^sluice_circuit_state\{.*\} (\d)$/m.exec(await metrics.render())?.[1]
  const change = (host: string, state: 'open' | 'half-open' | 'closed') =>
    listen({ type: 'circuit', host, state, reason: '' })
  assert.equal(await shown(), '0')
  change('a', 'open')
  change('b', 'half-open')
  assert.equal(await shown(), '2')
  change('a', 'closed')
  assert.equal(await shown(), '1')
  change('b', 'closed')
  assert.equal(await shown(), '0')
})

test('forgets workers that are silent for ten minutes', async () => {
  let nowMs = 0
  const metrics = await openMetrics({ version: '0', withProcess: false, now: () => nowMs })
  listenerOf(metrics)({ type: 'worker.in-flight', workerId: 'gone', inFlight: 1, rssBytes: 1, cpuMs: 1 })
  assert.match(await metrics.render(), /worker="gone"/)
  nowMs = 600_001
  assert.doesNotMatch(await metrics.render(), /worker="gone"/)
})

test('answers although the frontier does not', async () => {
  const metrics = await fed()
  metrics.watchQueue('books', () => Promise.reject(new Error('down')))
  assert.match(await metrics.render(), /sluice_pages_total/)
})

test('a scrape does not wait for a frontier that is silent, and shows its answer when it has come', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false, answerMsMax: 20 })
  let asked = 0
  const answer = Promise.withResolvers<Awaited<ReturnType<typeof counts>>>()
  metrics.watchQueue('slow', () => {
    asked++
    return answer.promise
  })
  metrics.watchQueue('books', counts)
  for (let i = 0; i < 3; i++) {
    const text = await metrics.render()
    assert.match(text, /sluice_queue_tasks{scraper="books",state="pending"} 5/)
    assert.doesNotMatch(text, /scraper="slow"/)
  }
  assert.equal(asked, 1, 'questions to a silent service do not pile up')
  answer.resolve(await counts())
  assert.match(await metrics.render(), /sluice_queue_tasks{scraper="slow",state="pending"} 5/)
})

test('says nothing of a scheduler before somebody knows, and 0 when there never was one', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false, answerMsMax: 5 })
  const shown = async () => /^sluice_scheduler_seen_timestamp_seconds (\S+)$/m.exec(await metrics.render())?.[1]
  assert.equal(await shown(), undefined)
  metrics.watchScheduler(() => new Promise(() => {}))
  assert.equal(await shown(), undefined)
  metrics.watchScheduler(async () => undefined)
  assert.equal(await shown(), '0')
})

test('what is true of a run only is gone when the run is left, and counters go on', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false })
  const bus = createEventBus()
  const leave = metrics.watchEvents('books', bus)
  for (const event of EVERY_EVENT) bus.emit(event)
  const before = await metrics.render()
  const ofRun =
    /^sluice_(?:circuit_state|proxy_up|worker_in_flight|worker_heartbeat_timestamp_seconds|sink_lag_items|field_filled_ratio)\{/gm
  assert.equal(before.match(ofRun)?.length, 8)
  leave()
  const after = await metrics.render()
  assert.equal(after.match(ofRun), null)
  for (const line of [
    'sluice_browser_pages{state="open"} 0',
    'sluice_browser_pages{state="free"} 0',
    'sluice_file_workers 0',
  ])
    assert.ok(after.split('\n').includes(line), line)
  bus.emit(page) // nobody listens any more
  metrics.watchEvents('books', bus)
  bus.emit(page)
  assert.match(await metrics.render(), /sluice_pages_total{scraper="books",route="book",outcome="ok"} 2/)
})

test('the counters of every class of error are there at 0 before the first error', async () => {
  const metrics = await openMetrics({ version: '0', withProcess: false })
  metrics.watchEvents('books', createEventBus())
  const lines = (await metrics.render()).split('\n')
  for (const { class: name } of [...Object.values(ERRORS), { class: 'crash' }, { class: 'unknown' }])
    for (const metric of ['retries', 'dead_letters'])
      assert.ok(lines.includes(`sluice_${metric}_total{class="${name}"} 0`), `${metric} ${name}`)
  assert.ok(lines.includes('sluice_blocked_total{class="captcha",vendor="unknown"} 0'))
})

test('has the metrics of the process and of Node', async () => {
  const text = await (await openMetrics({ version: '0' })).render()
  assert.match(text, /^process_resident_memory_bytes \d+/m)
  assert.match(text, /^nodejs_eventloop_lag_seconds /m)
})
