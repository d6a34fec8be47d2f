/** What an instance reports about itself. */
import { getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'
import { residentBytes } from '../../core/resident-memory.ts'
import { judgeHealth, type TaskHistory } from '../../protocol/health.ts'
import { type HealthMessage, MESSAGE_VERSION } from '../../protocol/messages.ts'
import type { InstanceOptions } from './instance.ts'

const MEGABYTE = 1024 ** 2

export class HealthReport {
  readonly #options: Pick<InstanceOptions, 'type' | 'parts'>
  readonly #history: TaskHistory
  #cpu = process.threadCpuUsage()
  #atMs = performance.now()

  constructor(options: Pick<InstanceOptions, 'type' | 'parts'>, history: TaskHistory) {
    this.#options = options
    this.#history = history
  }

  take({ active, isPaused }: { active: number; isPaused: boolean }): HealthMessage {
    const { type, parts } = this.#options
    const tasks = this.#history.lastHour()
    const { lastSuccessMs, startedAtMs } = this.#history
    const memoryMb = this.memoryMb()
    const cpuPercent = this.#cpuPercent()
    const { status, reason } = judgeHealth({
      tasks,
      sinceSuccessMs: Date.now() - (lastSuccessMs ?? startedAtMs),
      memoryMb,
      cpuPercent,
    })
    const all = tasks.ok + tasks.failed
    const { size, successRate } = parts.chains.proxies()
    return {
      version: MESSAGE_VERSION,
      worker_id: parts.workerId,
      scraper_type: type,
      status,
      reason,
      is_paused: isPaused,
      active_tasks: active,
      completed_tasks_last_hour: all,
      error_rate_last_hour: all === 0 ? 0 : round(tasks.failed / all),
      memory_usage_mb: memoryMb,
      cpu_usage_percent: cpuPercent,
      proxy_pool_size: size,
      proxy_success_rate: round(successRate),
      last_successful_scrape: lastSuccessMs === undefined ? null : new Date(lastSuccessMs).toISOString(),
      reported_at: new Date().toISOString(),
    }
  }

  /** For a process, all of its memory; for a thread only its own heap, since the rest is shared. */
  memoryMb(): number {
    if (isMainThread) return Math.round(residentBytes() / MEGABYTE)
    const { total_heap_size, external_memory } = getHeapStatistics()
    return Math.round((total_heap_size + external_memory) / MEGABYTE)
  }

  #cpuPercent(): number {
    const spent = process.threadCpuUsage(this.#cpu)
    const sinceMs = Math.max(1, performance.now() - this.#atMs)
    this.#cpu = process.threadCpuUsage()
    this.#atMs = performance.now()
    return Math.round((spent.user + spent.system) / 10 / sinceMs)
  }
}

const round = (share: number) => Math.round(share * 10_000) / 10_000
