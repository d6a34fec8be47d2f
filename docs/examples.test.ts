/** The examples of the docs, run as they stand. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { postgresForTests } from '../test/services/postgres.ts'
import { startBooksSite } from '../test/site/books.ts'
import { sluice, temporaryFolder } from '../test/sluice.ts'

const EMBED = fileURLToPath(new URL('./examples/embed.ts', import.meta.url))

test('embed.ts runs a scraper, hears its events and ends with its record', async () => {
  await using site = await startBooksSite({ products: 60 })
  using folder = temporaryFolder()
  const { stdout } = await promisify(execFile)(process.execPath, [EMBED, site.url, folder.path], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  })
  const lines = stdout.trim().split('\n')
  assert.deepEqual(lines.slice(0, -1), [
    `ok ${site.url}`,
    `ok ${site.url}catalogue/page-2.html`,
    `ok ${site.url}catalogue/page-3.html`,
  ])
  const items = join(folder.path, 'prices/latest/items.jsonl')
  assert.match(lines.at(-1)!, /^finished: 60 items in .*items\.jsonl$/)
  assert.equal(readFileSync(items, 'utf8').trim().split('\n').length, 60)
})

test('url-queue.ts works a queue of its own off', async () => {
  await using database = await postgresForTests()
  const file = fileURLToPath(new URL('./examples/url-queue.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [file, database.url], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  })
  assert.match(
    stdout,
    /^2 added, 1 seen before\nworking on https:\/\/a\.example\/1\nworking on https:\/\/a\.example\/2\n/,
  )
  assert.match(stdout, /pending: 0,\s+claimed: 0,\s+completed: 2,\s+failed: 0,\s+remaining: 0/)
})

test('shop.ts is the scraper of the README, and brings home every book', async () => {
  const code = readFileSync(new URL('./examples/shop.ts', import.meta.url), 'utf8')
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  assert.ok(readme.includes(code.slice(code.indexOf('import'))), 'copy docs/examples/shop.ts into README.md')
  await using site = await startBooksSite({ products: 60 })
  using folder = temporaryFolder()
  const file = fileURLToPath(new URL('./examples/shop.ts', import.meta.url))
  const args = ['run', file, '--site', site.url, '--rps', '0', '--out', folder.path, '--json']
  const { code: exitCode, stdout, stderr } = await sluice(args)
  assert.equal(exitCode, 0, stderr)
  assert.equal(JSON.parse(stdout).items.new, 60)
})

test('the page about embedding shows embed.ts as it is', () => {
  const page = readFileSync(fileURLToPath(new URL('./how-to/embed.md', import.meta.url)), 'utf8')
  assert.ok(page.includes(readFileSync(EMBED, 'utf8')), 'copy docs/examples/embed.ts into docs/how-to/embed.md')
})

test('the page about logging in shows reports.ts as it is', () => {
  const page = readFileSync(new URL('./how-to/log-in-and-download.md', import.meta.url), 'utf8')
  const code = readFileSync(new URL('./examples/reports.ts', import.meta.url), 'utf8')
  assert.ok(page.includes(code), 'copy docs/examples/reports.ts into docs/how-to/log-in-and-download.md')
})
