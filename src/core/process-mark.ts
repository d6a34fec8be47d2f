/**
 * Which process created a file or folder on a disk that several machines or containers share. A process id alone is not enough,
 * because each of them has its own ids.
 */
import { hash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname, uptime } from 'node:os'

/** Identifies this boot of the kernel. */
export const BOOT = bootId()

/**
 * Shared by exactly those processes that see each other's ids: the same boot of the same kernel, and the same pid namespace. A
 * host name alone is not enough, because containers on several machines may have the same one.
 */
export const MACHINE_MARK = hash('sha256', [hostname(), BOOT, pidNamespace()].join('\n'), 'hex').slice(0, 16)

/** Whether the process no longer exists. False for processes of other machines, about which nothing is known here. */
export function isProcessGone({ machine, pid }: { machine: string; pid: number }): boolean {
  if (machine !== MACHINE_MARK || !Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** A zombie, which its parent has not reaped: common in containers whose first process never does. */
function isZombie(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return String(Math.round((Date.now() / 1000 - uptime()) / 60))
  }
}

/** `pid:[4026531836]`; empty if the system has no pid namespaces. */
function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}
