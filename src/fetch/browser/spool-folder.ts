/** A folder of our own below the spool. Those of processes that were killed are removed on the way: nobody else will. */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export function makeSpoolFolder(spool: string): string {
  mkdirSync(spool, { recursive: true })
  for (const name of readdirSync(spool)) {
    const pid = Number(/^browsers-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isRunning(pid)) rmSync(join(spool, name), { recursive: true, force: true })
  }
  const folder = join(spool, `browsers-${process.pid}-${randomUUID().slice(0, 8)}`)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
