/** CPU time of a PostgreSQL server: the postmaster, its children, and those of them that have ended. */
import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second. */
const TICK_MS = 10
/** Field indexes in /proc/PID/stat after the name: parent, user, system, and both of ended children. */
const FIELD = { parent: 1, user: 11, system: 12, childUser: 13, childSystem: 14 } as const

export function serverCpuMs(postmaster: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(name) : undefined
    if (fields === undefined) continue
    const isPostmaster = Number(name) === postmaster
    if (!isPostmaster && fields[FIELD.parent] !== postmaster) continue
    ticks += fields[FIELD.user]! + fields[FIELD.system]!
    if (isPostmaster) ticks += fields[FIELD.childUser]! + fields[FIELD.childSystem]!
  }
  return ticks * TICK_MS
}

function statOf(pid: string): number[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
  } catch {
    return undefined // it ended in between
  }
}
