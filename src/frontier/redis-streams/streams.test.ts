/** What the streams add to the ledger: work in progress that Redis itself shows, and claims that wait for work. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { until } from '../../../test/fleet.ts'
import { startRedis } from '../../../test/services/redis.ts'
import type { Frontier, Lease } from '../contract.ts'
import { openRedisFrontier } from '../redis/engine.ts'
import { prefixOf } from '../redis/link.ts'
import { openRedisStreamsFrontier, type RedisStreamsOptions } from './engine.ts'

const redis = await startRedis()
const client = new Redis(redis.url)
after(async () => {
  client.disconnect()
  await redis[Symbol.asyncDispose]()
})

/** Far longer than any test: a claim that is answered must have been woken. */
const WAIT_MS = 60_000

let runs = 0

/** A separate run for the test, and handles on it that are closed with the test. */
function place(t: TestContext) {
  const runId = `streams-${++runs}`
  const handles: Frontier[] = []
  t.after(async () => {
    for (const handle of handles) await handle[Symbol.asyncDispose]()
  })
  const open = async (options: RedisStreamsOptions = {}) => {
    const frontier = await openRedisStreamsFrontier(redis.url, { runId, waitMs: WAIT_MS, ...options })
    handles.push(frontier)
    return frontier
  }
  return { open, runId, prefix: prefixOf(runId), tasks: `${prefixOf(runId)}tasks:bulk` }
}

const page = (n: number | string, more: object = {}) => ({
  url: `https://a.example/${n}`,
  route: 'page',
  depth: 0,
  ...more,
})
const pages = (count: number) => Array.from({ length: count }, (_, i) => page(i))
const claim = (frontier: Frontier, workerId: string, more: object = {}) =>
  frontier.claim({ max: 1, workerId, leaseMs: 60_000, ...more })
const done = (lease: Lease) => ({ kind: 'done' as const, lease })
const pathsOf = (leases: readonly Lease[]) => leases.map(({ task: { url } }) => url.slice('https://a.example/'.length))

/** How many messages are pending for each worker, according to XPENDING. */
async function inHand(stream: string): Promise<Record<string, number>> {
  const [, , , consumers] = (await client.xpending(stream, 'workers')) as [number, string, string, string[][] | null]
  return Object.fromEntries((consumers ?? []).map(([name, count]) => [name!, Number(count)]))
}

async function waitingOn(prefix: string, lane = ''): Promise<number> {
  return await client.zcard(`${prefix}waiting${lane}`)
}

test('redis: a worker’s claimed tasks are pending under its name until they are settled', async (t) => {
  const { open, tasks } = place(t)
  const frontier = await open()
  await frontier.add(pages(6))
  assert.equal(await client.exists(tasks), 0, 'what nobody has claimed is on no stream')
  const first = await claim(frontier, 'w1', { max: 3 })
  const second = await claim(frontier, 'w2', { max: 2 })
  assert.deepEqual(await inHand(tasks), { w1: 3, w2: 2 })
  await frontier.commit([done(first[0]!), { kind: 'postpone', lease: first[1]!, atMs: 0, reason: 'test' }])
  assert.deepEqual(await inHand(tasks), { w1: 1, w2: 2 })
  assert.equal(await client.xlen(tasks), 3)
  await frontier.commit([first[2]!, ...second].map(done))
  assert.deepEqual([await inHand(tasks), await client.xlen(tasks)], [{}, 0])
})

test('redis: the tasks of a killed worker are taken over, and are then pending for another', async (t) => {
  const { open, tasks } = place(t)
  const frontier = await open()
  await frontier.add(pages(3))
  const lost = await claim(frontier, 'killed', { max: 3 })
  assert.deepEqual(await frontier.sweep({ lossesMax: 3, workerIds: ['killed'] }), { returned: 3, dead: 0 })
  assert.deepEqual([await inHand(tasks), await client.xlen(tasks)], [{}, 0])
  for (let i = 0; i < 3; i++) {
    const [suspect] = await claim(frontier, 'heir')
    assert.deepEqual(await inHand(tasks), { heir: 1 })
    await frontier.commit([done(suspect!)])
  }
  assert.equal((await frontier.commit(lost.map(done))).stale.length, 3)
  assert.equal((await frontier.stats()).completed, 3)
})

