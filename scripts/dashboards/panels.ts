/** What the dashboards show: one entry per panel. `scripts/dashboards.ts` lays them out. */

export interface Panel {
  kind: 'stat' | 'timeseries'
  title: string
  /** What it means, and what to do if it looks wrong. */
  description: string
  /** A Grafana unit. */
  unit: string
  warn?: number
  bad?: number
  /** Values below `bad` are bad: for success ratios. */
  isLowBad?: boolean
  isStacked?: boolean
  queries: readonly (readonly [expression: string, legend: string])[]
}

export interface Dashboard {
  /** File name, and suffix of the uid. */
  name: string
  title: string
  description: string
  variables: readonly { name: string; query: string }[]
  panels: readonly Panel[]
}

const SCRAPER = { name: 'scraper', query: 'label_values(sluice_queue_tasks, scraper)' }
const INSTANCE = { name: 'instance', query: 'label_values(sluice_build_info, instance)' }

type Rest = Omit<Panel, 'kind' | 'title' | 'unit' | 'queries' | 'description'>

function stat(title: string, unit: string, expression: string, description: string, rest: Rest = {}): Panel {
  return { kind: 'stat', title, unit, description, queries: [[expression, '']], ...rest }
}

function graph(title: string, unit: string, queries: Panel['queries'], description: string, rest: Rest = {}): Panel {
  return { kind: 'timeseries', title, unit, description, queries, ...rest }
}

const OF = 'scraper=~"$scraper"'
const HERE = 'instance=~"$instance"'
const quantile = (q: number, stage: string) =>
  `histogram_quantile(${q}, sum by (le) (rate(sluice_page_seconds_bucket{${OF},stage="${stage}"}[5m])))`

const overview: Dashboard = {
  name: 'overview',
  title: 'overview',
  description: 'Is everything healthy? Start here.',
  variables: [SCRAPER],
  panels: [
    stat('Pages a second', 'reqps', `sum(sluice:pages:rate5m{${OF},outcome="ok"})`, 'Pages fetched and parsed successfully, over 5 minutes.'),
    stat('Errors', 'percentunit', `max(sluice:error_ratio:rate5m{${OF}})`, 'Share of tries that failed or are retried, of the worst scraper.', { warn: 0.1, bad: 0.25 }),
    stat('Waiting', 'short', `sum(sluice:queue_tasks:max{${OF},state="pending"})`, 'Tasks waiting in all queues.'),
    stat('Workers', 'short', `sum(sluice:workers:max{${OF},state="working"})`, 'Workers with a heartbeat in the last 30 s.'),
    stat('Stuck workers', 'short', `sum(sluice:workers:max{${OF},state="stuck"})`, 'Workers without a heartbeat for more than 30 s.', { warn: 1, bad: 2 }),
    stat('Dead letters', 'short', `sum(sluice:queue_tasks:max{${OF},state="dead"})`, 'Tasks that failed for good and wait for a decision: `sluice dlq`.', { warn: 1, bad: 100 }),
    graph('Pages by outcome', 'reqps', [[`sum by (outcome) (sluice:pages:rate5m{${OF}})`, '{{outcome}}']], 'Tries by outcome.', { isStacked: true }),
    graph('Items', 'cps', [[`sum by (change) (sluice:items:rate5m{${OF}})`, '{{change}}']], 'Items by result: new, same, changed, invalid.', { isStacked: true }),
    graph('Queue', 'short', [[`sum by (scraper) (sluice:queue_tasks:max{${OF},state="pending"})`, '{{scraper}}']], 'Waiting tasks by scraper. It should fall while a run is active.'),
    graph('Time since the last success', 's', [[`time() - max by (scraper) (sluice_run_last_success_timestamp_seconds{${OF}})`, '{{scraper}}']], 'Time since a run last finished. Compare it with the schedule.'),
    graph('Firing alerts', 'short', [['count by (alertname) (ALERTS{alertstate="firing",alertname=~"Sluice.*"}) or vector(0)', '{{alertname}}']], 'Each has its steps in docs/runbook.md.', { warn: 1 }),
    graph('Time since the last scheduler heartbeat', 's', [['time() - max(sluice_scheduler_seen_timestamp_seconds)', 'silent']], 'Time since the last heartbeat of the server that fires schedules, delivers webhooks, keeps history and removes expired data. After a minute the alert fires.', { warn: 30, bad: 60 }),
    graph('Webhook deliveries', 'cps', [['sum by (outcome) (rate(sluice_webhook_deliveries_total[5m]))', '{{outcome}}']], 'Delivery attempts. Failed ones are retried, dead ones are not. Empty before the first delivery.'),
  ],
} // biome-ignore format: one line a panel

