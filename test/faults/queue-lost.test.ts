/** Redis loses its data half-way through a run: workers end with a clear error, and every command says why. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Fleet, until } from '../fleet.ts'
import { rabbitForTests } from '../services/rabbitmq.ts'
import { type RedisServer, startRedis } from '../services/redis.ts'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

interface Seen {
  state: string
  remaining: number
  completed: number
  reason: string
  why: string
}

async function flush({ port }: RedisServer): Promise<void> {
  const client = new Redis(port)
  await client.flushall()
  client.disconnect()
}

/** Works on a run until some of it is done, loses its queue, and looks at it. */
async function loseRun(frontier: string, lose: () => Promise<void>): Promise<void> {
  await using site = await startBooksSite({ products: 400, delayMs: 100 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const workers = [1, 2].map(() => fleet.worker(runId, '--concurrency', '4'))
  await until('some of it is stored', async () => (await fleet.items(runId)).length > 20)
  await lose()
  for (const { code, stdout, stderr } of await Promise.all(workers.map(({ result }) => result))) {
    assert.equal(code, 3, stdout + stderr)
    assert.match(stdout, new RegExp(`the queue of run ${runId} is gone: .*lost its data`))
  }
  const [stats, ps] = await Promise.all([fleet.run('stats', runId, '--json'), fleet.run('ps', '--json')])
  const numbers = JSON.parse(stats.stdout) as Seen
  const [listed] = (JSON.parse(ps.stdout) as { runs: Seen[] }).runs
  for (const { state, remaining, completed } of [numbers, listed!]) {
    assert.equal(state, 'failed')
    assert.ok(remaining > 0 && completed > 0, `remaining ${remaining}, completed ${completed}`)
  }
  for (const text of [numbers.reason, listed!.why]) assert.match(text, /the queue of run \S+ is gone/)
  assert.ok((await fleet.items(runId)).length > 20, 'what was stored can still be taken out')
  const again = await fleet.worker(runId).result
  assert.notEqual(again.code, 0)
  const resumed = await fleet.run('start', 'books', '--mode', 'distributed', '--resume', runId)
  assert.equal(resumed.code, 3, resumed.stderr)
  assert.match(resumed.stderr, /E_QUEUE_LOST[\s\S]*sluice start NAME --mode distributed --fresh/)
}

test('redis: workers exit with 3 after Redis was killed without persistence', {
  timeout: 200_000,
}, async () => {
  await using redis = await startRedis({ settings: ['--appendonly', 'no'] })
  await loseRun(redis.url, async () => {
    await redis.stop('SIGKILL')
    await redis.start()
  })
})

test('amqp: workers exit with 3 after the ledger was emptied', { timeout: 200_000 }, async () => {
  await using broker = await rabbitForTests()
  await using redis = await startRedis()
  await loseRun(`${broker.url}?redis=${encodeURIComponent(redis.url)}`, () => flush(redis))
})
