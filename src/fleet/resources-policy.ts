/** What a snapshot of the machine means for the work: whether to start something new, how much more fits, how much to claim. */
import type { ResourceSnapshot } from './resources.ts'

const MIB = 2 ** 20

/** Beyond any of these limits nothing new is started. Running work continues. */
interface ResourcePolicy {
  /** CPU usage, with spikes smoothed out. */
  cpuMax: number
  /** Memory usage. */
  memoryMax: number
  /** Memory left free for other programs. */
  memoryReserveBytes: number
  diskFreeBytesMin: number
  /** How late one timer in twenty may fire: beyond it this process cannot handle its current work. */
  lagMsMax: number
}

export const RESOURCE_POLICY: Readonly<ResourcePolicy> = {
  cpuMax: 0.8,
  memoryMax: 0.85,
  memoryReserveBytes: 512 * MIB,
  diskFreeBytesMin: 512 * MIB,
  lagMsMax: 250,
}

/** Why nothing new is started, for display; undefined if something may be. */
export function mayStart(
  snapshot: ResourceSnapshot,
  policy: Readonly<ResourcePolicy> = RESOURCE_POLICY,
): string | undefined {
  const { cpu, memory, disk, eventLoop } = snapshot
  if (isMemoryShort(snapshot, policy))
    return `${mib(memory.freeBytes)} of memory free, ${mib(policy.memoryReserveBytes)} are reserved`
  if (memory.usage > policy.memoryMax)
    return `memory at ${percent(memory.usage)} of ${mib(memory.limitBytes)}, above ${percent(policy.memoryMax)}`
  if (cpu.smoothed > policy.cpuMax)
    return `CPU at ${percent(cpu.smoothed)} of ${plural(cpu.limitCores, 'core')}, above ${percent(policy.cpuMax)}`
  if (disk !== undefined && disk.freeBytes < policy.diskFreeBytesMin)
    return `${mib(disk.freeBytes)} of disk free, less than ${mib(policy.diskFreeBytesMin)}`
  if (eventLoop.p95Ms > policy.lagMsMax)
    return `the event loop is ${Math.round(eventLoop.p95Ms)} ms late, more than ${policy.lagMsMax} ms`
  return undefined
}

/** Less memory is free than the reserve: a reason not only to start nothing, but to release something. */
export function isMemoryShort({ memory }: ResourceSnapshot, policy: Readonly<ResourcePolicy>): boolean {
  return memory.freeBytes < policy.memoryReserveBytes
}

/** What one additional worker needs. */
export interface WorkerNeed {
  bytesPerWorker: number
  /** CPU that a worker needs while busy. Default: 0, so that only the CPU limit counts. */
  coresPerWorker?: number
  policy?: Readonly<ResourcePolicy>
}

/** How many more fit within the limits. */
export function workerCapacity(snapshot: ResourceSnapshot, need: WorkerNeed): number {
  const { bytesPerWorker, coresPerWorker = 0, policy = RESOURCE_POLICY } = need
  if (mayStart(snapshot, policy) !== undefined) return 0
  const { cpu, memory } = snapshot
  const roomBytes = Math.min(
    memory.freeBytes - policy.memoryReserveBytes,
    memory.limitBytes * policy.memoryMax - memory.usedBytes,
  )
  const roomCores = (policy.cpuMax - cpu.smoothed) * cpu.limitCores
  const byMemory = Math.floor(roomBytes / bytesPerWorker)
  return Math.max(0, coresPerWorker > 0 ? Math.min(byMemory, Math.floor(roomCores / coresPerWorker)) : byMemory)
}

/** 20, 16, 12 or 8 of 20: the first row whose limits are met. */
const BATCH_STEPS = [
  { cpuMax: 0.5, memoryMax: 0.6, share: 1 },
  { cpuMax: 0.65, memoryMax: 0.7, share: 0.8 },
  { cpuMax: 0.8, memoryMax: 0.85, share: 0.6 },
] as const
const BATCH_SHARE_MIN = 0.4

/** How many tasks to claim at once at this machine's load. */
export function batchSize({ cpu, memory }: ResourceSnapshot, base = 20): number {
  const step = BATCH_STEPS.find(({ cpuMax, memoryMax }) => cpu.smoothed <= cpuMax && memory.usage <= memoryMax)
  return Math.max(1, Math.round(base * (step?.share ?? BATCH_SHARE_MIN)))
}

/** The response of the snapshot API. */
interface SnapshotReport extends Omit<ResourceSnapshot, 'atMs' | 'spanMs' | 'disk'> {
  disk: ResourceSnapshot['disk'] | null
  /** Waiting tasks, by lane. */
  queues: Record<string, number>
  batchSize: number
  workerCapacity: number
  /** True, or why not. */
  mayStart: true | string
}

interface ReportContext extends WorkerNeed {
  queues: Record<string, number>
  /** Default: 20. */
  batchBase?: number
}

export function snapshotReport(snapshot: ResourceSnapshot, context: ReportContext): SnapshotReport {
  const { cpu, memory, eventLoop, disk } = snapshot
  return {
    cpu: { usage: round(cpu.usage), smoothed: round(cpu.smoothed), limitCores: cpu.limitCores },
    memory: { ...memory, usage: round(memory.usage) },
    eventLoop: {
      p50Ms: round(eventLoop.p50Ms),
      p95Ms: round(eventLoop.p95Ms),
      maxMs: round(eventLoop.maxMs),
      busy: round(eventLoop.busy),
    },
    disk: disk ?? null,
    queues: { ...context.queues },
    batchSize: batchSize(snapshot, context.batchBase),
    workerCapacity: workerCapacity(snapshot, context),
    mayStart: mayStart(snapshot, context.policy) ?? true,
  }
}

const round = (value: number) => Math.round(value * 1000) / 1000
const percent = (share: number) => `${Math.round(share * 100)} %`
const mib = (bytes: number) => `${Math.round(bytes / MIB)} MiB`
const plural = (count: number, noun: string) => `${Number(count.toFixed(2))} ${noun}${count === 1 ? '' : 's'}`