const run: Dashboard = {
  name: 'run',
  title: 'run',
  description: 'The progress of a scraper: speed, time by stage, errors. Metrics have no run id: distinguish runs of a scraper by time.',
  variables: [SCRAPER],
  panels: [
    graph('Pages by route', 'reqps', [[`sum by (route) (rate(sluice_pages_total{${OF},outcome="ok"}[5m]))`, '{{route}}']], 'Successful pages by route of the scraper.', { isStacked: true }),
    graph('Error ratio', 'percentunit', [[`sluice:error_ratio:rate5m{${OF}}`, '{{scraper}}']], 'Share of tries that failed or are retried.', { warn: 0.1, bad: 0.25 }),
    graph('Progress', 'short', [[`sum by (state) (sluice:queue_tasks:max{${OF}})`, '{{state}}']], 'Tasks by state. Done when pending and claimed are 0.', { isStacked: true }),
    graph('Time to fetch', 's', [[quantile(0.5, 'fetch'), 'p50'], [quantile(0.95, 'fetch'), 'p95']], 'From request to the last byte. If a site gets slower, lower the rate.'),
    graph('Time to parse', 's', [[quantile(0.5, 'parse'), 'p50'], [quantile(0.95, 'parse'), 'p95']], 'Time in the handler of the scraper. High: the handler waits or computes too much.'),
    graph('Time in the queue of the worker', 's', [[quantile(0.5, 'queue'), 'p50'], [quantile(0.95, 'queue'), 'p95']], 'From the claim to the start. High: the worker claims more than it can process, or waits for rate limits.'),
    graph('Retries by class', 'cps', [['sum by (class) (rate(sluice_retries_total[5m]))', '{{class}}']], 'Tries that failed and are retried, by error class. `sluice dlq` and `sluice logs` show examples.', { isStacked: true }),
    graph('Dead letters by class', 'short', [['sum by (class) (increase(sluice_dead_letters_total[30m]))', '{{class}}']], 'Tasks that failed for good in 30 minutes.', { bad: 50 }),
    graph('Bytes received', 'Bps', [['sum(rate(sluice_response_bytes_total[5m]))', 'received']], 'Bytes of responses as received over the wire.'),
    graph('Sink lag', 'short', [['max by (instance) (sluice_sink_lag_items)', '{{instance}}']], 'Accepted items that no sink has confirmed. It should fluctuate, not climb.', { warn: 1000, bad: 10000 }),
    graph('Time to flush the sinks', 's', [[quantile(0.5, 'sink'), 'p50'], [quantile(0.95, 'sink'), 'p95']], 'Slow flushes hold back the whole run: the queue of items is bounded.'),
  ],
} // biome-ignore format: one line a panel

