/** What the workers of a run report about themselves: requests in flight, memory, CPU. In constant memory. */
import type { EventOf } from '../core/events.ts'

interface WorkerNumbers {
  workerId: string
  inFlight: number
  rssBytes: number
  cpuMs: number
  /** When it last reported (epoch ms). */
  atMs: number
}

export interface WorkersSnapshot {
  workers: WorkerNumbers[]
  inFlight: number
  rssBytes: number
  rssBytesMax: number
  cpuMs: number
  /** CPU used over the last reports of all workers; 1 is one core. */
  cpuRatio: number
}

interface WorkerState extends WorkerNumbers {
  cpuRatio: number
}

const WORKERS_MAX = 256
/** A worker that has been silent for this long no longer counts as using memory. */
const SILENT_MS = 30_000

export class WorkerTally {
  readonly #workers = new Map<string, WorkerState>()
  #rssBytesMax = 0
  /** CPU time of workers that are no longer tracked. */
  #departedCpuMs = 0

  record(event: EventOf<'worker.in-flight'>, atMs: number): void {
    const before = this.#workers.get(event.workerId)
    if (before === undefined && this.#workers.size >= WORKERS_MAX) this.#forgetSilent(atMs)
    if (before === undefined && this.#workers.size >= WORKERS_MAX) return
    const passedMs = before === undefined ? 0 : atMs - before.atMs
    this.#workers.set(event.workerId, {
      workerId: event.workerId,
      inFlight: event.inFlight,
      rssBytes: event.rssBytes,
      cpuMs: event.cpuMs,
      atMs,
      cpuRatio: passedMs > 0 ? Math.max(0, event.cpuMs - before!.cpuMs) / passedMs : (before?.cpuRatio ?? 0),
    })
    this.#rssBytesMax = Math.max(this.#rssBytesMax, sumOf(this.#live(atMs), 'rssBytes'))
  }

  snapshot(nowMs: number): WorkersSnapshot {
    const live = this.#live(nowMs)
    return {
      workers: live.map(({ cpuRatio: _, ...numbers }) => numbers),
      inFlight: sumOf(live, 'inFlight'),
      rssBytes: sumOf(live, 'rssBytes'),
      rssBytesMax: this.#rssBytesMax,
      cpuMs: this.#departedCpuMs + sumOf([...this.#workers.values()], 'cpuMs'),
      cpuRatio: sumOf(live, 'cpuRatio'),
    }
  }

  #live(nowMs: number): WorkerState[] {
    return [...this.#workers.values()].filter(({ atMs }) => nowMs - atMs <= SILENT_MS)
  }

  #forgetSilent(nowMs: number): void {
    for (const { workerId, atMs, cpuMs } of this.#workers.values()) {
      if (nowMs - atMs <= SILENT_MS) continue
      this.#departedCpuMs += cpuMs
      this.#workers.delete(workerId)
    }
  }
}

function sumOf<K extends string>(rows: readonly Record<K, number>[], key: K): number {
  let sum = 0
  for (const row of rows) sum += row[key]
  return sum
}