test('redis: the ledger alone can settle and sweep tasks given out over streams', async (t) => {
  const { open, runId, tasks } = place(t)
  const frontier = await open()
  await frontier.add(pages(2))
  const [first] = await claim(frontier, 'w', { max: 2 })
  await using ledger = await openRedisFrontier(redis.url, { runId })
  assert.equal((await ledger.commit([done(first!)])).settled, 1)
  assert.equal(await client.xlen(tasks), 1)
  assert.equal((await ledger.sweep({ lossesMax: 3, workerIds: 'all' })).returned, 1)
  assert.equal(await client.xlen(tasks), 0)
})

test('redis: a claim that finds nothing is answered when another process adds a task', async (t) => {
  const { open, prefix } = place(t)
  const [worker, other] = [await open(), await open()]
  await other.add([page('held')])
  const [held] = await claim(other, 'holder')
  const waiting = claim(worker, 'idle')
  await until('it waits', async () => (await waitingOn(prefix)) === 1)
  await other.add([page('new')])
  assert.deepEqual(pathsOf(await waiting), ['new'])
  const next = claim(worker, 'idle-2')
  await until('it waits again', async () => (await waitingOn(prefix)) === 1)
  await other.commit([{ ...done(held!), tasks: [page('found')] }])
  assert.deepEqual(pathsOf(await next), ['found'])
  assert.equal(await waitingOn(prefix), 0)
})

test('redis: a waiting claim is answered by tasks that become due, are put back or lost elsewhere', async (t) => {
  const { open, prefix } = place(t)
  const [worker, other] = [await open(), await open()]
  const error = { code: 'E_SERVER', class: 'server-error', message: 'test' } as const
  await other.add(['dead', 'lost', 'held'].map((name) => page(name)))
  const [dead] = await claim(other, 'w')
  await claim(other, 'killed')
  await claim(other, 'holder')
  await other.commit([{ kind: 'dead', lease: dead!, error }])
  const answeredBy = async (what: () => Promise<unknown>) => {
    const waiting = claim(worker, 'idle')
    await until('it waits', async () => (await waitingOn(prefix)) === 1)
    await what()
    const leases = await waiting
    await worker.commit(leases.map(done))
    return pathsOf(leases)
  }
  assert.deepEqual(await answeredBy(() => other.dead.retry()), ['dead'])
  assert.deepEqual(await answeredBy(() => other.sweep({ lossesMax: 3, workerIds: ['killed'] })), ['lost'])
  await other.add([page('soon', { notBeforeMs: Date.now() + 300 })])
  assert.deepEqual(pathsOf(await claim(worker, 'idle')), ['soon'])
})

test('redis: wakes as many workers as there are tasks, and only those that serve the lane', async (t) => {
  const { open, prefix } = place(t)
  const feeder = await open()
  await feeder.add([page('held')])
  await claim(feeder, 'holder')
  const given: string[] = []
  const wait = async (name: string, more: object = {}) => {
    const worker = await open()
    let leases: Lease[] = []
    // A worker that is woken for a task another one has taken in the meantime claims again, as the loop does.
    while (leases.length === 0) leases = await claim(worker, name, more)
    given.push(...leases.map(({ task }) => `${task.lane} to ${name.split('-')[0]}`))
  }
  const waiting = [wait('page-1'), wait('page-2'), wait('page-3'), wait('file-1', { lanes: ['files', 'files@here'] })]
  await until('all wait', async () => (await waitingOn(prefix)) === 3 && (await waitingOn(prefix, ':files')) === 1)
  await feeder.add(pages(2))
  await until('two are given', () => given.length === 2)
  await until(
    'the others wait',
    async () => (await waitingOn(prefix)) === 1 && (await waitingOn(prefix, ':files')) === 1,
  )
  await feeder.add([page('file', { lane: 'files@here' })])
  await until('the file is given', () => given.length === 3)
  await feeder.add([page('last')])
  await Promise.all(waiting)
  assert.deepEqual(given, ['bulk to page', 'bulk to page', 'files@here to file', 'bulk to page'])
})

test('redis: a claim does not wait if waiting is pointless', async (t) => {
  const { open } = place(t)
  const [worker, other] = [await open(), await open()]
  assert.deepEqual(await claim(worker, 'w'), [], 'an empty run')
  await other.add(pages(2))
  const [own] = await claim(worker, 'w')
  const [others] = await claim(other, 'holder')
  assert.deepEqual(await claim(worker, 'w'), [], 'its own commit may be what brings the next task')
  await worker.commit([done(own!)])
  assert.deepEqual(await claim(worker, 'w', { avoidHosts: ['a.example'] }), [], 'its own limits may end first')
  assert.deepEqual(await claim(worker, 'w', { lanes: ['bulk'] }), [], 'it will ask for the other lanes next')
  await other.pause('test')
  assert.deepEqual(await claim(worker, 'w'), [], 'paused')
  await other.resume()
  await other.commit([done(others!)])
  assert.deepEqual(await claim(worker, 'w'), [], 'the run is over')
})

