/** The machine's CPU time and memory: from /proc, or from Node if there is no /proc. */
import { readFileSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { KernelFile } from './resources-file.ts'

/** Since the machine was started, in ticks of any length: only ratios of differences are meaningful. */
export interface CpuTimes {
  busy: number
  total: number
}

export interface Machine extends Disposable {
  /** Cores this process may run on. */
  readonly cores: number
  /** For these cores, across all processes. */
  cpuTimes(): CpuTimes
  memory(): { totalBytes: number; availableBytes: number }
}

export function openMachine(root: string): Machine {
  return openProc(root) ?? openNode()
}

const BYTES_PER_CPU_MAX = 256

function openProc(root: string): Machine | undefined {
  using files = new DisposableStack()
  const known = KernelFile.open(join(root, 'proc/meminfo'), 512)
  const all = KernelFile.open(join(root, 'proc/stat'), 1024 * BYTES_PER_CPU_MAX)
  if (all === undefined || known === undefined) {
    known?.[Symbol.dispose]()
    all?.[Symbol.dispose]()
    return undefined
  }
  const meminfo = files.use(known)
  const present = [...all.read().matchAll(/^cpu(\d+) /gm)].map(([, id]) => Number(id))
  all[Symbol.dispose]()
  const allowed = allowedCpus(root)
  const mine = present.filter((id) => allowed === undefined || allowed.has(id))
  // No overlap: a container's view with its own numbering (lxcfs), which has no other cores anyway.
  const isAll = mine.length === 0 || mine.length === present.length
  // The first line is the sum of all: if every core is ours, the rest need not be read.
  const bytesMax = BYTES_PER_CPU_MAX * (isAll ? 1 : Math.max(...mine) + 2)
  const stat = files.use(KernelFile.open(join(root, 'proc/stat'), bytesMax)!)
  const lines = isAll ? /^cpu +(.*)$/gm : new RegExp(`^cpu(?:${mine.join('|')}) (.*)$`, 'gm')
  const open = files.move()
  return {
    cores: (isAll ? present.length : mine.length) || os.availableParallelism(),
    cpuTimes: () => [...stat.read().matchAll(lines)].map(([, numbers]) => timesOf(numbers!)).reduce(plus, NO_TIMES),
    memory: () => memoryOf(meminfo.read()),
    [Symbol.dispose]: () => open.dispose(),
  }
}

/**
 * user nice system idle iowait irq softirq steal. Guest time is included in `user`; time stolen by a hypervisor is not available
 * to us.
 */
function timesOf(numbers: string): CpuTimes {
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = numbers
    .split(' ')
    .map(Number)
  const busy = user + nice + system + irq + softirq + steal
  return { busy, total: busy + idle + iowait }
}

/** MemAvailable is what can be allocated without swapping: free memory, and the reclaimable part of the caches. */
function memoryOf(meminfo: string): { totalBytes: number; availableBytes: number } {
  const kibOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(meminfo)?.[1] ?? Number.NaN)
  const availableKib = kibOf('MemAvailable')
  return {
    totalBytes: kibOf('MemTotal') * 1024,
    availableBytes: (Number.isNaN(availableKib) ? kibOf('MemFree') : availableKib) * 1024,
  }
}

/** By cpuset or affinity; undefined if unknown. Read once: it rarely changes, and the total stays nearly right. */
function allowedCpus(root: string): Set<number> | undefined {
  let status: string
  try {
    status = readFileSync(join(root, 'proc/self/status'), 'latin1')
  } catch {
    return undefined
  }
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1]
  if (list === undefined) return undefined
  const ranges = list.split(',').map((range) => range.split('-').map(Number))
  return new Set(
    ranges.flatMap(([first = 0, last = first]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
  )
}

function openNode(): Machine {
  return {
    cores: os.availableParallelism(),
    cpuTimes: () =>
      os
        .cpus()
        .map(({ times: { user, nice, sys, idle, irq } }) => ({
          busy: user + nice + sys + irq,
          total: user + nice + sys + irq + idle,
        }))
        .reduce(plus, NO_TIMES),
    memory: () => ({ totalBytes: os.totalmem(), availableBytes: os.freemem() }),
    [Symbol.dispose]: () => {},
  }
}

const NO_TIMES: CpuTimes = { busy: 0, total: 0 }
const plus = (a: CpuTimes, b: CpuTimes): CpuTimes => ({ busy: a.busy + b.busy, total: a.total + b.total })
