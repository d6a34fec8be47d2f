/** What a fleet on `redis:` must survive: workers killed at any moment, Redis killed and restarted half-way through a run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { crashCheck } from '../../src/frontier/redis/crash-check.test-kit.ts'
import { assertAllBooks, Fleet, until } from '../fleet.ts'
import { redisForTests, startRedis } from '../services/redis.ts'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const DETAILS = ['--arg', 'details=true']

test('redis: loses and doubles nothing when workers are killed at any moment', async (t) => {
  await using redis = await redisForTests()
  await crashCheck(t, { engine: 'streams', url: '', redisUrl: redis.url, runId: 'crash', pages: 20_000 }, 10)
})

test('takes over the pages of a killed worker, and has every book once', async (t) => {
  await using redis = await redisForTests()
  await using site = await startBooksSite({ products: 300, delayMs: 10 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: redis.url, cwd: folder.path })
  const look = new Redis(redis.url)
  t.after(() => look.disconnect())
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const start = () => fleet.worker(runId, '--lease', '1500ms', '--concurrency', '8')
  const inHand = async () => {
    const stream = `sluice:{${runId}}:tasks:bulk`
    if ((await look.exists(stream)) === 0) return []
    const [, , , consumers] = (await look.xpending(stream, 'workers')) as [number, string, string, string[][] | null]
    return consumers ?? []
  }
  const [victim, heir] = [start(), start()]
  await until('both have pages in hand', async () => site.stats().requests > 60 && (await inHand()).length === 2)
  victim.child.kill('SIGKILL')
  await victim.result
  const end = await heir.result
  assert.equal(end.code, 0, end.stderr)
  assert.deepEqual(await inHand(), [])
  await assertAllBooks(fleet, runId, site, 300)
  const { workers } = JSON.parse((await fleet.run('ps', '--all', '--json')).stdout).runs[0] as { workers: number }
  assert.equal(workers, 0)
})

test('continues the run after Redis is killed and restarted half-way', async () => {
  await using redis = await startRedis()
  await using site = await startBooksSite({ products: 300, delayMs: 10 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: redis.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const workers = [1, 2].map(() => fleet.worker(runId, '--concurrency', '8', '--lease', '5s'))
  for (const [requests, signal] of [
    [80, 'SIGTERM'],
    [180, 'SIGKILL'],
  ] as const) {
    await until(`${requests} requests`, () => site.stats().requests > requests)
    await redis.stop(signal)
    await redis.start()
  }
  for (const { result } of workers) assert.equal((await result).code, 0, (await result).stderr)
  await assertAllBooks(fleet, runId, site, 300)
})

test('lists, pauses, resumes and cancels runs on redis: like those of any fleet', async () => {
  await using redis = await redisForTests()
  await using site = await startBooksSite({ products: 200, delayMs: 20 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: redis.url, cwd: folder.path })
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await fleet.run(...args)
    assert.equal(code, 0, stderr)
    return stdout
  }
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  await run('pause', runId)
  const worker = fleet.worker(runId, '--concurrency', '4')
  await until('the worker is seen', async () => (await fleet.stats(runId)).workers === 1)
  assert.equal(site.stats().requests, 0)
  await run('resume', runId)
  await until('it works', () => site.stats().requests > 20)
  await run('cancel', runId)
  assert.equal((await worker.result).code, 4)
  assert.match(await run('ps', '--all'), new RegExp(runId))
  assert.match(await run('logs', runId, '--json'), /"worker/)
  assert.match(await run('dlq', 'list', runId), /no dead letters/)
  assert.ok((await fleet.items(runId)).length > 0)
})

test('keeps the queue of a single run in Redis if configured, and reads and resumes it there', async () => {
  await using redis = await redisForTests()
  await using site = await startBooksSite({ products: 60 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: redis.url, cwd: folder.path })
  const first = await fleet.run('run', 'books', '--site', site.url, ...DETAILS, '--rps', '0', '--pages', '20', '--json')
  assert.equal(first.code, 4, first.stderr)
  const { remaining } = await fleet.stats('books')
  assert.ok(remaining! > 0)
  const second = await fleet.run('run', 'books', '--resume', '--rps', '0', '--json')
  assert.equal(second.code, 0, second.stderr)
  assert.equal((await fleet.items('books')).length, 60)
})