const workersAndQueues: Dashboard = {
  name: 'workers-and-queues',
  title: 'workers and queues',
  description: 'Workers, waiting tasks, and how long they wait.',
  variables: [SCRAPER, INSTANCE],
  panels: [
    graph('Workers by state', 'short', [[`sum by (state) (sluice:workers:max{${OF}})`, '{{state}}']], 'Stuck: no heartbeat for more than 30 s. After 10 minutes a worker is gone and not shown.', { isStacked: true }),
    graph('Waiting by scraper', 'short', [[`sum by (scraper) (sluice:queue_tasks:max{${OF},state="pending"})`, '{{scraper}}']], 'Tasks waiting, due or not.'),
    graph('In progress', 'short', [[`sum by (scraper) (sluice:queue_tasks:max{${OF},state="claimed"})`, '{{scraper}}']], 'Claimed tasks. Fewer than workers while the queue grows: workers are idle.'),
    graph('Age of the oldest task', 's', [[`max by (scraper) (sluice_queue_oldest_age_seconds{${OF}})`, '{{scraper}}']], 'Time since the oldest due task was added. Only available for queues in PostgreSQL and in memory.', { warn: 86400 }),
    graph('Pages in flight', 'short', [[`sum by (instance) (sluice_worker_in_flight{${HERE}})`, '{{instance}}']], 'Pages each process is working on now.', { isStacked: true }),
    graph('Time since the last worker heartbeat', 's', [[`time() - min by (instance) (sluice_worker_heartbeat_timestamp_seconds{${HERE}})`, '{{instance}}']], 'Time since a worker last reported to its process.', { warn: 10, bad: 30 }),
    graph('Expired leases', 'short', [['sum by (instance) (increase(sluice_leases_expired_total[10m]))', '{{instance}}']], 'Leases that expired in 10 minutes, by the process that noticed. Their worker died or hung.', { bad: 20 }),
    graph('CPU', 'percentunit', [[`sluice_cpu_usage_ratio{${HERE}}`, '{{instance}}']], 'Of what the machine or container may use.', { warn: 0.85, bad: 0.95 }),
    graph('Memory', 'bytes', [[`sluice_memory_bytes{${HERE},state="used"}`, '{{instance}}']], 'Used memory of the machine or container.'),
    graph('Event loop lag', 's', [[`sluice_event_loop_lag_seconds{${HERE}}`, '{{instance}}']], '95th percentile of a second. High: heartbeats come late.', { warn: 0.1, bad: 0.5 }),
    graph('Memory of the process', 'bytes', [[`process_resident_memory_bytes{${HERE}}`, '{{instance}}']], 'Resident memory. It should level off.'),
    graph('Targets', 'short', [['up{job=~"sluice-.*"}', '{{job}} {{instance}}']], '0: Prometheus cannot read its metrics.', { isLowBad: true, bad: 1 }),
  ],
} // biome-ignore format: one line a panel

const blockingAndProxies: Dashboard = {
  name: 'blocking-and-proxies',
  title: 'blocking and proxies',
  description: 'Do sites block us, and do the proxies work?',
  variables: [SCRAPER],
  panels: [
    graph('Blocked by class', 'cps', [['sum by (class) (rate(sluice_blocked_total[15m]))', '{{class}}']], 'Block pages, challenges and login walls instead of pages.', { isStacked: true }),
    graph('Blocked by vendor', 'cps', [['sum by (vendor) (rate(sluice_blocked_total[15m]))', '{{vendor}}']], 'The vendor of the protection.', { isStacked: true }),
    graph('Share of blocked pages', 'percentunit', [['sum(rate(sluice_blocked_total[15m])) / sum(rate(sluice_pages_total[15m]))', 'blocked']], 'Slow down before you do anything else.', { warn: 0.05, bad: 0.2 }),
    graph('Throttled hosts', 'cps', [['topk(10, sum by (host) (rate(sluice_throttled_total[5m])))', '{{host}}']], 'Hosts that asked for fewer requests (429, 503 with Retry-After).'),
    graph('Circuit breakers', 'short', [[`max by (scraper) (sluice_circuit_state{${OF}})`, '{{scraper}}']], '0 closed, 1 half-open (probing), 2 open.', { warn: 1, bad: 2 }),
    graph('Working proxies', 'short', [['sum(max by (proxy) (sluice_proxy_up))', 'up'], ['count(max by (proxy) (sluice_proxy_up))', 'known']], 'A proxy is set aside after failures. If none is up, runs with proxies wait.'),
    graph('Proxies', 'short', [['max by (proxy) (sluice_proxy_up)', '{{proxy}}']], '1 working, 0 set aside.', { isLowBad: true, bad: 1 }),
  ],
} // biome-ignore format: one line a panel

