/** What a resume must never do: change the run, start it over, or take it from another process. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import books from '../scrapers/books/books.ts'
import type { LoggedItem, Sink } from '../src/index.ts'
import { start } from '../src/index.ts'
import { booksRun, DETAILS, itemsIn, startHeldBooksSite } from './books-run.ts'
import { type BooksSite, startBooksSite } from './site/books.ts'
import { type SluiceResult, sluice, startSluice, temporaryFolder } from './sluice.ts'

const runBooks = (site: BooksSite, out: string, ...more: string[]): Promise<SluiceResult> =>
  sluice(booksRun(site, out, '--quiet', ...more))
const urlsIn = (out: string) => itemsIn(out).map(({ url }) => url)

test('leaves the run of the first process alone when a second and third are rejected', async () => {
  await using site = await startHeldBooksSite({ products: 400, fromRequest: 20 })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS, '--quiet')
  const first = startSluice(args)
  while (site.stats().requests < 20) await new Promise((resolve) => setTimeout(resolve, 10))
  for (let i = 0; i < 2; i++) {
    const other = await sluice([...args, '--resume'])
    assert.equal(other.code, 2, other.stderr)
    assert.match(other.stderr, /E_RUN_LOCKED/)
  }
  site.letGo()
  assert.equal((await first.result).code, 0)
  assert.equal(new Set(urlsIn(folder.path)).size, 400)
  assert.equal(itemsIn(folder.path).length, 400)
})

test('rejects other arguments, another queue or a lost queue, and the run can still be resumed', async () => {
  await using site = await startBooksSite({ products: 100 })
  using folder = temporaryFolder()
  assert.equal((await runBooks(site, folder.path, '--pages', '2')).code, 4)
  for (const [flags, says] of [
    [['--arg', 'details=true'], /its argument details/],
    [['--frontier', 'memory:'], /its queue is in sqlite:/],
    [['--format', 'parquet'], /cannot be resumed with/],
  ] as const) {
    const refused = await runBooks(site, folder.path, '--resume', ...flags)
    assert.equal(refused.code, 2, refused.stderr)
    assert.match(refused.stderr, says)
  }
  const queue = join(folder.path, 'books/latest/frontier.db')
  renameSync(queue, `${queue}.away`)
  const lost = await runBooks(site, folder.path, '--resume')
  assert.equal(lost.code, 2)
  assert.match(lost.stderr, /is empty/)
  renameSync(`${queue}.away`, queue)
  const resumed = await runBooks(site, folder.path, '--resume')
  assert.equal(resumed.code, 0, resumed.stderr)
  assert.equal(itemsIn(folder.path).length, 100)
})

test('does not end early at a page limit that is just enough', async () => {
  await using site = await startBooksSite({ products: 100 })
  using folder = temporaryFolder()
  const { code, stderr } = await runBooks(site, folder.path, '--pages', '5')
  assert.equal(code, 0, stderr)
})

test('leaves no folder of a run that cannot start, and overwrites no existing file', async () => {
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const notes = join(folder.path, 'notes.csv')
  writeFileSync(notes, 'my notes')
  const refused = await runBooks(site, folder.path, '--sink', `file:${notes}`)
  assert.equal(refused.code, 2, refused.stderr)
  assert.equal(readFileSync(notes, 'utf8'), 'my notes')
  assert.deepEqual(readdirSync(join(folder.path, 'books')), [])
})

test('adds the items of dead letters retried after the end to every format', async () => {
  await using site = await startBooksSite({ products: 100, misbehave: true })
  using folder = temporaryFolder()
  const first = await runBooks(
    site,
    folder.path,
    '--arg',
    'details=true',
    '--retries',
    '0',
    '--format',
    'jsonl,parquet',
    '--fail-at',
    '0.5',
  )
  assert.equal(first.code, 0, first.stderr)
  const before = itemsIn(folder.path).length
  assert.equal((await sluice(['dlq', 'retry', 'books', '--out', folder.path])).code, 0)
  const resumed = await sluice([
    'run',
    'books',
    '--resume',
    '--rps',
    '0',
    '--out',
    folder.path,
    '--quiet',
    '--retries',
    '3',
  ])
  assert.equal(resumed.code, 0, resumed.stderr)
  assert.ok(itemsIn(folder.path).length > before, 'the page that failed for a while came back')
  assert.ok(existsSync(join(folder.path, 'books/latest/items.parquet')))
})

test('ends the run with the reason of a sink that throws, even while workers wait for it', async () => {
  await using site = await startBooksSite({ products: 8000 })
  using folder = temporaryFolder()
  for (const processes of [1, 2]) {
    const file = new URL('../scrapers/books/books.ts', import.meta.url).pathname
    const run = await start(books, {
      args: { site: site.url, details: true },
      file,
      processes,
      rps: 0,
      concurrency: 32,
      out: folder.path,
      drainTimeout: '2s',
      sinks: [new FailingSink()],
    })
    const record = await run.result
    assert.equal(record.state, 'failed')
    assert.match(record.reason ?? '', /E_OUTPUT: .*the sink is broken/)
    assert.equal(record.exitCode, 4)
  }
})

/** Accepts a little, stalls until the crawl waits for it, then fails. */
class FailingSink implements Sink {
  readonly name = 'failing'
  async open(): Promise<void> {}
  async write(items: readonly LoggedItem[]): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 2500))
    throw new Error(`the sink is broken (${items.length} items)`)
  }
  async flush(): Promise<string> {
    return '0'
  }
  async finish() {
    return { target: 'nowhere', rows: 0, bytes: 0 }
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

test('masks a secret argument in run.json, but keeps it for a resumed run', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    response.setHeader('content-type', 'text/html').end('<h1>x</h1>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using _ = { [Symbol.asyncDispose]: async () => void server.close() }
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  mkdirSync(join(cwd, 'scrapers'))
  writeFileSync(
    join(cwd, 'scrapers', 'door.ts'),
    `import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'door', args: z.object({ base: z.string(), password: z.string() }), item: z.object({ id: z.string() }), key: 'id',
  routes: { page: { match: '/p/:n' }, inside: { match: '/in/:word' } },
  start: ({ args, enqueue }) => enqueue('page', new URL('/p/1', args.base)),
  handlers: {
    async page({ args, enqueue }) { await enqueue('inside', new URL('/in/' + args.password, args.base)) },
    async inside({ params, emit }) { await emit({ id: params.word }) },
  },
})`,
  )
  const first = await sluice(
    ['run', 'door', '--arg', `base=${base}`, '--arg', 'password=open-sesame', '--pages', '1'],
    { cwd },
  )
  assert.equal(first.code, 4, first.stderr)
  const record = readFileSync(join(cwd, 'runs', 'door', 'latest', 'run.json'), 'utf8')
  assert.match(record, /"password": "\*\*\*"/)
  assert.doesNotMatch(record, /open-sesame/)
  const other = await sluice(['run', 'door', '--resume', '--arg', 'password=another'], { cwd })
  assert.equal(other.code, 2)
  assert.match(other.stderr, /its argument password is "\*\*\*", not "\*\*\*"/)
  const resumed = await sluice(['run', 'door', '--resume'], { cwd })
  assert.equal(resumed.code, 0, resumed.stderr)
  assert.deepEqual(
    asked.filter((path) => path.startsWith('/in/')),
    ['/in/open-sesame'],
  )
})
