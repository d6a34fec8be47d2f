/**
 * Which process made a file or folder, where several machines or containers share the disk: a process id alone says nothing there,
 * because each of them has its own.
 */
import { hash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname, uptime } from 'node:os'

/** This start of the kernel. */
export const BOOT = bootId()

/**
 * All processes that see each other's ids, and only they: one start of one kernel, one namespace of process ids. A host name alone
 * would not do, because containers of several machines may be given the same one.
 */
export const MACHINE_MARK = hash('sha256', [hostname(), BOOT, pidNamespace()].join('\n'), 'hex').slice(0, 16)

/** Its process does not exist any more. False for those of other machines: nothing is known about them here. */
export function isProcessGone({ machine, pid }: { machine: string; pid: number }): boolean {
  if (machine !== MACHINE_MARK || !Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Dead, but its parent has not asked: common in containers whose first process never does. */
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

/** `pid:[4026531836]`; empty where the system has no such thing. */
function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}
