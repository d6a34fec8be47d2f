/** Runs a command and measures what it and all its descendants cost: wall time, CPU seconds, peak memory. Linux only. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'

export interface Cost {
  readonly wallMs: number
  /** User and system time of the whole tree, including start-up; the kernel counts in steps of 10 ms. */
  readonly cpuMs: number
  /** The sum of each process's own peak (VmHWM), so an upper bound for the tree. */
  readonly peakRssMb: number
  /** The peak of the command itself, without its descendants. */
  readonly ownRssMb: number
  /** The highest peak of any single process. */
  readonly largestRssMb: number
  readonly processes: number
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Ticks of /proc are 1/100 s on every Linux that Node runs on. */
const TICK_MS = 10
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024

/** CPU time of this process's reaped children, including their own reaped children. */
function endedChildrenCpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS
}

/** `pid` and its running descendants. */
export function treeOf(pid: number): number[] {
  const tree = [pid]
  for (const one of tree) {
    try {
      for (const thread of readdirSync(`/proc/${one}/task`))
        for (const child of readFileSync(`/proc/${one}/task/${thread}/children`, 'utf8').split(' '))
          if (child !== '') tree.push(Number(child))
    } catch {
      // it ended in the meantime
    }
  }
  return tree
}

/** A memory figure from /proc/PID/status in MB; 0 for a process that is gone. */
export function statusMb(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  try {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return found === null ? 0 : Number(found[1]) / 1024
  } catch {
    return 0
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended by itself
  }
}

export interface RunOptions {
  readonly timeoutMs: number
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** How often memory is sampled. A peak after the last sample is missed, so this is short. */
  readonly sampleMs?: number
  readonly onSample?: (tree: readonly number[]) => void
}

/**
 * Only one measured command may run at a time: CPU is the increase in this process's ended children. A process that keeps running
 * in the meantime (the site) is not included.
 */
export async function runMeasured(command: string, args: readonly string[], options: RunOptions): Promise<Cost> {
  const { timeoutMs, cwd, env, sampleMs = 50, onSample } = options
  const cpuBefore = endedChildrenCpuMs()
  const startedMs = performance.now()
  const child = spawn(command, args, { cwd, env: env ?? process.env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    if (stdout.length < OUTPUT_BYTES_MAX) stdout += chunk
  })
  child.stderr.on('data', (chunk: Buffer) => {
    if (stderr.length < OUTPUT_BYTES_MAX) stderr += chunk
  })
  const peaks = new Map<number, number>()
  const sampler = setInterval(() => {
    if (child.pid === undefined) return
    const tree = treeOf(child.pid)
    for (const pid of tree) peaks.set(pid, Math.max(peaks.get(pid) ?? 0, statusMb(pid, 'VmHWM')))
    onSample?.(tree)
  }, sampleMs)
  const deadline = setTimeout(() => {
    for (const pid of child.pid === undefined ? [] : treeOf(child.pid)) killQuietly(pid)
  }, timeoutMs)
  let exitCode: number | null
  try {
    ;[exitCode] = (await once(child, 'close')) as [number | null]
  } finally {
    clearInterval(sampler)
    clearTimeout(deadline)
  }
  const wallMs = performance.now() - startedMs
  if (exitCode === null)
    throw new Error(`${command} ${args.join(' ')} was killed after ${Math.round(wallMs)} ms\n${stderr}`)
  const peakRssMb = [...peaks.values()].reduce((sum, mb) => sum + mb, 0)
  const ownRssMb = peaks.get(child.pid!) ?? 0
  const largestRssMb = Math.max(0, ...peaks.values())
  const cpuMs = endedChildrenCpuMs() - cpuBefore
  return { wallMs, cpuMs, peakRssMb, ownRssMb, largestRssMb, processes: peaks.size, exitCode, stdout, stderr }
}
