/** Pages with more links and items than one call to Redis can carry. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { redisForTests } from '../../../test/services/redis.ts'
import { openRedisFrontier } from './engine.ts'

const redis = await redisForTests()
after(() => redis[Symbol.asyncDispose]())

const page = (name: string) => ({ url: `https://a.example/${name}`, route: 'page', depth: 0 })
const links = (count: number) => Array.from({ length: count }, (_, i) => page(`link ${i}`))
const items = (count: number) => Array.from({ length: count }, (_, i) => ({ key: `item ${i}`, json: '{}' }))

test('redis: accepts a page with tens of thousands of links and items', async () => {
  await using frontier = await openRedisFrontier(redis.url, { runId: 'large' })
  await frontier.add([page('hub')])
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 600_000 })
  const tasks = [...links(35_000), page('hub'), page('link 7')]
  const committed = await frontier.commit([{ kind: 'done', lease: lease!, tasks, items: items(25_000) }])
  assert.deepEqual(committed, {
    settled: 1,
    stale: [],
    added: 35_000,
    seen: 2,
    items: { new: 25_000, same: 0, changed: 0, backlog: 25_000 },
  })
  const { pending, completed, seen } = await frontier.stats()
  assert.deepEqual({ pending, completed, seen }, { pending: 35_000, completed: 1, seen: 35_001 })
})

test('redis: splits a commit of many pages, and reports the result of each', async () => {
  await using frontier = await openRedisFrontier(redis.url, { runId: 'many' })
  await frontier.add(Array.from({ length: 6 }, (_, i) => page(`hub ${i}`)))
  const leases = await frontier.claim({ max: 6, workerId: 'w', leaseMs: 600_000 })
  const stale = { ...leases[3]!, token: 'somebody-1.4' }
  const outcomes = leases.map((lease, i) => {
    const tasks = Array.from({ length: 5_000 }, (_, j) => page(`of ${i}: ${j}`))
    return { kind: 'done' as const, lease: i === 3 ? stale : lease, tasks, items: [{ key: String(i), json: '{}' }] }
  })
  const committed = await frontier.commit(outcomes)
  assert.deepEqual(committed.stale, [stale])
  assert.deepEqual([committed.settled, committed.added, committed.seen], [5, 25_000, 0])
  assert.deepEqual(committed.items, { new: 5, same: 0, changed: 0, backlog: 5 })
})

test('redis: accepts nothing from a large page whose lease is lost', async () => {
  await using frontier = await openRedisFrontier(redis.url, { runId: 'stale' })
  await frontier.add([page('hub')])
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: 600_000 })
  await frontier.sweep({ lossesMax: 3, workerIds: 'all' })
  const committed = await frontier.commit([{ kind: 'done', lease: lease!, tasks: links(35_000), items: items(3) }])
  assert.deepEqual([committed.settled, committed.stale.length, committed.added, committed.seen], [0, 1, 0, 0])
  assert.equal((await frontier.stats()).seen, 1)
})
