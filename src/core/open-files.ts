/** How many files and sockets this process has open, and may have open. */
import { readdirSync, readFileSync } from 'node:fs'

/** Read once, because a process that is out of descriptors cannot read it. Undefined if the system does not say. */
let known: { limit: number | undefined } | undefined

export function openFilesMax(): number | undefined {
  known ??= { limit: readLimit() }
  return known.limit
}

function readLimit(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return found === null ? undefined : Number(found[1])
  } catch {
    return undefined
  }
}

export function openFilesNow(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}

/** For the user: `this process may have 64 files and sockets open (ulimit -n)`. */
export function openFilesWords(): string {
  const max = openFilesMax()
  return max === undefined ? 'see `ulimit -n`' : `this process may have ${max} files and sockets open (ulimit -n)`
}
