/** The processes of a browser, as Linux reports them: which ones belong to it, their memory, and how to kill them. */
import { readdirSync, readFileSync } from 'node:fs'

interface ProcessMemory {
  pid: number
  /** Resident memory. */
  bytes: number
  /** The part that is not shared with other processes. */
  ownBytes: number
}

/** `pid` and its living descendants; only `pid` itself where there is no /proc. */
export function treeOf(pid: number): number[] {
  const tree = [pid]
  for (const one of tree) {
    try {
      for (const thread of readdirSync(`/proc/${one}/task`))
        for (const child of readFileSync(`/proc/${one}/task/${thread}/children`, 'utf8').split(' '))
          if (child !== '') tree.push(Number(child))
    } catch {
      // it ended while we looked
    }
  }
  return tree
}

/** From `status`: 30 µs per process; an exact proportional share (`smaps_rollup`) takes a millisecond. */
export function memoryOf(pids: readonly number[]): ProcessMemory[] {
  return pids.flatMap((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'latin1')
      const figure = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024
      return [{ pid, bytes: figure('VmRSS'), ownBytes: figure('RssAnon') }]
    } catch {
      return []
    }
  })
}

/** The total: the private memory of each process, plus the shared memory once. */
export function sumOf(memory: readonly ProcessMemory[]): number {
  const shared = Math.max(0, ...memory.map(({ bytes, ownBytes }) => bytes - ownBytes))
  return memory.reduce((sum, { ownBytes }) => sum + ownBytes, shared)
}

/** Whether the process runs a page (or a frame of one), according to its command line. */
export function isRenderer(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('--type=renderer')
  } catch {
    return false
  }
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended by itself
  }
}

/** Kills the process group that `pid` leads, and any descendants that have left the group. */
export function killTree(pid: number): void {
  const tree = treeOf(pid)
  killProcess(-pid)
  for (const one of tree) killProcess(one)
}
