/** A fleet on RabbitMQ and Redis, as a user runs it: the same commands as on PostgreSQL. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openFleetFrontier, openStore } from '../src/runs/fleet-places.ts'
import { Fleet, until } from './fleet.ts'
import { rabbitForTests } from './services/rabbitmq.ts'
import { redisForTests, startRedis } from './services/redis.ts'
import { startBooksSite, truth } from './site/books.ts'
import { temporaryFolder } from './sluice.ts'

async function place() {
  const parts = new AsyncDisposableStack()
  const [broker, redis] = [parts.use(await rabbitForTests()), parts.use(await redisForTests())]
  const folder = parts.use(temporaryFolder())
  const frontier = `${broker.url}?redis=${encodeURIComponent(redis.url)}`
  const fleet = new Fleet({ frontier, cwd: folder.path })
  return { fleet, broker, folder: folder.path, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

test('workers share a run over a broker: every book once, and the run is finished', async () => {
  await using here = await place()
  await using site = await startBooksSite({ products: 300, delayMs: 5 })
  const { fleet } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  // The management API may be slow to answer, and its figures are some seconds old.
  await until('the broker tells of the first page', async () => {
    const { broker } = await fleet.stats(runId)
    return broker?.some(({ name, ready }) => name === `url_queue_ttl.${runId}` && ready === 1) === true
  })
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
})

interface BrokerConsumer {
  queue: { name: string }
  ack_required: boolean
}

test('acknowledges messages as each worker was configured', async () => {
  await using here = await place()
  // The broker's API needs some seconds to list the consumers; until then the run must not end.
  let isTold = false
  await using site = await startBooksSite({ products: 300, delayMs: () => (isTold ? 0 : 2000) })
  const { fleet, broker } = here
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const workers = [
    fleet.worker(runId, '--concurrency', '4', '--ack', 'auto', '--expired', 'dead'),
    fleet.worker(runId, '--concurrency', '4', '--ack', 'priority=auto,bulk=manual'),
  ]
  const modes = async (queue: string) => {
    const consumers = (await broker.api('GET', `/consumers/${broker.vhost}`)) as BrokerConsumer[]
    return consumers.filter(({ queue: { name } }) => name === `${queue}.${runId}`).map((one) => one.ack_required)
  }
  await until('one waits for no acknowledgement, the other does', async () => new Set(await modes('url_queue_ttl')).size === 2) // biome-ignore format: one line reads better
  isTold = true
  for (const { code, stderr } of await Promise.all(workers.map(({ result }) => result))) assert.equal(code, 0, stderr)
  const { completed, remaining } = await fleet.stats(runId)
  assert.deepEqual({ completed, remaining }, { completed: 315, remaining: 0 })
  assert.equal((await fleet.items(runId)).length, 300)
})

test('rejects an invalid acknowledgement mode before the worker begins', async () => {
  await using here = await place()
  const { code, stderr } = await here.fleet.worker('any', '--ack', 'bulk=perhaps', '--expired', 'burn').result
  assert.notEqual(code, 0)
  assert.match(stderr, /ack .*must be auto, manual, or one of them for each lane/)
  assert.match(stderr, /expired/)
})

test('logs each attempt to reconnect to the queue once, however many operations wait for it', async () => {
  await using here = await place()
  await using redis = await startRedis()
  await using store = await openStore({ frontier: here.broker.url, store: `sqlite:${join(here.folder, 'store.db')}` })
  const lines: string[] = []
  const places = { frontier: here.broker.url, redis: redis.url }
  await using frontier = await openFleetFrontier(places, 'away', { store, onOutage: (line) => lines.push(line) })
  await redis.stop('SIGKILL')
  const waiting = Promise.all(Array.from({ length: 10 }, () => frontier.stats()))
  await until('it has tried five times', () => lines.length >= 5)
  await redis.start()
  await waiting
  for (const [i, line] of lines.entries())
    assert.match(line, new RegExp(`the queue is away .*: waiting for it, try ${i + 1}$`))
})

test('repeats pages, but no item, of a worker killed between fetch and acknowledgement', async () => {
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
