/** The metrics of the table as prom-client objects in one registry. */
import type * as prom from 'prom-client'
import { METRICS, type MetricName, type MetricSpec } from './metrics-table.ts'

export type Instruments = ReturnType<typeof createInstruments>

/** `library` is prom-client, loaded by whoever needs it. */
export function createInstruments(library: typeof prom, registry: prom.Registry) {
  function make(name: MetricName): prom.Metric {
    const { type, help, labels, buckets }: MetricSpec = METRICS[name]
    const config = { name, help, labelNames: [...labels], registers: [registry] }
    if (type === 'histogram') return new library.Histogram({ ...config, buckets: [...(buckets ?? [])] })
    return type === 'counter' ? new library.Counter(config) : new library.Gauge(config)
  }
  // The table decides each type; a wrong word below fails in the test that feeds every event.
  const counter = (name: MetricName) => make(name) as prom.Counter
  const gauge = (name: MetricName) => make(name) as prom.Gauge
  const histogram = (name: MetricName) => make(name) as prom.Histogram
  return {
    pages: counter('sluice_pages_total'),
    pageSeconds: histogram('sluice_page_seconds'),
    suspectPages: counter('sluice_suspect_pages_total'),
    notFetched: counter('sluice_not_fetched_total'),
    items: counter('sluice_items_total'),
    queueTasks: gauge('sluice_queue_tasks'),
    queueOldestAge: gauge('sluice_queue_oldest_age_seconds'),
    retries: counter('sluice_retries_total'),
    deadLetters: counter('sluice_dead_letters_total'),
    leasesExpired: counter('sluice_leases_expired_total'),
    throttled: counter('sluice_throttled_total'),
    blocked: counter('sluice_blocked_total'),
    circuitState: gauge('sluice_circuit_state'),
    webhookDeliveries: counter('sluice_webhook_deliveries_total'),
    proxyUp: gauge('sluice_proxy_up'),
    responseBytes: counter('sluice_response_bytes_total'),
    workers: gauge('sluice_workers'),
    workerInFlight: gauge('sluice_worker_in_flight'),
    workerHeartbeat: gauge('sluice_worker_heartbeat_timestamp_seconds'),
    browserPages: gauge('sluice_browser_pages'),
    browserEvents: counter('sluice_browser_events_total'),
    fileTasks: gauge('sluice_file_tasks'),
    files: counter('sluice_files_total'),
    fileBytes: counter('sluice_file_bytes_total'),
    fileWorkers: gauge('sluice_file_workers'),
    cpuUsage: gauge('sluice_cpu_usage_ratio'),
    memory: gauge('sluice_memory_bytes'),
    diskFree: gauge('sluice_disk_free_bytes'),
    diskTotal: gauge('sluice_disk_total_bytes'),
    loopLag: gauge('sluice_event_loop_lag_seconds'),
    sinkLag: gauge('sluice_sink_lag_items'),
    fieldFilled: gauge('sluice_field_filled_ratio'),
    lastSuccess: gauge('sluice_run_last_success_timestamp_seconds'),
    scheduleInterval: gauge('sluice_schedule_interval_seconds'),
    scheduleSince: gauge('sluice_schedule_since_timestamp_seconds'),
    schedulerSeen: gauge('sluice_scheduler_seen_timestamp_seconds'),
    buildInfo: gauge('sluice_build_info'),
    oldRequests: counter('scraper_requests_total'),
    oldRequestSeconds: histogram('scraper_request_duration_seconds'),
    oldItems: counter('scraper_items_scraped_total'),
    oldRetries: counter('scraper_retries_total'),
    oldErrors: counter('scraper_errors_total'),
  }
}