test('redis: waiting workers are woken when the run is over', async (t) => {
  const { open, prefix } = place(t)
  const [worker, other] = [await open(), await open()]
  await other.add([page('last')])
  const [last] = await claim(other, 'holder')
  const waiting = claim(worker, 'idle')
  await until('it waits', async () => (await waitingOn(prefix)) === 1)
  await other.commit([done(last!)])
  assert.deepEqual(await waiting, [])
})

test('redis: a claim that waits while the server restarts ends, and the next one finds the task', async () => {
  await using own = await startRedis()
  const options = { runId: 'restarted', waitMs: 20_000 }
  await using worker = await openRedisStreamsFrontier(own.url, options)
  await using other = await openRedisStreamsFrontier(own.url, options)
  await other.add(pages(2))
  const [held] = await claim(other, 'holder')
  const [first] = await claim(worker, 'idle')
  await worker.commit([done(first!)])
  const waiting = claim(worker, 'idle')
  await until('it waits', async () => {
    const look = new Redis(own.url)
    const count = await look.zcard(`${prefixOf('restarted')}waiting`)
    look.disconnect()
    return count === 1
  })
  await own.stop('SIGKILL')
  await own.start()
  assert.deepEqual(await waiting, [])
  assert.equal((await other.commit([{ ...done(held!), tasks: [page('after')] }])).added, 1)
  assert.deepEqual(pathsOf(await claim(worker, 'idle')), ['after'])
})

test('redis: streams contain no finished tasks, and forget workers that have left', async (t) => {
  const { open, tasks, prefix } = place(t)
  const frontier = await open({ waitMs: 0 })
  await frontier.add(pages(3000))
  await frontier.add([page('file', { lane: 'files' })])
  const namesOf = async () =>
    ((await client.xinfo('CONSUMERS', tasks, 'workers')) as unknown[][]).map((flat) => flat[1])
  {
    const worker = await openRedisStreamsFrontier(redis.url, { runId: prefix.slice(8, -2), waitMs: 0 })
    for (let leases = await claim(worker, 'gone', { max: 100 }); leases.length > 0; ) {
      await worker.commit(leases.map(done))
      leases = await claim(worker, 'gone', { max: 100 })
    }
    assert.deepEqual(await namesOf(), ['gone'])
    await worker[Symbol.asyncDispose]()
  }
  assert.deepEqual(await namesOf(), [])
  assert.equal(await client.xlen(tasks), 0)
  assert.ok(Number(await client.memory('USAGE', tasks, 'SAMPLES', 0)) < 4096)
})

test('redis: two runs on one server are isolated from each other', async (t) => {
  const [one, two] = [place(t), place(t)]
  const [a, b] = [await one.open({ waitMs: 0 }), await two.open({ waitMs: 0 })]
  await a.add(pages(3))
  assert.deepEqual(await claim(b, 'w'), [])
  assert.deepEqual(await b.add(pages(2)), { added: 2, seen: 0 })
  const leases = await claim(a, 'w', { max: 9 })
  assert.equal(leases.length, 3)
  assert.equal((await b.commit(leases.map(done))).stale.length, 3)
  assert.deepEqual(await b.sweep({ lossesMax: 3, workerIds: 'all' }), { returned: 0, dead: 0 })
  assert.deepEqual([(await a.stats()).claimed, (await b.stats()).pending], [3, 2])
})

test('redis: rejects a server that would evict tasks, and a run that was never started', async (t) => {
  await using own = await startRedis()
  const look = new Redis(own.url)
  t.after(() => look.disconnect())
  const open = (options: RedisStreamsOptions) => openRedisStreamsFrontier(own.url, options)
  await assert.rejects(open({ runId: 'unheard-of', mustExist: true }), { code: 'E_RUN_NOT_FOUND' })
  await look.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await assert.rejects(open({}), /maxmemory-policy allkeys-lru/)
})

test('redis: a database the server does not have is rejected, not replaced by the first', async () => {
  const base = redis.url.replace(/\/\d*$/, '')
  await assert.rejects(openRedisStreamsFrontier(`${base}/99`), /no database 99/)
  await using other = await openRedisStreamsFrontier(`${base}/3`)
  assert.deepEqual(await other.add([page('one')]), { added: 1, seen: 0 })
})
