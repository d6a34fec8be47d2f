/** Turns counters into the figures of a snapshot; each meter remembers its last reading. */
import { existsSync, statfs, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { ResourceSnapshot } from './resources.ts'
import type { ControlGroups } from './resources-cgroup.ts'
import type { CpuTimes, Machine } from './resources-machine.ts'

const DISK_MS = 5000
const LAG_RESOLUTION_MS = 20

interface GroupUse {
  limitCores: number | undefined
  usedUs: number | undefined
}

/** CPU time as a share of the time between two readings. */
export class CpuMeter {
  readonly #machine: Machine
  readonly #groups: ControlGroups
  #atMs: number
  #times: CpuTimes
  #uses: readonly GroupUse[]

  constructor(machine: Machine, groups: ControlGroups, atMs: number) {
    this.#machine = machine
    this.#groups = groups
    this.#atMs = atMs
    this.#times = machine.cpuTimes()
    this.#uses = this.#readUses()
  }

  get limitCores(): number {
    return Math.min(this.#machine.cores, ...this.#uses.map(({ limitCores = Number.POSITIVE_INFINITY }) => limitCores))
  }

  /** The highest usage of all limits. Undefined if no counter has moved yet: the machine's counters tick every 10 ms. */
  usage(atMs: number): number | undefined {
    const times = this.#machine.cpuTimes()
    const uses = this.#readUses()
    const shares = [(times.busy - this.#times.busy) / (times.total - this.#times.total)]
    for (const [i, { limitCores, usedUs }] of uses.entries()) {
      const before = this.#uses[i]!.usedUs
      if (limitCores === undefined || usedUs === undefined || before === undefined) continue
      shares.push((usedUs - before) / (limitCores * (atMs - this.#atMs) * 1000))
    }
    this.#atMs = atMs
    this.#times = times
    this.#uses = uses
    const known = shares.filter(Number.isFinite)
    return known.length === 0 ? undefined : Math.min(1, Math.max(0, ...known)) // `iowait` may go back by a tick
  }

  #readUses(): GroupUse[] {
    return this.#groups.cpu.map((group) => {
      const limitCores = group.limitCores()
      return { limitCores, usedUs: limitCores === undefined ? undefined : group.usedUs() }
    })
  }
}

/** The limit with the fewest bytes left. */
export class MemoryMeter {
  readonly #machine: Machine
  readonly #groups: ControlGroups

  constructor(machine: Machine, groups: ControlGroups) {
    this.#machine = machine
    this.#groups = groups
  }

  read(): ResourceSnapshot['memory'] {
    const { totalBytes, availableBytes } = this.#machine.memory()
    let tightest = memoryOf(totalBytes - availableBytes, totalBytes, 'machine')
    for (const group of this.#groups.memory) {
      const limitBytes = group.limitBytes()
      if (limitBytes === undefined || limitBytes >= totalBytes) continue // no need to read its usage
      const usedBytes = group.usedBytes()
      if (usedBytes === undefined) continue
      const found = memoryOf(usedBytes, limitBytes, 'group')
      if (found.freeBytes < tightest.freeBytes) tightest = found
    }
    return tightest
  }
}

function memoryOf(usedBytes: number, limitBytes: number, of: 'machine' | 'group'): ResourceSnapshot['memory'] {
  const usage = limitBytes > 0 ? Math.min(1, usedBytes / limitBytes) : 1
  return { usedBytes, freeBytes: Math.max(0, limitBytes - usedBytes), limitBytes, usage, of }
}

/** Since the last reading. */
export class LoopMeter {
  readonly #delays = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
  #utilization = performance.eventLoopUtilization()

  constructor() {
    this.#delays.enable()
  }

  read(): ResourceSnapshot['eventLoop'] {
    const now = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(now, this.#utilization).utilization
    this.#utilization = now
    // The histogram records the time between two ticks, so a loop that is never late shows the resolution itself.
    const isKnown = this.#delays.count > 0
    const lateMs = (ns: number) => (isKnown ? Math.max(0, ns / 1e6 - LAG_RESOLUTION_MS) : 0)
    const lag = {
      p50Ms: lateMs(this.#delays.percentile(50)),
      p95Ms: lateMs(this.#delays.percentile(95)),
      maxMs: lateMs(this.#delays.max),
    }
    this.#delays.reset()
    return { ...lag, busy: Number.isFinite(busy) ? busy : 0 }
  }

  stop(): void {
    this.#delays.disable()
  }
}

/** Queried asynchronously, one query at a time: an unresponsive network disk must not stop the crawl. */
export class DiskMeter {
  readonly #path: string
  #askedAtMs: number
  #isAsking = false
  #known: ResourceSnapshot['disk']

  constructor(path: string, atMs: number) {
    this.#path = nearestFolder(resolve(path))
    this.#askedAtMs = atMs
    try {
      this.#known = spaceOf(statfsSync(this.#path))
    } catch {
      this.#known = undefined
    }
  }

  read(atMs: number): ResourceSnapshot['disk'] {
    if (!this.#isAsking && atMs - this.#askedAtMs >= DISK_MS) {
      this.#isAsking = true
      this.#askedAtMs = atMs
      statfs(this.#path, (error, stats) => {
        this.#isAsking = false
        if (error === null) this.#known = spaceOf(stats)
      })
    }
    return this.#known
  }
}

const spaceOf = ({ bavail, blocks, bsize }: { bavail: number; blocks: number; bsize: number }) => ({
  freeBytes: bavail * bsize,
  totalBytes: blocks * bsize,
})

function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path))
}
