/** A run on PostgreSQL from start to end, as a user does it: start, workers, export. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Fleet, until } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { startBooksSite, truth } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const DETAILS = ['--arg', 'details=true']

test('several workers share a run: every book once, and the run is finished', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 400, delayMs: 5 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const run = await fleet.start('--site', site.url, ...DETAILS)
  assert.deepEqual({ status: run.status, enqueued: run.enqueued }, { status: 'queued', enqueued: 1 })
  assert.match(run.run_id, /^\d{8}_\d{6}_\w+$/)
  assert.match(run.worker_command, new RegExp(`worker --scraper books --run-id ${run.run_id} --batch-size 50$`))

  const workers = [1, 2, 3].map(() => fleet.worker(run.run_id, '--batch-size', '20'))
  const ends = await Promise.all(workers.map(({ result }) => result))
  for (const end of ends) assert.equal(end.code, 0, end.stderr)
  const reports = ends.map((end) => JSON.parse(end.stdout))
  assert.equal(
    reports.reduce((sum, { pages }) => sum + pages, 0),
    420,
    'each page was settled by one worker',
  )
  assert.equal(new Set(reports.map(({ worker }) => worker)).size, 3)

  const items = await fleet.items(run.run_id)
  assert.deepEqual(
    new Set(items.map(({ url }) => url)),
    new Set([...truth(400)].map(({ path }) => new URL(path, site.url).href)),
  )
  assert.equal(items.length, 400)
  const stats = await fleet.stats(run.run_id)
  const { pending, claimed, completed, failed, remaining, state } = stats
  assert.deepEqual(
    { pending, claimed, completed, failed, remaining, state },
    { pending: 0, claimed: 0, completed: 420, failed: 0, remaining: 0, state: 'finished' },
  )
})

test('ends a worker of a finished run at once, and reports an unknown run', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url)
  assert.equal((await fleet.worker(runId).result).code, 0)
  const again = await fleet.worker(runId).result
  assert.equal(again.code, 0, again.stderr)
  assert.equal(JSON.parse(again.stdout).pages, 0)
  const lost = await fleet.worker('20200101_000000_none').result
  assert.equal(lost.code, 2)
  assert.match(lost.stderr, /E_RUN_NOT_FOUND.*20200101_000000_none/)
})

test('uses a list of URLs instead of the start tasks, and reports invalid URLs and those without a route', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 40 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const urls = [...truth(40)].map(({ path }) => new URL(path, site.url).href)
  writeFileSync(
    join(folder.path, 'urls.txt'),
    ['# books', ...urls, urls[0], '', 'no url', `${site.url}nowhere`].join('\r\n'),
  )
  const result = await fleet.run(
    'start',
    'books',
    '--mode',
    'distributed',
    '--urls-file',
    'urls.txt',
    '--allow-private',
    '--json',
  )
  assert.equal(result.code, 0, result.stderr)
  assert.match(result.stderr, /2 lines of urls\.txt not queued[\s\S]*line 44: not a URL[\s\S]*line 45:.*no route/)
  const { run_id: runId, enqueued } = JSON.parse(result.stdout)
  assert.equal(enqueued, 40)
  assert.equal((await fleet.worker(runId).result).code, 0)
  assert.equal((await fleet.items(runId)).length, 40)
})

test('creates two runs when two orchestrators start at once, and shares one when two resume', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 60 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const [one, two] = await Promise.all([fleet.start('--site', site.url), fleet.start('--site', site.url)])
  assert.notEqual(one!.run_id, two!.run_id)
  const resumed = await Promise.all([fleet.start('--resume', one!.run_id), fleet.start('--resume', one!.run_id)])
  assert.deepEqual(
    resumed.map(({ status, run_id: id, enqueued }) => ({ status, id, enqueued })),
    [1, 2].map(() => ({ status: 'resumed', id: one!.run_id, enqueued: 0 })),
  )
  assert.equal((await fleet.worker(one!.run_id).result).code, 0)
  assert.equal((await fleet.items(one!.run_id)).length, 60)
  assert.equal((await fleet.stats(two!.run_id)).pending, 1, 'the other run was left alone')
})

test('rejects a worker with a different definition', async () => {
  await using database = await postgresForTests()
  using here = temporaryFolder()
  using there = temporaryFolder()
  const scraper = (greeting: string) => `
    import { defineScraper } from 'sluice'
    import * as z from 'zod'
    import { part } from './part.ts'
    export default defineScraper({
      name: 'own', item: z.object({ id: z.string() }), routes: { page: {} },
      start: ({ enqueue }) => enqueue('page', 'http://127.0.0.1:9/${greeting}'),
      handlers: { page: ({ emit }) => emit({ id: part }) },
    })`
  for (const [folder, part] of [
    [here, 'one'],
    [there, 'two'],
  ] as const) {
    mkdirSync(join(folder.path, 'scrapers', 'own'), { recursive: true })
    writeFileSync(join(folder.path, 'scrapers', 'own', 'own.ts'), scraper('same'))
    writeFileSync(join(folder.path, 'scrapers', 'own', 'part.ts'), `export const part = '${part}'\n`)
  }
  const run = await new Fleet({ frontier: database.url, cwd: here.path, scraper: 'own' }).start()
  const other = await new Fleet({ frontier: database.url, cwd: there.path, scraper: 'own' }).worker(run.run_id).result
  assert.equal(other.code, 2)
  assert.match(other.stderr, /E_DEFINITION_DIFFERS[\s\S]*own\.ts[\s\S]*fix:/)
})

test('hands leases back at once on SIGTERM, and another worker continues', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 200, delayMs: 20 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const first = fleet.worker(runId, '--concurrency', '4', '--lease', '10m')
  await until('it works', () => site.stats().requests > 60)
  first.child.kill('SIGTERM')
  const { code, stdout } = await first.result
  assert.equal(code, 4)
  assert.equal(JSON.parse(stdout).end, 'stopped')
  const { claimed, pending } = await fleet.stats(runId)
  assert.equal(claimed, 0, 'no lease of ten minutes is left behind')
  assert.ok(pending! > 0)
  assert.equal((await fleet.worker(runId).result).code, 0)
  assert.equal((await fleet.items(runId)).length, 200)
})

test('says what to do in distributed mode without a database', async () => {
  using folder = temporaryFolder()
  const { code, stderr } = await sluice(['start', 'books', '--mode', 'distributed'], { cwd: folder.path })
  assert.equal(code, 2)
  assert.match(stderr, /E_OPTION.*fleet[\s\S]*SLUICE_FRONTIER/)
})

test('exits with 3 if the database does not exist, without showing its password', async () => {
  using folder = temporaryFolder()
  const { code, stderr } = await sluice(
    ['start', 'books', '--mode', 'distributed', '--frontier', 'postgres://me:hunter2@127.0.0.1:9/none'],
    { cwd: folder.path },
  )
  assert.equal(code, 3, stderr)
  assert.match(stderr, /E_SERVICE.*127\.0\.0\.1:9/)
  assert.doesNotMatch(stderr, /hunter2/)
})

test('also runs a single process on a postgres: queue, and resumes from it', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 100, delayMs: 10 })
  using folder = temporaryFolder()
  const args = ['run', 'books', '--site', site.url, ...DETAILS, '--rps', '0', '--frontier', database.url, '--quiet']
  const stopped = await sluice([...args, '--pages', '30'], { cwd: folder.path })
  assert.equal(stopped.code, 4, stopped.stderr)
  const resumed = await sluice([...args, '--resume'], { cwd: folder.path })
  assert.equal(resumed.code, 0, resumed.stderr)
  const { stdout } = await sluice(['export', 'books'], { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } })
  assert.equal(new Set(stdout.trim().split('\n')).size, 100)
})
