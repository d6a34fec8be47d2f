/**
 * How much of this machine (or container) is in use: CPU, memory, event loop, disk. Everything is measured as a share of what
 * this process may have: if a control group allows 2 of 64 cores, two busy cores are 100 %.
 *
 * CPU is time used, never the load average: that one includes processes waiting for a disk, lags by a minute, and ignores limits.
 */

import { performance } from 'node:perf_hooks'
import { systemClock } from '../core/clock.ts'
import { every } from '../core/every.ts'
import { openControlGroups } from './resources-cgroup.ts'
import { openMachine } from './resources-machine.ts'
import { CpuMeter, DiskMeter, LoopMeter, MemoryMeter } from './resources-meters.ts'

/** Usage values are from 0 to 1. */
export interface ResourceSnapshot {
  /** When it was taken: monotonic milliseconds, not a time of day. */
  atMs: number
  /** The measured interval for CPU and event loop; 0 before the first sample, when nothing is known about them. */
  spanMs: number
  cpu: {
    /** Of the tightest limit, in this interval. */
    usage: number
    /** The same without spikes: use it for decisions. */
    smoothed: number
    /** Cores' worth of time this process may use. */
    limitCores: number
  }
  /** Of the limit with the fewest bytes left: the machine's, or that of a control group. */
  memory: { usedBytes: number; freeBytes: number; limitBytes: number; usage: number; of: 'machine' | 'group' }
  /** How late the timers of this process fired, and the share of time its event loop was busy. */
  eventLoop: { p50Ms: number; p95Ms: number; maxMs: number; busy: number }
  /** The output's disk. Undefined if the system does not say. */
  disk: { freeBytes: number; totalBytes: number } | undefined
}

export interface ResourceMonitor extends Disposable {
  /** The last sample. */
  snapshot(): ResourceSnapshot
  /** Takes a sample now. The monitor does so automatically every `sampleMs`. */
  sample(): ResourceSnapshot
  /** Called after each sample; must not throw. Returns a function that stops listening. */
  onSample(listener: (snapshot: ResourceSnapshot) => void): () => void
}

interface ResourceMonitorOptions {
  /** Default: 1000. */
  sampleMs?: number
  /** A path on the disk to watch; it need not exist yet. */
  disk: string
  /** Where /proc and /sys are. Default: `/`. */
  root?: string
  /** Monotonic milliseconds. Default: since the start of this process. */
  now?: () => number
}

const SMOOTH_MS = 3000 // one second at 100 % among seconds at 50 % counts as 64 %; three of them as 82 %

export function openResourceMonitor(options: ResourceMonitorOptions): ResourceMonitor {
  return new Sampler(options)
}

/** For a single measurement: the usage from now on for `overMs`. */
export async function measureResources(
  { overMs = 250, ...options }: ResourceMonitorOptions & { overMs?: number },
  signal?: AbortSignal,
): Promise<ResourceSnapshot> {
  using monitor = openResourceMonitor({ ...options, sampleMs: 2 ** 31 - 1 })
  await systemClock.sleep(overMs, signal)
  return monitor.sample()
}

class Sampler implements ResourceMonitor {
  readonly #now: () => number
  readonly #open = new DisposableStack()
  readonly #cpu: CpuMeter
  readonly #memory: MemoryMeter
  readonly #loop = new LoopMeter()
  readonly #disk: DiskMeter
  readonly #listeners = new Set<(snapshot: ResourceSnapshot) => void>()
  #last: ResourceSnapshot

  constructor({ sampleMs = 1000, disk, root = '/', now = () => performance.now() }: ResourceMonitorOptions) {
    this.#now = now
    const atMs = now()
    const machine = this.#open.use(openMachine(root))
    const groups = this.#open.use(openControlGroups(root))
    this.#cpu = new CpuMeter(machine, groups, atMs)
    this.#memory = new MemoryMeter(machine, groups)
    this.#disk = new DiskMeter(disk, atMs)
    this.#last = {
      atMs,
      spanMs: 0,
      cpu: { usage: 0, smoothed: 0, limitCores: this.#cpu.limitCores },
      memory: this.#memory.read(),
      eventLoop: { p50Ms: 0, p95Ms: 0, maxMs: 0, busy: 0 },
      disk: this.#disk.read(atMs),
    }
    this.#open.adopt(this.#loop, (loop) => loop.stop())
    this.#open.adopt(every(() => this.sample(), sampleMs).unref(), clearInterval)
  }

  snapshot(): ResourceSnapshot {
    return this.#last
  }

  sample(): ResourceSnapshot {
    const atMs = this.#now()
    const { atMs: lastMs, spanMs: lastSpanMs, cpu: before } = this.#last
    const spanMs = atMs - lastMs
    if (spanMs <= 0 || this.#open.disposed) return this.#last
    const usage = this.#cpu.usage(atMs) ?? before.usage
    const weight = lastSpanMs === 0 ? 1 : 1 - Math.exp(-spanMs / SMOOTH_MS)
    const smoothed = before.smoothed + weight * (usage - before.smoothed)
    this.#last = {
      atMs,
      spanMs,
      cpu: { usage, smoothed, limitCores: this.#cpu.limitCores },
      memory: this.#memory.read(),
      eventLoop: this.#loop.read(),
      disk: this.#disk.read(atMs),
    }
    for (const listener of this.#listeners) listener(this.#last)
    return this.#last
  }

  onSample(listener: (snapshot: ResourceSnapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  [Symbol.dispose](): void {
    this.#listeners.clear()
    this.#open.dispose()
  }
}
