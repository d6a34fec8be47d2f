/** Which browser folders are removed when several machines share a spool. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/sluice.ts'
import { MACHINE_MARK } from '../../core/process-mark.ts'
import { makeSpoolFolder } from './spool-folder.ts'

const MODULE = new URL('./spool-folder.ts', import.meta.url).href
const MAKE = (spool: string) =>
  `const { makeSpoolFolder } = await import('${MODULE}'); console.log(makeSpoolFolder('${spool}'))`

/** Runs in another process, which has ended when this returns. */
function makeElsewhere(spool: string, wrapper: string[] = []): { folder: string; error: string } {
  const [file, ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', MAKE(spool)]
  const { stdout, stderr } = spawnSync(file!, args, { encoding: 'utf8' })
  return { folder: stdout.trim(), error: stderr }
}

test('removes the folders of killed processes of this machine, and nothing of others', () => {
  using folder = temporaryFolder()
  const left = makeElsewhere(folder.path).folder
  assert.ok(existsSync(left), left)
  const alive = makeSpoolFolder(folder.path)
  const pid = basename(left).split('-')[2]
  const foreign = ['0123456789abcdef', MACHINE_MARK.replace(/^./, (first) => (first === '0' ? '1' : '0'))]
  const others = [
    ...foreign.map((machine) => `browsers-${machine}-${pid}-00000000`),
    `browsers-${pid}-00000000`, // from an earlier version: its machine is unknown
    'uploads',
  ].map((name) => join(folder.path, name))
  for (const other of others) mkdirSync(other)
  const mine = makeSpoolFolder(folder.path)
  assert.equal(existsSync(left), false)
  for (const kept of [alive, mine, ...others]) assert.ok(existsSync(kept), kept)
  assert.equal(statSync(mine).mode & 0o777, 0o700)
})

test('a container with its own process ids does not remove the folder of a running process', (t) => {
  using folder = temporaryFolder()
  const alive = makeSpoolFolder(folder.path)
  const { folder: made, error } = makeElsewhere(folder.path, ['unshare', '--pid', '--fork', '--mount-proc'])
  if (made === '') return t.skip(`no namespace of its own can be made here: ${error.trim().split('\n')[0]}`)
  assert.ok(existsSync(alive))
  makeSpoolFolder(folder.path)
  assert.ok(existsSync(made), 'nor does this machine remove the container’s')
})
