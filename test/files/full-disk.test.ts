/** A full disk ends the loop with a reason; no torn file has a final name; once there is space again the rest is stored. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteRecords } from '../../src/files/records.ts'
import { temporaryFolder } from '../sluice.ts'
import { content, serveFile, startFileServer } from './file-server.ts'

const CHILD = fileURLToPath(new URL('./files-run-child.test-kit.ts', import.meta.url))
const BYTES = 2_000_000

/** In its own mount namespace: the small disk is invisible to others and disappears with the script. */
const SCRIPT = `
  mount -t tmpfs -o size=5m tmpfs "$DISK" || exit 77
  "$NODE" "$CHILD" "$FOLDER" "$DISK" "$@" > "$FOLDER/report"
  find "$DISK/store" -type f -size -${BYTES}c | grep -v .incoming > "$FOLDER/torn"
  mount -o remount,size=64m "$DISK"
  "$NODE" "$CHILD" "$FOLDER" "$DISK" "$@" >> "$FOLDER/report"
  find "$DISK/store" -type f -size ${BYTES}c | wc -l >> "$FOLDER/report"
  find "$DISK/spool" -type f | wc -l >> "$FOLDER/report"
`

test('loses and tears nothing when the disk fills up during downloads', async () => {
  using folder = temporaryFolder()
  const disk = join(folder.path, 'disk')
  mkdirSync(disk)
  const paths = [1, 2, 3, 4, 5].map((i) => `/${i}.bin`)
  await using server = await startFileServer(
    Object.fromEntries(paths.map((path, i) => [path, serveFile(content(BYTES, i + 1), { etag: `"${i}"` })])),
  )
  const env = {
    ...process.env,
    NODE_TEST_CONTEXT: undefined,
    NODE: process.execPath,
    CHILD,
    FOLDER: folder.path,
    DISK: disk,
  }
  const namespace = process.getuid?.() === 0 ? ['-m'] : ['-Urm']
  const urls = paths.map((path) => server.url + path)
  const script = spawn('unshare', [...namespace, 'sh', '-c', SCRIPT, 'sh', ...urls], { env, stdio: 'inherit' })
  const [code] = await once(script, 'exit')
  assert.notEqual(code, 77, 'this test mounts a small tmpfs: it needs root, or user namespaces')
  const report = readFileSync(join(folder.path, 'report'), 'utf8').trim().split('\n')
  assert.match(report[0]!, /^halted: E_OUTPUT no room for .*ENOSPC/)
  assert.deepEqual(report.slice(1), ['finished', '5', '0'])
  assert.equal(readFileSync(join(folder.path, 'torn'), 'utf8'), '')
  await using records = openSqliteRecords(join(folder.path, 'files.db'))
  assert.equal((await records.list('run-1')).length, 5)
})
