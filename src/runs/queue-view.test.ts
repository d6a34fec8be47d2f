/** Reads runs on RabbitMQ and Redis while there is no broker: with a real Redis, and a store in a file. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from '../../test/services/redis.ts'
import { temporaryFolder } from '../../test/sluice.ts'
import { newRunId, type RunRecord } from '../core/run.ts'
import { openRedisFrontier } from '../frontier/redis/engine.ts'
import type { Store } from '../store/contract.ts'
import { retryLetters } from './dead-letters.ts'
import { exportItems } from './export-items.ts'
import { openStore, withRedisNamed } from './fleet-places.ts'
import { openRun } from './open-run.ts'
import { listAllRuns } from './run-list.ts'
import { runStats } from './run-numbers.ts'
import { startRecord } from './run-record.ts'
import { cancelRun, pauseRun } from './steer-run.ts'
import { withStoredItems } from './stored-items.ts'

/** Nothing listens there. */
const BROKER = 'amqp://127.0.0.1:1/'

const folder = temporaryFolder()
let redis: RedisServer
let client: Redis
let store: Store
const places = () => ({
  out: join(folder.path, 'runs'),
  frontier: BROKER,
  store: `sqlite:${join(folder.path, 'store.db')}`,
  redis: redis.url,
})

before(async () => {
  redis = await startRedis()
  client = new Redis(redis.url)
  store = await openStore(places())
})

