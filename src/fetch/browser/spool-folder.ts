/** Creates our own folder in the spool. First removes those of killed processes on this machine, since nothing else does. */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isProcessGone, MACHINE_MARK } from '../../core/process-mark.ts'

const NAME = /^browsers-([0-9a-f]+)-(\d+)-/

export function makeSpoolFolder(spool: string): string {
  mkdirSync(spool, { recursive: true })
  for (const name of readdirSync(spool)) {
    const [, machine = '', pid] = NAME.exec(name) ?? []
    if (isProcessGone({ machine, pid: Number(pid) })) rmSync(join(spool, name), { recursive: true, force: true })
  }
  const folder = join(spool, `browsers-${MACHINE_MARK}-${process.pid}-${randomUUID().slice(0, 8)}`)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}
