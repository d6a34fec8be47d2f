/** A middlebox that loses or repeats bytes: an invalid reply closes the connection, is requested again, and is never used. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { garblingProxy, seeded } from '../../../test/services/garbling-proxy.ts'
import { rabbitForTests } from '../../../test/services/rabbitmq.ts'
import { startRedis } from '../../../test/services/redis.ts'
import type { Frontier, Outcome } from '../contract.ts'
import { openRabbitFrontier } from '../rabbit/engine.ts'
import { openRedisStreamsFrontier } from '../redis-streams/engine.ts'

const redis = await startRedis()
after(() => redis[Symbol.asyncDispose]())

const PAGES = 60
/** A connection that waits for lost bytes is given up soon. */
const TIMES = { outageMs: 60_000, silenceMsMax: 150, answerMsMax: 300 }

const page = (n: number) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0 })
const pathOf = (url: string) => url.slice('https://a.example/'.length)

/** Page N links to 2N and 2N + 1, and has one item. */
function outcomeOf(lease: Awaited<ReturnType<Frontier['claim']>>[number]): Outcome {
  const n = Number(pathOf(lease.task.url))
  const tasks = [2 * n, 2 * n + 1].filter((next) => next <= PAGES).map(page)
  return { kind: 'done', lease, tasks, items: [{ key: String(n), json: `{"n":${n}}` }] }
}

/** Several claims, commits and reads in progress at once, as in a worker. */
async function workToEnd(frontier: Frontier, workerId: string): Promise<void> {
  for (let left = 1; left > 0; ) {
    const [leases] = await Promise.all([
      frontier.claim({ max: 4, workerId, leaseMs: 60_000 }),
      frontier.stats(),
      frontier.getMeta('started'),
    ])
    await Promise.all([
      ...leases.map((lease) => frontier.commit([outcomeOf(lease)])),
      frontier.extend(leases, 60_000),
      frontier.nextDueMs(),
    ])
    left = (await frontier.stats()).remaining
  }
}

interface Check {
  open: (port: number, runId: string) => Promise<Frontier>
  seed: number
  /** About one reply in this many is garbled. */
  every: number
}

async function check({ open, seed, every }: Check): Promise<number> {
  await using proxy = await garblingProxy(redis.port)
  await using frontier = await open(proxy.port, `garbled-${seed}-${process.pid}`)
  await frontier.setMeta('started', 'yes')
  await frontier.add([page(1)])
  proxy.begin({ every, random: seeded(seed) })
  await Promise.all([workToEnd(frontier, 'a'), workToEnd(frontier, 'b')])
  proxy.end()
  assert.equal(await frontier.getMeta('started'), 'yes')
  const { completed, failed, seen, remaining, items } = await frontier.stats()
  assert.deepEqual(
    { completed, failed, seen, remaining, items },
    { completed: PAGES, failed: 0, seen: PAGES, remaining: 0, items: PAGES },
    `seed ${seed}`,
  )
  const logged = await frontier.items.read({ afterSeq: 0, max: 1000 })
  assert.equal(new Set(logged.map(({ key }) => key)).size, PAGES)
  for (const { key, json } of logged) assert.equal(json, `{"n":${key}}`)
  return proxy.garbled
}

test('redis: every page is done once over a stream that loses and repeats bytes', async (t) => {
  const open: Check['open'] = (port, runId) =>
    openRedisStreamsFrontier(`redis://127.0.0.1:${port}/0`, { runId, waitMs: 20, ...TIMES })
  let garbled = 0
  for (let seed = 1; seed <= 4; seed++) garbled += await check({ open, seed, every: 8 })
  t.diagnostic(`${garbled} answers were garbled`)
  assert.ok(garbled > 0)
})

test('amqp: every page is done once over a ledger whose stream loses and repeats bytes', async (t) => {
  await using broker = await rabbitForTests()
  const open: Check['open'] = (port, runId) =>
    openRabbitFrontier(broker.url, { runId, redisUrl: `redis://127.0.0.1:${port}/0`, ...TIMES })
  let garbled = 0
  for (let seed = 1; seed <= 3; seed++) garbled += await check({ open, seed, every: 4 })
  t.diagnostic(`${garbled} answers were garbled`)
  assert.ok(garbled > 0)
})
