/** When a fleet run begins, continues and is over: with many workers, limits, and a queue that is still being filled. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { Fleet, until } from './fleet.ts'
import { postgresForTests, startPostgres } from './services/postgres.ts'
import { startBooksSite, truth } from './site/books.ts'
import { temporaryFolder } from './sluice.ts'

async function place(options: { products: number; delayMs?: number; scraper?: string; code?: string }) {
  const parts = new AsyncDisposableStack()
  const database = parts.use(await postgresForTests())
  const site = parts.use(await startBooksSite(options))
  const folder = parts.use(temporaryFolder())
  if (options.code !== undefined) {
    mkdirSync(join(folder.path, 'scrapers'))
    writeFileSync(join(folder.path, 'scrapers', `${options.scraper}.ts`), options.code)
  }
  const fleet = new Fleet({
    frontier: database.url,
    cwd: folder.path,
    ...(options.scraper === undefined ? {} : { scraper: options.scraper }),
  })
  return { fleet, site, database, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

const newestRun = async (url: string) => {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query('select id, state from sluice.run_record order by created_ms desc limit 1')
    return rows[0] as { id: string; state: string } | undefined
  } finally {
    await client.end()
  }
}

test('lets a worker wait while the queue is being filled, and ends the run when all of it is done', async () => {
  await using here = await place({ products: 60 })
  const { fleet, site, database } = here
  const urls = [...truth(60)].map(({ path }) => new URL(path, site.url).href)
  const filling = fleet.startFilling()
  filling.child.stdin!.write(`${urls.slice(0, 30).join('\n')}\n`)
  let run: { id: string } | undefined
  await until('the run is there', async () => {
    run = await newestRun(database.url).catch(() => undefined)
    return run !== undefined
  })
  const worker = fleet.worker(run!.id)
  await sleep(1500)
  assert.equal(worker.child.exitCode, null, 'it waits')
  assert.equal((await newestRun(database.url))?.state, 'running')
  filling.child.stdin!.end(`${urls.slice(30).join('\n')}\n`)
  assert.equal((await filling.result).code, 0)
  const { code, stderr } = await worker.result
  assert.equal(code, 0, stderr)
  const { completed, failed, state } = await fleet.stats(run!.id)
  assert.deepEqual({ completed, failed, state }, { completed: 60, failed: 0, state: 'finished' })
})

test('reopens a finished run for more URLs, and no worker ends it while they are added', async () => {
  await using here = await place({ products: 40 })
  const { fleet, site } = here
  const urls = [...truth(40)].map(({ path }) => new URL(path, site.url).href)
  const first = await fleet.start('--site', site.url, '--arg', 'pages=1')
  assert.equal((await fleet.worker(first.run_id).result).code, 0)
  const filling = fleet.startFilling('--resume', first.run_id)
  filling.child.stdin!.write(`${urls[0]}\n`)
  await until('it is open again', async () => (await fleet.stats(first.run_id)).state === 'running')
  const worker = fleet.worker(first.run_id)
  await sleep(1200)
  filling.child.stdin!.end(`${urls.slice(1).join('\n')}\n`)
  assert.equal((await filling.result).code, 0)
  assert.equal((await worker.result).code, 0)
  const { completed, remaining, state } = await fleet.stats(first.run_id)
  assert.deepEqual({ completed, remaining, state }, { completed: 41, remaining: 0, state: 'finished' })
})

const STOPPING = `
  import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: 'stopping', item: z.object({ url: z.string() }), routes: { page: {} }, args: z.object({ site: z.url() }),
    start: ({ args, enqueue }) => enqueue('page', Array.from({ length: 300 }, (_, i) => new URL('catalogue/page-1.html?n=' + i, args.site))),
    handlers: { page({ url, stop }) { if (url.search === '?n=20') stop('enough of it') } },
  })`

test('stop() in one worker stops the run for all of them', async () => {
  await using here = await place({ products: 20, delayMs: 60, scraper: 'stopping', code: STOPPING })
  const { fleet, site } = here
  const { run_id: runId } = await fleet.start('--site', site.url)
  const ends = await Promise.all(
    [1, 2].map(() => fleet.worker(runId, '--concurrency', '2', '--batch-size', '4').result),
  )
  assert.deepEqual(
    ends.map(({ code }) => code),
    [4, 4],
  )
  const { remaining, state, reason } = await fleet.stats(runId)
  assert.ok(remaining! > 0)
  assert.deepEqual([state, reason], ['stopped', 'enough of it'])
})

test('stops the run at the page limit, and continues with --resume and a higher one', async () => {
  await using here = await place({ products: 200 })
  const { fleet, site } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true', '--pages', '20')
  const limited = await fleet.worker(runId).result
  assert.equal(limited.code, 4)
  const stopped = await fleet.stats(runId)
  assert.deepEqual([stopped['state'], stopped['reason']], ['stopped', 'the limit of 20 pages is reached'])
  assert.equal((await fleet.worker(runId).result).code, 2, 'a stopped run takes no workers')
  await fleet.start('--resume', runId, '--pages', '1000')
  assert.equal((await fleet.worker(runId).result).code, 0)
  assert.equal((await fleet.items(runId)).length, 200)
})

test('the time limit stops the run', async () => {
  await using here = await place({ products: 2000, delayMs: 40 })
  const { fleet, site } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true', '--time', '2s')
  assert.equal((await fleet.worker(runId, '--concurrency', '4').result).code, 4)
  const { state, reason } = await fleet.stats(runId)
  assert.deepEqual([state, reason], ['stopped', 'the time limit is reached'])
})

test('leaves no run behind for workers to wait on when a start fails', async () => {
  const code = STOPPING.replace(/start: .*\n/, "start() { throw new Error('no way in') },\n")
  await using here = await place({ products: 20, scraper: 'stopping', code })
  const { fleet, site, database } = here
  const { code: exit, stderr } = await fleet.run('start', 'stopping', '--mode', 'distributed', '--site', site.url)
  assert.equal(exit, 2)
  assert.match(stderr, /E_DEFINITION.*no way in/)
  assert.equal(await newestRun(database.url), undefined)
})

test('says that a start was interrupted, and continues with --resume', async () => {
  await using here = await place({ products: 40 })
  const { fleet, site, database } = here
  const urls = [...truth(40)].map(({ path }) => new URL(path, site.url).href)
  const filling = fleet.startFilling()
  // More than one chunk of the queue, so that some are added before it is stopped.
  filling.child.stdin!.write(`${Array.from({ length: 3000 }, (_, i) => `${urls[0]}?n=${i}`).join('\n')}\n`)
  let run: { id: string; state: string } | undefined
  await until('some are in', async () => {
    run = await newestRun(database.url).catch(() => undefined)
    return run !== undefined && (await fleet.stats(run.id)).pending > 0
  })
  filling.child.kill('SIGTERM')
  filling.child.stdin!.write(`${urls[1]}\n`)
  const { code, stderr } = await filling.result
  assert.equal(code, 4, stderr)
  assert.equal((await newestRun(database.url))?.state, 'stopped')
  const wrong = await fleet.run('start', 'books', '--mode', 'distributed', '--resume')
  assert.match(wrong.stderr, /was not read to its end/)
})

test('ends a run with nothing left when a persistent worker is told to leave', async () => {
  await using here = await place({ products: 20 })
  const { fleet, site } = here
  const { run_id: runId } = await fleet.start('--site', site.url)
  const worker = fleet.worker(runId, '--forever')
  await until('all is done', async () => (await fleet.stats(runId)).remaining === 0)
  assert.equal(worker.child.exitCode, null)
  worker.child.kill('SIGTERM')
  assert.equal((await worker.result).code, 4)
  assert.equal((await fleet.stats(runId)).state, 'finished')
})

test('does not resume a run with other arguments', async () => {
  await using here = await place({ products: 20 })
  const { fleet, site } = here
  const { run_id: runId } = await fleet.start('--site', site.url)
  const { code, stderr } = await fleet.run(
    'start',
    'books',
    '--mode',
    'distributed',
    '--resume',
    runId,
    '--site',
    'http://other.test/',
  )
  assert.equal(code, 2)
  assert.match(stderr, /its argument site is/)
})

test('does not suspect healthy pages because of an outage longer than the lease', async () => {
  await using server = await startPostgres({ fsync: true })
  await using database = await server.createDatabase()
  await using site = await startBooksSite({ products: 300, delayMs: 40 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const workers = [1, 2].map(() => fleet.worker(runId, '--concurrency', '6', '--lease', '3s', '--log-level', 'debug'))
  await until('both work', () => site.stats().requests > 60)
  await server.stop('fast')
  await sleep(6000)
  await server.start()
  for (const { result } of workers) assert.equal((await result).code, 0, (await result).stderr)
  const { stdout } = await fleet.run('logs', runId, '--json')
  assert.doesNotMatch(stdout, /leases of dead workers expired/)
  assert.equal((await fleet.items(runId)).length, 300)
})
