/** Promise 2: a worker that lost its lease changes nothing. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBooksSite } from '../site/books.ts'
import { startSluice, temporaryFolder } from '../sluice.ts'

const PRODUCTS = 600

test('replaces a worker frozen for longer than its lease, and rejects its late results', async () => {
  await using site = await startBooksSite({ products: PRODUCTS, delayMs: 30 })
  using folder = temporaryFolder()
  const args = ['run', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', '--processes', '2']
  const { child, result } = startSluice([
    ...args,
    '--lease',
    '1500ms',
    '--log-level',
    'debug',
    '--out',
    folder.path,
    '--quiet',
  ])
  let freezes = 0
  const freezing = (async () => {
    while (child.exitCode === null && freezes < 2) {
      await sleep(700)
      const [victim] = workersOf(child.pid!)
      if (victim === undefined || site.stats().requests < 50) continue
      process.kill(victim, 'SIGSTOP')
      await sleep(4000) // well past the lease
      process.kill(victim, 'SIGCONT')
      freezes++
    }
  })().catch(() => {}) // the run ended while we looked for a victim
  const { code, stderr } = await result
  await freezing
  assert.equal(code, 0, stderr)
  assert.ok(freezes > 0, 'nothing was frozen')
  const latest = join(folder.path, 'books', 'latest')
  const urls = readFileSync(join(latest, 'items.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).url)
  assert.equal(urls.length, PRODUCTS)
  assert.equal(new Set(urls).size, PRODUCTS)
  const log = readFileSync(join(latest, 'log.jsonl'), 'utf8')
  assert.match(log, /"outcome":"stale"/, 'its late results were refused, and the log says so')
})

function workersOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}
