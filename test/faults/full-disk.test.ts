/**
 * A full disk ends a run with a reason and exit code 4; once there is space again, --resume completes it with every item once.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const SLUICE = fileURLToPath(new URL('../../bin/sluice', import.meta.url))

/** In its own mount namespace: the small disk is invisible to others and disappears with the script. */
const SCRIPT = `
  mount -t tmpfs -o size=6m tmpfs "$DISK" || exit 77
  head -c 4194304 /dev/zero > "$DISK/ballast"
  "$SLUICE" run books --site "$SITE" --arg details=true --rps 0 --out "$DISK" > "$REPORT" 2>&1
  echo "full: $?" >> "$REPORT"
  mkdir "$DISK/start" && mount -t tmpfs -o size=300k tmpfs "$DISK/start"
  "$SLUICE" run books --site "$SITE" --out "$DISK/start" >> "$REPORT" 2>&1
  echo "full at the start: $?" >> "$REPORT"
  umount "$DISK/start"
  rm "$DISK/ballast"
  mount -o remount,size=64m "$DISK"
  "$SLUICE" run books --resume --rps 0 --out "$DISK" --quiet >> "$REPORT" 2>&1
  echo "resumed: $?" >> "$REPORT"
  cp "$DISK/books/latest/items.jsonl" "$ITEMS"
`

test('loses nothing when the disk fills up half-way', async () => {
  await using site = await startBooksSite({ products: 1000 })
  using folder = temporaryFolder()
  const disk = join(folder.path, 'disk')
  const report = join(folder.path, 'report.txt')
  const items = join(folder.path, 'items.jsonl')
  mkdirSync(disk)
  const env = {
    ...process.env,
    NODE_TEST_CONTEXT: undefined,
    SLUICE,
    DISK: disk,
    SITE: site.url,
    REPORT: report,
    ITEMS: items,
  }
  const namespace = process.getuid?.() === 0 ? ['-m'] : ['-Urm']
  const script = spawn('unshare', [...namespace, 'sh', '-c', SCRIPT], { env, stdio: 'inherit' })
  const code = await new Promise((resolve) => script.once('exit', resolve))
  assert.notEqual(
    code,
    77,
    'this test mounts a small tmpfs: it needs root, or user namespaces (sysctl kernel.unprivileged_userns_clone=1)',
  )
  const text = readFileSync(report, 'utf8')
  assert.match(text, /E_OUTPUT/)
  assert.match(text, /^full: 4$/m)
  assert.match(text, /^full at the start: 4$/m)
  assert.doesNotMatch(text, /E_DEFINITION/)
  assert.match(text, /^resumed: 0$/m)
  const urls = readFileSync(items, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).url)
  assert.equal(urls.length, 1000)
  assert.equal(new Set(urls).size, 1000)
})
