/** Every metric we export, declared once: the registry, docs/reference/metrics.md and the dashboards' test read this table. */
import { NOT_FETCHED } from '../core/not-fetched.ts'

export interface MetricSpec {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of the buckets, in the metric's unit. */
  readonly buckets?: readonly number[]
}

/** 5 ms … 2 min: a page from a cache as well as one that waited for its host. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

export const METRICS = {
  sluice_pages_total: {
    type: 'counter',
    help: 'Tries at a page, by how they ended: ok, retried, postponed, failed, skipped (robots.txt forbids it), stale.',
    labels: ['scraper', 'route', 'outcome'],
  },
  sluice_page_seconds: {
    type: 'histogram',
    help: 'Time of a page by stage: queue (due to claimed), fetch, parse (the handler), sink (a flush).',
    labels: ['scraper', 'stage'],
    buckets: SECONDS,
  },
  sluice_suspect_pages_total: {
    type: 'counter',
    help: 'Pages with almost no content, or with a CAPTCHA and little else, in which no block was recognised.',
    labels: ['scraper'],
  },
  sluice_not_fetched_total: {
    type: 'counter',
    help: `Links and pages that were not fetched, by reason: ${Object.keys(NOT_FETCHED).join(', ')}.`,
    labels: ['scraper', 'reason'],
  },
  sluice_items_total: {
    type: 'counter',
    help: 'Items by what became of them: new, same, changed, invalid.',
    labels: ['scraper', 'change'],
  },
  sluice_queue_tasks: {
    type: 'gauge',
    help: 'Tasks in the frontier by state: pending, claimed, completed, failed, dead.',
    labels: ['scraper', 'state'],
  },
  sluice_queue_oldest_age_seconds: {
    type: 'gauge',
    help: 'How long ago the oldest task that is due was added. Absent when none is due, and on engines that keep no such time (all but memory: and postgres:).',
    labels: ['scraper'],
  },
  sluice_retries_total: {
    type: 'counter',
    help: 'Tries that failed and are repeated, by class of error.',
    labels: ['class'],
  },
  sluice_dead_letters_total: {
    type: 'counter',
    help: 'Tasks given up on, by class of error.',
    labels: ['class'],
  },
  sluice_leases_expired_total: {
    type: 'counter',
    help: 'Leases that ran out because their worker died or hung.',
    labels: [],
  },
  sluice_throttled_total: {
    type: 'counter',
    help: 'Times a host asked for fewer requests. The first 200 hosts by name, then "other".',
    labels: ['host'],
  },
  sluice_blocked_total: {
    type: 'counter',
    help: 'Block pages, challenges and walls instead of pages, by class (rate_limit, challenge, captcha, blocked, login_wall, geo, consent) and by vendor.',
    labels: ['class', 'vendor'],
  },
  sluice_circuit_state: {
    type: 'gauge',
    help: 'The worst of the circuit breakers of all hosts: 0 all closed, 1 one is being probed, 2 one is open.',
    labels: ['scraper'],
  },
  sluice_webhook_deliveries_total: {
    type: 'counter',
    help: 'Tries to deliver an event: delivered, failed (tried again later), dead (given up).',
    labels: ['outcome'],
  },
  sluice_proxy_up: {
    type: 'gauge',
    help: '1 while a proxy is used, 0 while it rests after failures. The first 200 proxies.',
    labels: ['proxy'],
  },
  sluice_response_bytes_total: {
    type: 'counter',
    help: 'Bytes of responses, as they came over the wire.',
    labels: [],
  },
  sluice_workers: {
    type: 'gauge',
    help: 'Workers of a fleet by state: working, draining, stuck (silent for 30 s). Workers that ended are not counted.',
    labels: ['scraper', 'state'],
  },
  sluice_worker_in_flight: {
    type: 'gauge',
    help: 'Pages a worker is working on now.',
    labels: ['worker'],
  },
  sluice_worker_heartbeat_timestamp_seconds: {
    type: 'gauge',
    help: 'When a worker last reported. One silent for 10 minutes is forgotten.',
    labels: ['worker'],
  },
  sluice_browser_pages: {
    type: 'gauge',
    help: 'Pages of browsers by state: open (a task has it), free (an unused slot).',
    labels: ['state'],
  },
  sluice_browser_events_total: {
    type: 'counter',
    help: 'What happened to browsers: launched, recycled, crashed, hung, closed.',
    labels: ['event'],
  },
  sluice_file_tasks: {
    type: 'gauge',
    help: 'File tasks by state: pending, claimed.',
    labels: ['scraper', 'state'],
  },
  sluice_files_total: {
    type: 'counter',
    help: 'Tries at a file task, by how they ended: stored, same (the bytes were there), recorded, retried, postponed, failed, skipped (robots.txt forbids it), stale.',
    labels: ['scraper', 'outcome'],
  },
  sluice_file_bytes_total: {
    type: 'counter',
    help: 'Bytes of files that were stored.',
    labels: ['scraper'],
  },
  sluice_file_workers: {
    type: 'gauge',
    help: 'Processes that store files.',
    labels: [],
  },
  sluice_cpu_usage_ratio: {
    type: 'gauge',
    help: 'CPU in use of what this machine or container may use; 1 is all of it.',
    labels: [],
  },
  sluice_memory_bytes: {
    type: 'gauge',
    help: 'Memory of this machine or container by state: used, free.',
    labels: ['state'],
  },
  sluice_disk_free_bytes: {
    type: 'gauge',
    help: 'Free bytes where runs are kept.',
    labels: [],
  },
  sluice_disk_total_bytes: {
    type: 'gauge',
    help: 'Size of the disk where runs are kept.',
    labels: [],
  },
  sluice_event_loop_lag_seconds: {
    type: 'gauge',
    help: '95th percentile of the delay of the event loop over the last second.',
    labels: [],
  },
  sluice_sink_lag_items: {
    type: 'gauge',
    help: 'Accepted items that are not yet durable in the sinks ("all": they are flushed together).',
    labels: ['sink'],
  },
  sluice_field_filled_ratio: {
    type: 'gauge',
    help: 'Share of items in which a field has a value, since the run began.',
    labels: ['scraper', 'field'],
  },
  sluice_run_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'When a run last finished within its thresholds. `serve` covers all runs in the store, including those from before it started.',
    labels: ['scraper'],
  },
  sluice_schedule_interval_seconds: {
    type: 'gauge',
    help: 'The longest time between two runs by a schedule that is not paused, over the next 8 days (nights and weekends count); of several schedules the shortest. Only from `serve`.',
    labels: ['scraper'],
  },
  sluice_schedule_since_timestamp_seconds: {
    type: 'gauge',
    help: 'Since when there is a schedule for it: one that never succeeded is late, too. Only from `serve`.',
    labels: ['scraper'],
  },
  sluice_scheduler_seen_timestamp_seconds: {
    type: 'gauge',
    help: 'Last heartbeat of the server that runs schedules, webhooks, history and retention; 0: never. Only from `serve`.',
    labels: [],
  },
  sluice_build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: ['version', 'node'],
  },
  scraper_requests_total: {
    type: 'counter',
    help: 'Requests by phase: start (first tries), retry (all further ones).',
    labels: ['phase'],
  },
  scraper_request_duration_seconds: {
    type: 'histogram',
    help: 'Time of a request.',
    labels: [],
    buckets: SECONDS,
  },
  scraper_items_scraped_total: {
    type: 'counter',
    help: 'Items accepted as new.',
    labels: [],
  },
  scraper_retries_total: {
    type: 'counter',
    help: 'Tries that failed and are repeated.',
    labels: [],
  },
  scraper_errors_total: {
    type: 'counter',
    help: 'Failed tries by type: timeout, connection, forbidden, not_found, rate_limited, other.',
    labels: ['error_type'],
  },
} as const satisfies Record<string, MetricSpec>

export type MetricName = keyof typeof METRICS

/** Our classes of errors under the names of the Go scraper whose dashboards may still be in use. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  timeout: 'timeout',
  connection: 'connection',
  dns: 'connection',
  tls: 'connection',
  forbidden: 'forbidden',
  blocked: 'forbidden',
  captcha: 'forbidden',
  'not-found': 'not_found',
  'rate-limited': 'rate_limited',
}

export function errorTypeOf(errorClass: string): string {
  return Object.hasOwn(ERROR_TYPES, errorClass) ? ERROR_TYPES[errorClass]! : 'other'
}
