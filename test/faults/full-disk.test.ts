/** A full disk ends a run with a reason and exit 4; with room again, --resume completes it with every item once. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startBooksSite } from '../site/books.ts'
import { sluice, temporaryFolder } from '../sluice.ts'

test('a disk that fills up in the middle of a run loses nothing', async () => {
  using folder = temporaryFolder()
  const disk = join(folder.path, 'disk')
  mkdirSync(disk)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk], { encoding: 'utf8' })
  assert.equal(mounted.status, 0, `this test needs to mount a small tmpfs (run it as root): ${mounted.stderr}`)
  try {
    await using site = await startBooksSite({ products: 1000 })
    writeFileSync(join(disk, 'ballast'), Buffer.alloc(4 * 1024 ** 2))
    const args = ['run', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', '--out', disk]
    const full = await sluice(args)
    assert.equal(full.code, 4, full.stdout + full.stderr)
    assert.match(full.stdout + full.stderr, /E_OUTPUT/)
    rmSync(join(disk, 'ballast'))
    execFileSync('mount', ['-o', 'remount,size=64m', disk])
    const resumed = await sluice([...args, '--resume', '--quiet'])
    assert.equal(resumed.code, 0, resumed.stderr)
    const urls = readFileSync(join(disk, 'books/latest/items.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).url)
    assert.equal(urls.length, 1000)
    assert.equal(new Set(urls).size, 1000)
  } finally {
    execFileSync('umount', [disk])
  }
})
