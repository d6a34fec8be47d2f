/** A fleet over RabbitMQ and Redis, the way a user runs it: the same commands as on PostgreSQL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fleet, until } from './fleet.ts'
import { rabbitForTests } from './services/rabbitmq.ts'
import { redisForTests } from './services/redis.ts'
import { startBooksSite, truth } from './site/books.ts'
import { temporaryFolder } from './sluice.ts'

async function place() {
  const parts = new AsyncDisposableStack()
  const [broker, redis] = [parts.use(await rabbitForTests()), parts.use(await redisForTests())]
  const folder = parts.use(temporaryFolder())
  const frontier = `${broker.url}?redis=${encodeURIComponent(redis.url)}`
  const fleet = new Fleet({ frontier, cwd: folder.path })
  return { fleet, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

test('workers share a run over a broker: every book once, and the run is finished', { timeout: 120_000 }, async () => {
  await using here = await place()
  await using site = await startBooksSite({ products: 300, delayMs: 5 })
  const { fleet } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const ends = await Promise.all([1, 2, 3].map(() => fleet.worker(runId, '--batch-size', '20').result))
  for (const end of ends) assert.equal(end.code, 0, end.stderr)
  const items = await fleet.items(runId)
  assert.equal(items.length, 300)
  assert.deepEqual(
    new Set(items.map(({ url }) => url)),
    new Set([...truth(300)].map(({ path }) => new URL(path, site.url).href)),
  )
  const { completed, remaining, state } = await fleet.stats(runId)
  assert.deepEqual({ completed, remaining, state }, { completed: 315, remaining: 0, state: 'finished' })
  const { broker } = JSON.parse((await fleet.run('stats', runId, '--json')).stdout)
  assert.ok(
    broker.some(({ name, ready }: { name: string; ready: number }) => name === `url_queue_ttl.${runId}` && ready === 0),
    JSON.stringify(broker),
  )
})

test('a worker killed between fetch and acknowledgement repeats pages, and no item', { timeout: 120_000 }, async () => {
  await using here = await place()
  await using site = await startBooksSite({ products: 300, delayMs: 12 })
  const { fleet } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const start = () => fleet.worker(runId, '--lease', '1500ms', '--concurrency', '8')
  for (let kills = 1; kills <= 4; kills++) {
    const victim = start()
    await until('it works', () => site.stats().requests > kills * 40)
    victim.child.kill('SIGKILL')
    await victim.result
  }
  const end = await start().result
  assert.equal(end.code, 0, end.stderr)
  const urls = (await fleet.items(runId)).map(({ url }) => url)
  assert.equal(urls.length, 300)
  assert.equal(new Set(urls).size, 300)
})