after(async () => {
  client.disconnect()
  await store[Symbol.asyncDispose]()
  await redis[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

let clockMs = Date.now() - 3_600_000

/** Two pages are done with an item each, the third is dead; the fourth is waiting, unless the run is to be finished. */
async function workedRun(scraper: string, isFinished = false): Promise<RunRecord> {
  clockMs += 1000 // ids sort by time
  const runId = newRunId(clockMs)
  const start = { previous: undefined, runId, scraper, args: {}, source: scraper, frontier: BROKER, nowMs: clockMs }
  const record = startRecord(start)
  const options = { limits: {}, allowPrivate: false, allowAddress: [], userAgent: 'test' }
  await store.createRun({ record, definitionHash: 'hash', options })
  const ledger = await openRedisFrontier(redis.url, { runId })
  await using frontier = withStoredItems(ledger, store, runId) // as the workers use it, without their broker
  const task = (n: number) => ({ url: `https://shop.example/${n}`, route: 'page', data: null, depth: 0 })
  await frontier.add([1, 2, 3].map(task))
  const leases = await frontier.claim({ max: 3, workerId: 'w', leaseMs: 30_000 })
  await frontier.commit(
    leases.map((lease) => {
      const n = lease.task.url.at(-1)
      if (n !== '3') return { kind: 'done', lease, items: [{ key: `k${n}`, json: `{"id":"k${n}"}` }] } as const
      return { kind: 'dead', lease, error: { code: 'E_NOT_FOUND', class: 'not-found', message: 'gone' } } as const
    }),
  )
  if (!isFinished) await frontier.add([task(4)])
  else {
    const finishedAt = new Date(clockMs).toISOString()
    const pages = { ...record.pages, ok: 2, failed: 1, dead: 1 }
    await store.saveRun({ ...record, state: 'finished', exitCode: 0, finishedAt, pages }, ['running'])
  }
  return record
}

const totalsOf = ({ id }: RunRecord) => `sluice:{${id}}:totals`

test('reads numbers, items, dead letters and the list of runs from the ledger, without the broker', async () => {
  const record = await workedRun('shop')
  await using run = await openRun('shop', places())
  assert.equal(run.record.id, record.id)
  const { completed, dead, pending, items } = await runStats(run)
  assert.deepEqual([completed, dead, pending, items], [2, 1, 1, 2])
  let text = ''
  for await (const piece of exportItems({ run, format: 'jsonl', formulaSafe: false })) text += piece
  assert.deepEqual(text.trimEnd().split('\n').sort(), ['{"id":"k1"}', '{"id":"k2"}'])
  assert.deepEqual(
    (await run.frontier!.dead.groups()).map(({ cause }) => cause),
    ['gone'],
  )
  const { runs } = await listAllRuns({ places: places(), isAll: true, max: 20 })
  assert.deepEqual([runs[0]?.id, runs[0]?.state, runs[0]?.why], [record.id, 'running', '0 workers'])
  await run.askBroker()
  assert.equal(run.broker, undefined)
})

test('writes nothing by looking: a finished run keeps its expiry date', async () => {
  const record = await workedRun('still', true)
  await client.pexpire(totalsOf(record), 5_000_000)
  const clients = await client.hget(totalsOf(record), 'clients')
  {
    await using run = await openRun(record.id, places())
    await run.refresh()
    await run.frontier!.dead.list()
  }
  assert.equal(await client.hget(totalsOf(record), 'clients'), clients)
  const leftMs = await client.pttl(totalsOf(record))
  assert.ok(leftMs > 0 && leftMs <= 5_000_000, `${leftMs}`)
})

test('retries dead letters without the broker: the run is open again and stays', async () => {
  const record = await workedRun('again', true)
  await client.pexpire(totalsOf(record), 5_000_000)
  {
    await using run = await openRun(record.id, places())
    assert.equal(await retryLetters(run, {}), 1)
    assert.equal((await runStats(run)).pending, 1)
    assert.equal(run.record.state, 'running')
  }
  assert.equal(await client.pttl(totalsOf(record)), -1)
  await using worker = await openRedisFrontier(redis.url, { runId: record.id })
  const [lease] = await worker.claim({ max: 1, workerId: 'w', leaseMs: 1000 })
  assert.deepEqual([lease?.task.url, lease?.attempt], ['https://shop.example/3', 1])
})

test('pause and cancel reach the ledger', async () => {
  const record = await workedRun('steered')
  await using run = await openRun(record.id, places())
  assert.equal((await pauseRun(run, 'lunch')).isChanged, true)
  assert.equal((await runStats(run)).pauseReason, 'lunch')
  assert.equal((await cancelRun(run, 'enough')).isChanged, true)
  assert.equal(await client.hget(`sluice:{${record.id}}:meta`, 'stop'), 'enough')
})

test('still has the numbers of the record of a run that Redis has forgotten', async () => {
  const record = await workedRun('old', true)
  for (const key of await client.keys(`sluice:{${record.id}}:*`)) await client.unlink(key)
  await using run = await openRun(record.id, places())
  const { completed, failed, remaining } = await runStats(run)
  assert.deepEqual([completed, failed, remaining], [2, 1, 0])
  assert.deepEqual([run.record.pages.ok, run.record.state], [2, 'finished'])
  assert.equal(await client.exists(totalsOf(record)), 0)
})

test('says that a run is only half filled, and how to continue', async () => {
  const record = await workedRun('half')
  const meta = `sluice:{${record.id}}:meta`
  await client.hset(meta, 'started', 'no', 'source', 'urls')
  const why = async () => (await listAllRuns({ places: places(), isAll: false, max: 1 })).runs[0]?.why
  assert.equal(
    await why(),
    `being filled, or its filling was broken off (then: sluice produce --scraper half --run-id ${record.id} with the same --sitemap, --site, --url or --urls-file)`,
  )
  await client.hdel(meta, 'source')
  await using run = await openRun(record.id, places())
  assert.equal(run.filling, 'start')
  assert.deepEqual(run.resumeCommand(), ['start', 'half', '--mode', 'distributed', '--resume', record.id])
  await client.hset(meta, 'started', 'yes')
  assert.equal(await why(), '0 workers')
})

test('reports stored runs as unreadable at once while Redis is down, and the error names --redis', async () => {
  for (let i = 0; i < 12; i++) await workedRun('many', true)
  const away = { ...places(), redis: 'redis://127.0.0.1:1/0' }
  const startMs = performance.now()
  const { runs } = await listAllRuns({ places: away, isAll: true, max: 20 })
  // Each of them would wait 5 s for it, one after the other.
  assert.ok(performance.now() - startMs < (runs.length * 5000) / 2, `${performance.now() - startMs} ms`)
  assert.ok(runs.length > 12 && runs.every(({ state, why }) => state === 'unreadable' && /127.0.0.1:1/.test(why!)))
  const { ScrapeError } = await import('../core/errors.ts')
  const error = new ScrapeError('E_SERVICE', '127.0.0.1:6379/0 is unreachable: connect ECONNREFUSED')
  const named = withRedisNamed(error, { frontier: BROKER, redis: undefined }) as InstanceType<typeof ScrapeError>
  assert.match(named.fix, /--redis .*SLUICE_REDIS/)
  assert.equal(withRedisNamed(error, { frontier: BROKER, redis: 'redis://127.0.0.1:6379/0' }), error)
})
