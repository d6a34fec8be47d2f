/**
 * Limits and usage of the control groups of this process (v1 or v2). Groups are nested, and each may have a limit:
 * `/kubepods/pod1/container` is bound by three. All of them are returned; the caller uses the tightest.
 *
 * In a container the path in /proc/self/cgroup may be the host's, while /sys/fs/cgroup begins at the container: missing parts of
 * a path are skipped. Groups are expected at the standard mount point. If the process is moved to another group later, that is
 * not noticed; changed limits are.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KernelFile, numberIn } from './resources-file.ts'

interface CpuGroup {
  /** How many cores' worth of time it may use; undefined without a limit. */
  limitCores(): number | undefined
  /** Total CPU time used by all processes in it. */
  usedUs(): number | undefined
}

interface MemoryGroup {
  /** Undefined without a limit. v1 expresses "none" as a number beyond any machine. */
  limitBytes(): number | undefined
  /** Without what the kernel reclaims by itself: file pages that have not been used lately. */
  usedBytes(): number | undefined
}

export interface ControlGroups extends Disposable {
  /** The innermost first. */
  readonly cpu: readonly CpuGroup[]
  readonly memory: readonly MemoryGroup[]
}

export function openControlGroups(root: string): ControlGroups {
  const files = new DisposableStack()
  const open = (folder: string, name: string, bytesMax?: number) => {
    const file = KernelFile.open(join(folder, name), bytesMax)
    return file && files.use(file)
  }
  const own = ownPaths(root)
  const mount = join(root, 'sys/fs/cgroup')
  const ownV2 = own.get('')
  const v2 = ownV2 === undefined ? [] : foldersUp(v2Mount(mount), ownV2)
  const v1 = (controller: string, path = own.get(controller)) =>
    path === undefined ? undefined : foldersUp(join(mount, controller), path)
  // Two controllers, often mounted as one. If they are separate, a group has the same path in both.
  const accounts = v1('cpuacct', own.get('cpu'))
  const cpu =
    v1('cpu')?.map((folder, i) => cpuV1(folder, accounts![i]!, open)) ?? v2.map((folder) => cpuV2(folder, open))
  const memory = v1('memory')?.map((folder) => memoryV1(folder, open)) ?? v2.map((folder) => memoryV2(folder, open))
  return {
    cpu: cpu.filter((group) => group !== undefined),
    memory: memory.filter((group) => group !== undefined),
    [Symbol.dispose]: () => files.dispose(),
  }
}

type Open = (folder: string, name: string, bytesMax?: number) => KernelFile | undefined

const STAT_BYTES_MAX = 8192

function cpuV2(folder: string, open: Open): CpuGroup | undefined {
  const max = open(folder, 'cpu.max')
  const stat = open(folder, 'cpu.stat')
  if (max === undefined || stat === undefined) return undefined // the root group has no limit
  return {
    limitCores: () => {
      const [quota, period] = max.read().split(' ').map(numberIn)
      return quota === undefined || !period ? undefined : quota / period
    },
    usedUs: () => fieldIn(stat.read(), 'usage_usec'),
  }
}

function cpuV1(folder: string, account: string, open: Open): CpuGroup | undefined {
  const quota = open(folder, 'cpu.cfs_quota_us')
  const period = open(folder, 'cpu.cfs_period_us')
  const usage = open(account, 'cpuacct.usage')
  if (quota === undefined || period === undefined || usage === undefined) return undefined
  return {
    limitCores: () => {
      const [quotaUs, periodUs] = [numberIn(quota.read()), numberIn(period.read())]
      return quotaUs === undefined || quotaUs <= 0 || !periodUs ? undefined : quotaUs / periodUs
    },
    usedUs: () => {
      const usedNs = numberIn(usage.read())
      return usedNs === undefined ? undefined : usedNs / 1000
    },
  }
}

function memoryV2(folder: string, open: Open): MemoryGroup | undefined {
  const max = open(folder, 'memory.max')
  const high = open(folder, 'memory.high')
  const current = open(folder, 'memory.current')
  const stat = open(folder, 'memory.stat', STAT_BYTES_MAX)
  if (max === undefined || current === undefined) return undefined
  return {
    limitBytes: () => {
      // Above `high` nothing is killed, but everything is slowed down until usage drops: for us that is a limit, too.
      const limits = [max, high].map((file) => numberIn(file?.read())).filter((limit) => limit !== undefined)
      return limits.length === 0 ? undefined : Math.min(...limits)
    },
    usedBytes: () => without(numberIn(current.read()), fieldIn(stat?.read(), 'inactive_file')),
  }
}

function memoryV1(folder: string, open: Open): MemoryGroup | undefined {
  const limit = open(folder, 'memory.limit_in_bytes')
  const usage = open(folder, 'memory.usage_in_bytes')
  const stat = open(folder, 'memory.stat', STAT_BYTES_MAX)
  if (limit === undefined || usage === undefined) return undefined
  return {
    limitBytes: () => numberIn(limit.read()),
    usedBytes: () => without(numberIn(usage.read()), fieldIn(stat?.read(), 'total_inactive_file')),
  }
}

/** Controller → path of this process's group; '' is v2. */
function ownPaths(root: string): Map<string, string> {
  const paths = new Map<string, string>()
  for (const line of textOf(join(root, 'proc/self/cgroup')).split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    for (const controller of controllers?.split(',') ?? []) paths.set(controller, path!)
  }
  return paths
}

/** If v1 and v2 are both in use, v2 has its own folder. */
function v2Mount(mount: string): string {
  const beside = join(mount, 'unified')
  return existsSync(beside) ? beside : mount
}

/** From the group up to the mount point. A path that leads outside (`/../x`) has an upper part that is hidden from us. */
function foldersUp(mount: string, path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..')
  return [...parts.keys()]
    .map((i) => join(mount, ...parts.slice(0, i + 1)))
    .reverse()
    .concat(mount)
}

/** The number after a name at the beginning of a line. */
function fieldIn(text: string | undefined, name: string): number | undefined {
  const found = text === undefined ? null : new RegExp(`^${name} (\\d+)`, 'm').exec(text)
  return found === null ? undefined : Number(found[1])
}

const without = (all: number | undefined, part = 0) => (all === undefined ? undefined : Math.max(0, all - part))

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
