/** stats, dlq and export: real processes on a real run of the demo shop. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parquetReadObjects } from 'hyparquet'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { type SluiceProcess, sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'

const PRODUCTS = 70
const ITEMS = PRODUCTS - 2 // one is missing, one is broken

const folder = temporaryFolder()
const out = join(folder.path, 'runs')
const env = { SLUICE_OUT: out }
let site: BooksSite
let id: string

before(async () => {
  site = await startBooksSite({ products: PRODUCTS, misbehave: true })
  const args = ['run', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', '--fail-at', '50%', '--json']
  const { code, stdout, stderr } = await sluice(args, { env })
  assert.equal(code, 0, stderr)
  id = JSON.parse(stdout).id
})

after(async () => {
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const runFolder = () => join(out, 'books', id)

async function json(...args: string[]) {
  const { code, stdout, stderr } = await sluice([...args, '--json'], { env })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

test('stats finds a run by id, by scraper, by path, by its latest link, and the latest of all', async () => {
  const words = [[id], ['books'], [runFolder()], [join(out, 'books', 'latest')], []]
  const all = await Promise.all(words.map((word) => json('stats', ...word)))
  for (const numbers of all) {
    assert.equal(numbers.id, id)
    assert.equal(numbers.state, 'finished')
    assert.equal(numbers.items, ITEMS)
    assert.deepEqual([numbers.dead, numbers.remaining, numbers.workers], [2, 0, 0])
  }
})

test('stats lists the existing runs if it finds none', async () => {
  const { code, stderr } = await sluice(['stats', 'nonsense'], { env })
  assert.equal(code, 2)
  assert.match(stderr, /no run "nonsense"/)
  assert.match(stderr, new RegExp(id))
})

test('dlq groups dead letters by cause, with an example and the next command', async () => {
  const { groups } = await json('dlq', 'groups', 'books')
  assert.deepEqual(groups.map(({ code, count }: { code: string; count: number }) => [code, count]).sort(), [
    ['E_NOT_FOUND', 1],
    ['E_SELECTOR_EMPTY', 1],
  ])
  const { stdout } = await sluice(['dlq', 'groups'], { env })
  assert.match(stdout, /2 dead letters of books/)
  assert.match(stdout, /_44\/index\.html/)
  assert.match(stdout, new RegExp(`dlq retry ${id} --out ${out}`))
})

test('dlq list filters, and suggests the class that was meant', async () => {
  const { letters, hasMore } = await json('dlq', 'list', '--class', 'not-found')
  assert.deepEqual([letters.length, hasMore, letters[0].error.code], [1, false, 'E_NOT_FOUND'])
  assert.equal((await json('dlq', 'list', '--limit', '1')).hasMore, true)
  const { code, stderr } = await sluice(['dlq', 'list', '--class', 'not-fuond'], { env })
  assert.equal(code, 2)
  assert.match(stderr, /did you mean not-found\?/)
})

test('dlq show prints the beginning of the response without escape sequences', async () => {
  const { letters } = await json('dlq', 'list', '--code', 'E_SELECTOR_EMPTY')
  const [{ id: letter, url, snapshot }] = letters
  writeFileSync(join(runFolder(), snapshot), '<h1>\u001b[31mSorry\u001b[2J</h1>\n')
  const byId = await sluice(['dlq', 'show', 'books', letter.slice(0, 6)], { env })
  const byUrl = await sluice(['dlq', 'show', url], { env })
  assert.equal(byId.stdout, byUrl.stdout)
  assert.match(byId.stdout, /│ <h1>Sorry<\/h1>/)
  assert.ok(!byId.stdout.includes('\u001b'))
  assert.match(byId.stdout, /2 tries/)
  const unknown = await sluice(['dlq', 'show', 'ffffffffffff'], { env })
  assert.equal(unknown.code, 2)
})

test('dlq drop requires --yes without a terminal', async () => {
  const { code, stderr } = await sluice(['dlq', 'drop', '--class', 'not-found'], { env })
  assert.equal(code, 2)
  assert.match(stderr, /Add --yes/)
  assert.equal((await json('stats')).dead, 2)
})

test('dlq retry puts letters back and prints the command that continues, which works', async () => {
  const { retried, next } = await json('dlq', 'retry', 'books', '--code', 'not-found')
  assert.equal(retried, 1)
  const stopped = await json('stats')
  assert.deepEqual([stopped.state, stopped.pending, stopped.dead], ['stopped', 1, 1])
  const [, ...words] = next.split(' ')
  assert.deepEqual(words, ['run', 'books', '--resume', id, '--out', out])
  const { code, stderr } = await sluice([...words, '--fail-at', '50%', '--quiet'])
  assert.equal(code, 0, stderr)
  const finished = await json('stats')
  assert.deepEqual([finished.state, finished.pending, finished.dead, finished.items], ['finished', 0, 2, ITEMS])
  assert.equal((await json('dlq', 'drop', '--code', 'E_NOT_FOUND', '--yes')).dropped, 1)
  assert.deepEqual((await json('stats')).dead, 1)
})

test('export returns the items as the run wrote them, as JSON lines and as CSV', async () => {
  const [lines, csv, some] = await Promise.all([
    sluice(['export', 'books'], { env }),
    sluice(['export', 'books', '--format', 'csv'], { env }),
    sluice(['export', 'books', '--format', 'csv', '--columns', 'stock,title'], { env }),
  ])
  assert.equal(lines.stdout, readFileSync(join(runFolder(), 'items.jsonl'), 'utf8'))
  assert.equal(csv.stdout, readFileSync(join(runFolder(), 'items.csv'), 'utf8'))
  assert.match(some.stdout, /^stock,title\r\n\d+,/)
  assert.equal(some.stdout.split('\r\n').length, ITEMS + 2)
})

test('export writes Parquet that reads back as the items', async () => {
  const file = join(folder.path, 'books.parquet')
  const { code, stderr } = await sluice(['export', '--format', 'parquet', '--out', file], { env })
  assert.equal(code, 0, stderr)
  const bytes = readFileSync(file)
  const rows = await parquetReadObjects({ file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) })
  const items = readFileSync(join(runFolder(), 'items.jsonl'), 'utf8').trim().split('\n')
  assert.deepEqual(
    rows.map((row) => row['title']),
    items.map((line) => JSON.parse(line).title),
  )
})

test('export ends quietly when its reader closes the pipe', async () => {
  const bin = fileURLToPath(new URL('../../bin/sluice', import.meta.url))
  const child = spawn('/bin/bash', ['-c', `"${bin}" export books | head -n 1; echo "\${PIPESTATUS[0]}"`], {
    env: { ...process.env, ...env },
  })
  let text = ''
  let complaint = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  child.stderr.on('data', (chunk) => (complaint += chunk))
  await new Promise((resolve) => child.once('close', resolve))
  assert.deepEqual([text.trim().split('\n').length, text.trim().split('\n')[1], complaint], [2, '0', ''])
})

test('export returns only confirmed items, and whole lines if the queue is gone', async () => {
  const file = join(runFolder(), 'items.jsonl')
  const whole = readFileSync(file, 'utf8')
  appendFileSync(file, '{"title":"torn')
  const { stdout } = await sluice(['export', 'books'], { env })
  assert.equal(stdout, whole)
  rmSync(join(runFolder(), 'frontier.db'))
  const without = await sluice(['export', 'books'], { env })
  assert.equal(without.stdout, whole)
  const { code, stderr } = await sluice(['dlq', 'groups', 'books'], { env })
  assert.equal(code, 2)
  assert.match(stderr, /there is no frontier\.db/)
})

test('stats and export read a running run without disturbing it', async () => {
  await using slow = await startBooksSite({ products: 400, delayMs: 20 })
  const live = join(folder.path, 'live')
  const args = ['run', 'books', '--site', slow.url, '--arg', 'details=true', '--rps', '0', '--out', live, '--quiet']
  const run: SluiceProcess = startSluice([...args, '--concurrency', '2'])
  try {
    let numbers = { isAlive: false, items: 0, claimed: 0 }
    while (numbers.items < 20) {
      const { code, stdout } = await sluice(['stats', 'books', '--out', live, '--json'])
      if (code === 0) numbers = JSON.parse(stdout)
    }
    assert.equal(numbers.isAlive, true)
    const { stdout, stderr } = await sluice(['export', 'books', '--runs', live])
    assert.match(stderr, /is still running/)
    assert.ok(stdout.endsWith('\n'))
    for (const line of stdout.trim().split('\n')) assert.ok(JSON.parse(line).title)
  } finally {
    run.child.kill('SIGTERM')
  }
  const { code } = await run.result
  assert.equal(code, 4)
  const { stdout } = await sluice(['stats', 'books', '--out', live])
  assert.match(stdout, /stopped: SIGTERM received/)
  assert.match(stdout, /resume: .*run books --resume/)
})
