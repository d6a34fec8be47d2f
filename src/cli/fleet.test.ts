/** Every command that inspects or controls a run, on a fleet run: real workers, a real database, the demo shop. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parquetReadObjects } from 'hyparquet'
import { placesIn, type RunStats, statsOf, until } from '../../test/fleet.ts'
import { postgresForTests, type TestDatabase } from '../../test/services/postgres.ts'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'

const PRODUCTS = 70
const ITEMS = PRODUCTS - 2 // one is missing, one is broken

const folder = temporaryFolder()
let database: TestDatabase
let site: BooksSite
let slow: BooksSite
let env: NodeJS.ProcessEnv

before(async () => {
  database = await postgresForTests()
  site = await startBooksSite({ products: PRODUCTS, misbehave: true })
  slow = await startBooksSite({ products: 2000, delayMs: 25 })
  env = { SLUICE_OUT: join(folder.path, 'runs'), SLUICE_FRONTIER: database.url, SLUICE_ALLOW_PRIVATE: 'yes' }
})

after(async () => {
  await site[Symbol.asyncDispose]()
  await slow[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await sluice(args, { env })
  assert.equal(code, 0, stderr)
  return stdout
}

const json = async (...args: string[]) => JSON.parse(await text(...args, '--json'))

async function start(on: BooksSite): Promise<string> {
  const args = ['--arg', 'details=true', '--rps', '0', '--fail-at', '50%']
  return (await json('start', 'books', '--mode', 'distributed', '--site', on.url, ...args)).run_id
}

const worker = (id: string, ...more: string[]) =>
  startSluice(['worker', '--scraper', 'books', '--run-id', id, '--quiet', ...more], { env })

const numbersOf = (id: string) => statsOf(id, placesIn(folder.path, database.url))
const untilNumbers = (what: string, id: string, isSo: (numbers: RunStats) => boolean) =>
  until(what, async () => isSo(await numbersOf(id)))

const linesOf = (stdout: string) => stdout.trimEnd().split('\n')

test('a run waits for workers, is processed, and can be inspected from anywhere', async () => {
  const id = await start(site)
  assert.deepEqual(
    (await json('ps')).runs.map((run: { id: string; why: string }) => [run.id, run.why]),
    [[id, '0 workers']],
  )
  const watch = startSluice(['watch', id, '--json'], { env })
  const logs = startSluice(['logs', id, '-f'], { env })
  await once(watch.child.stdout!, 'data')
  const work = await worker(id).result
  if (work.code !== 0) for (const { child } of [watch, logs]) child.kill()
  assert.equal(work.code, 0, work.stderr)
  const [watched, logged] = await Promise.all([watch.result, logs.result])
  const looks = linesOf(watched.stdout).map((line) => JSON.parse(line))
  assert.deepEqual([looks[0].state, looks[0].why], ['running', '0 workers'])
  assert.deepEqual([looks.at(-1).state, looks.at(-1).items, looks.at(-1).remaining], ['finished', ITEMS, 0])
  assert.match(logged.stdout, /^\S+Z warn {2}.*404/m)
  assert.match(logged.stdout, /worker \S+ finished/)

  const numbers = await json('stats', id)
  assert.deepEqual([numbers.state, numbers.items, numbers.dead, numbers.workers], ['finished', ITEMS, 2, 0])
  assert.deepEqual([numbers.folder, numbers.fleet], [null, []])
  assert.deepEqual((await json('ps')).runs, [])
  assert.equal((await json('ps', '--all')).runs[0].state, 'finished')
})

test('export returns the items of the store as JSON lines, CSV and Parquet', async () => {
  const lines = linesOf(await text('export', 'books')).map((line) => JSON.parse(line))
  assert.equal(lines.length, ITEMS)
  const csv = linesOf(await text('export', 'books', '--format', 'csv', '--columns', 'title,price'))
  assert.deepEqual([csv[0]?.trim(), csv.length], ['title,price', ITEMS + 1])
  const file = join(folder.path, 'books.parquet')
  await text('export', 'books', '--format', 'parquet', '--out', file)
  const bytes = readFileSync(file)
  const rows = await parquetReadObjects({ file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) })
  assert.deepEqual(
    rows.map((row) => row['url']),
    lines.map((item) => item.url),
  )
})

test('dead letters are listed, shown with their snapshot, and retried: the finished run takes workers again', async () => {
  const { run: id, groups } = await json('dlq', 'groups', 'books')
  assert.equal(groups.length, 2)
  const { letters } = await json('dlq', 'list', id, '--code', 'E_SELECTOR_EMPTY')
  const shown = await json('dlq', 'show', id, letters[0].id.slice(0, 8))
  assert.match(shown.head, /<html/i)
  const { retried, next } = await json('retry', id, '--failed', '--class', 'selector')
  assert.equal(retried, 1)
  assert.match(next, new RegExp(`worker --scraper books --run-id ${id}$`))
  assert.equal((await json('stats', id)).state, 'running')
  const [, ...words] = next.split(' ')
  assert.equal((await sluice([...words, '--quiet'], { env })).code, 0)
  assert.deepEqual([(await json('stats', id)).state, (await json('stats', id)).dead], ['finished', 2])
  assert.equal((await json('dlq', 'drop', id, '--code', 'E_NOT_FOUND', '--yes')).dropped, 1)
})

test('diff compares two runs of a fleet by the keys of their items', async () => {
  const before = (await json('stats', 'books')).id
  const id = await start(site)
  await worker(id).result
  const same = linesOf(await text('diff', before, id))
  assert.deepEqual(same, [`0 added, 0 removed, 0 changed, ${ITEMS} unchanged; not compared: scraped_at`])
  const { code, stdout } = await sluice(['diff', before, id, '--all-fields', '--exit-code', '--json'], { env })
  assert.equal(code, 1)
  const [first] = linesOf(stdout).map((line) => JSON.parse(line))
  assert.deepEqual([first.kind, Object.keys(first.fields)], ['changed', ['scraped_at']])
})

test('pause, resume and cancel reach workers anywhere; a cancelled run continues with start --resume', async () => {
  const id = await start(slow)
  const work = worker(id, '--concurrency', '2')
  try {
    await untilNumbers('it works', id, ({ items, fleet }) => items > 0 && (fleet?.[0]?.pages ?? 0) > 0)
    assert.match(await text('stats', id), /workers {4}1\n.* working .* in flight/)
    await json('pause', id)
    await untilNumbers('nothing is claimed', id, ({ claimed }) => claimed === 0)
    const paused = await json('stats', id)
    assert.equal((await json('ps')).runs[0].state, 'paused')
    await json('resume', id)
    await untilNumbers('it goes on', id, ({ completed }) => completed > paused.completed)
    const { next, isAlive } = await json('cancel', id, '--reason', 'enough')
    assert.equal(isAlive, true)
    assert.equal((await work.result).code, 4)
    const ended = await json('stats', id)
    assert.deepEqual([ended.state, ended.reason, ended.isAlive, ended.claimed], ['stopped', 'enough', false, 0])
    const refused = await worker(id).result
    assert.equal(refused.code, 2)
    const [, ...words] = next.split(' ')
    assert.deepEqual(words, ['start', 'books', '--mode', 'distributed', '--resume', id])
    assert.equal((await json(...words)).status, 'resumed')
    assert.equal((await json('stats', id)).state, 'running')
  } finally {
    work.child.kill('SIGKILL')
    await json('cancel', id)
  }
})

test('a single run on a queue in PostgreSQL is a run of its folder', async () => {
  const args = ['run', 'books', '--site', site.url, '--rps', '0', '--quiet', '--fail-at', '50%']
  const { code, stderr } = await sluice(args, { env })
  assert.equal(code, 0, stderr)
  const numbers = await json('stats', 'books')
  assert.match(numbers.folder, /runs\/books\//)
  assert.deepEqual([numbers.state, numbers.items > 0, numbers.remaining], ['finished', true, 0])
  assert.equal(linesOf(await text('export', 'books')).length, numbers.items)
})

test('ends with exit code 3 if the database does not answer', async () => {
  const { code, stderr } = await sluice(['stats', 'other'], {
    env: { ...env, SLUICE_FRONTIER: 'postgres://u:secret@127.0.0.1:1/x' },
  })
  assert.equal(code, 3, stderr)
  assert.ok(!stderr.includes('secret'))
})
