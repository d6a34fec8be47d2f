/** The health of a worker: what it did in the last hour, and the resulting status. */
import type { HealthMessage } from './messages.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
/** With fewer tasks a share means nothing: one failure of one would be 100 %. */
const TASKS_MIN = 3

/** Tasks of the last hour in buckets of one minute: memory does not grow with the number of tasks. */
export class TaskHistory {
  readonly #minutes = new Map<number, { ok: number; failed: number }>()
  readonly #now: () => number
  readonly startedAtMs: number
  lastSuccessMs: number | undefined

  constructor(now: () => number = Date.now) {
    this.#now = now
    this.startedAtMs = now()
  }

  add(isOk: boolean): void {
    const minute = Math.floor(this.#now() / MINUTE_MS)
    const bucket = this.#minutes.get(minute) ?? { ok: 0, failed: 0 }
    bucket[isOk ? 'ok' : 'failed']++
    this.#minutes.set(minute, bucket)
    if (isOk) this.lastSuccessMs = this.#now()
  }

  lastHour(): { ok: number; failed: number } {
    const total = { ok: 0, failed: 0 }
    const oldest = Math.floor((this.#now() - HOUR_MS) / MINUTE_MS)
    for (const [minute, { ok, failed }] of this.#minutes) {
      if (minute <= oldest) this.#minutes.delete(minute)
      else {
        total.ok += ok
        total.failed += failed
      }
    }
    return total
  }
}

interface Vitals {
  tasks: { ok: number; failed: number }
  /** Since the last success, or since the start. Only matters if there was something to do. */
  sinceSuccessMs: number
  memoryMb: number
  cpuPercent: number
}

export function judgeHealth({ tasks, sinceSuccessMs, memoryMb, cpuPercent }: Vitals): {
  status: HealthMessage['status']
  reason: string | null
} {
  const all = tasks.ok + tasks.failed
  const errorRate = all < TASKS_MIN ? 0 : tasks.failed / all
  const unhealthy = [
    errorRate > 0.8 && 'over 80 % of the tasks of the last hour failed',
    tasks.failed > 0 && sinceSuccessMs > HOUR_MS / 2 && 'no success for 30 minutes',
  ].find((reason) => reason !== false)
  if (unhealthy !== undefined) return { status: 'unhealthy', reason: unhealthy as string }
  const degraded = [
    errorRate > 0.5 && 'over half of the tasks of the last hour failed',
    memoryMb > 1024 && 'over 1 GB of memory',
    cpuPercent > 90 && 'over 90 % of a core',
  ].find((reason) => reason !== false)
  return degraded === undefined
    ? { status: 'healthy', reason: null }
    : { status: 'degraded', reason: degraded as string }
}