const browsersAndFiles: Dashboard = {
  name: 'browsers-and-files',
  title: 'browsers and files',
  description: 'Browser pools, downloads and the disk they fill.',
  variables: [SCRAPER, INSTANCE],
  panels: [
    graph('Browser pages', 'short', [[`sum by (state) (sluice_browser_pages{${HERE}})`, '{{state}}']], 'Open: in use by a task. If there are no free ones for a long time, add browser workers.', { isStacked: true }),
    graph('Browser events', 'short', [[`sum by (event) (increase(sluice_browser_events_total{${HERE}}[10m]))`, '{{event}}']], 'Crashed and hung browsers are replaced; many of them mean too little memory.'),
    graph('Files by outcome', 'cps', [[`sum by (outcome) (rate(sluice_files_total{${OF}}[5m]))`, '{{outcome}}']], 'Download tries by outcome.', { isStacked: true }),
    graph('File tasks', 'short', [[`sum by (state) (max by (scraper, state) (sluice_file_tasks{${OF}}))`, '{{state}}']], 'Waiting files and files in progress.'),
    graph('Bytes stored', 'Bps', [[`sum by (scraper) (rate(sluice_file_bytes_total{${OF}}[5m]))`, '{{scraper}}']], 'Bytes of files that were stored.'),
    graph('File workers', 'short', [[`sum(sluice_file_workers{${HERE}})`, 'file workers']], 'Processes that store files.'),
    graph('Free disk', 'percentunit', [[`sluice_disk_free_bytes{${HERE}} / sluice_disk_total_bytes{${HERE}}`, '{{instance}}']], 'Free share of the disk with the runs.', { isLowBad: true, bad: 0.1, warn: 0.2 }),
    graph('Free bytes', 'bytes', [[`sluice_disk_free_bytes{${HERE}}`, '{{instance}}']], 'Free bytes on the disk with the runs.'),
  ],
} // biome-ignore format: one line a panel

const dataQuality: Dashboard = {
  name: 'data-quality',
  title: 'data quality',
  description: 'Has the data changed?',
  variables: [SCRAPER],
  panels: [
    graph('Filled fields', 'percentunit', [[`avg by (scraper, field) (sluice_field_filled_ratio{${OF}})`, '{{scraper}} {{field}}']], 'Share of items in which a field has a value, since the run started. A sudden drop: the site changed.'),
    graph('Filled fields compared with last week', 'percentunit', [[`avg by (scraper, field) (sluice_field_filled_ratio{${OF}}) / avg by (scraper, field) (avg_over_time(sluice_field_filled_ratio{${OF}}[7d]))`, '{{scraper}} {{field}}']], 'Below 70 % the alert fires.', { isLowBad: true, bad: 0.7 }),
    graph('Invalid items', 'percentunit', [[`sum by (scraper) (rate(sluice_items_total{${OF},change="invalid"}[15m])) / sum by (scraper) (rate(sluice_items_total{${OF}}[15m]))`, '{{scraper}}']], 'Items the schema rejected. `sluice logs` shows them.', { warn: 0.01, bad: 0.1 }),
    graph('Items by change', 'cps', [[`sum by (change) (sluice:items:rate5m{${OF}})`, '{{change}}']], 'New, same, changed, invalid.', { isStacked: true }),
    graph('Items per page', 'short', [[`sum by (scraper) (rate(sluice_items_total{${OF},change!="invalid"}[15m])) / sum by (scraper) (rate(sluice_pages_total{${OF},outcome="ok"}[15m]))`, '{{scraper}}']], 'A drop although pages succeed: selectors no longer match.'),
    graph('Time since the last success', 's', [[`time() - max by (scraper) (sluice_run_last_success_timestamp_seconds{${OF}})`, '{{scraper}}'], [`2 * max by (scraper) (sluice_schedule_interval_seconds{${OF}})`, '{{scraper}}: two intervals']], 'The data gets old. Above the second line the alert fires.'),
  ],
} // biome-ignore format: one line a panel

export const DASHBOARDS: readonly Dashboard[] = [
  overview,
  run,
  workersAndQueues,
  blockingAndProxies,
  browsersAndFiles,
  dataQuality,
]
