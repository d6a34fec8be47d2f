/** What the prototype of this engine got wrong, each as a promise that is kept. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Connection } from 'rabbitmq-client'
import { rabbitForTests } from '../../../test/services/rabbitmq.ts'
import { redisForTests } from '../../../test/services/redis.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { DeadLetter, Frontier, Lease } from '../contract.ts'
import { openRedisFrontier } from '../redis/engine.ts'
import { openRabbitFrontier, type RabbitFrontierOptions } from './engine.ts'

const [rabbit, redis] = await Promise.all([rabbitForTests(), redisForTests()])
after(async () => {
  await rabbit[Symbol.asyncDispose]()
  await redis[Symbol.asyncDispose]()
})

let runs = 0
const newRun = () => `promise-${++runs}`
const open = (runId: string, options: RabbitFrontierOptions = {}) =>
  openRabbitFrontier(rabbit.url, { redisUrl: redis.url, runId, waitMs: 1000, ...options })

const page = (n: number | string, more = {}) => ({ url: `https://a.example/${n}`, route: 'page', depth: 0, ...more })
const pages = (count: number, more = {}) => Array.from({ length: count }, (_, i) => page(i, more))
const claim = (frontier: Frontier, max: number, more = {}) =>
  frontier.claim({ max, workerId: 'w', leaseMs: 60_000, ...more })
const pathsOf = (leases: readonly Lease[]) => leases.map(({ task }) => new URL(task.url).pathname.slice(1))
const finish = (frontier: Frontier, leases: readonly Lease[]) =>
  frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(20)
}

/** Uses a separate channel, as another program would. */
async function aside<T>(body: (channel: Awaited<ReturnType<Connection['acquire']>>) => Promise<T>): Promise<T> {
  const connection = new Connection(rabbit.url)
  connection.on('error', () => {})
  const channel = await connection.acquire()
  await channel.confirmSelect()
  try {
    return await body(channel)
  } finally {
    await channel.close().catch(() => {})
    await connection.close()
  }
}

const depth = (queue: string) =>
  aside(async (channel) => (await channel.queueDeclare({ queue, passive: true })).messageCount)

test('workers consume what the producer publishes, under the original’s names', async () => {
  await using frontier = await open('default', { fresh: true })
  await frontier.add([...pages(3), page('news', { lane: 'priority' })])
  await until(async () => (await depth('url_queue_ttl')) === 3 && (await depth('priority_queue')) === 1)
  const leases = await claim(frontier, 4)
  assert.deepEqual(pathsOf(leases), ['news', '0', '1', '2'])
  await finish(frontier, leases)
  await until(async () => (await depth('url_queue_ttl')) === 0)
})

test('messages are persistent and readable for people', async () => {
  await using frontier = await open('default', { fresh: true })
  await frontier.add([page('seen')])
  await until(async () => (await depth('url_queue_ttl')) === 1)
  const message = await aside((channel) => channel.basicGet({ queue: 'url_queue_ttl' }))
  assert.equal(message?.durable, true)
  assert.equal(message?.body.url, 'https://a.example/seen')
  assert.equal(message?.type, 'sluice.task')
  assert.deepEqual(pathsOf(await claim(frontier, 1)), ['seen'])
})

test('a postponed URL is neither dropped nor given out at once', async () => {
  let nowMs = 1_700_000_000_000
  await using frontier = await open(newRun(), { now: () => nowMs })
  await frontier.add([page(1), page(2)])
  const [limited, failed] = await claim(frontier, 2)
  await frontier.commit([
    { kind: 'postpone', lease: limited!, atMs: nowMs + 500, reason: 'rate' },
    {
      kind: 'retry',
      lease: failed!,
      atMs: nowMs + 1000,
      error: { code: 'E_SERVER', class: 'server-error', message: 'x' },
    },
  ])
  assert.deepEqual(await claim(frontier, 2), [])
  nowMs += 500
  assert.deepEqual(pathsOf(await claim(frontier, 2)), ['1'])
  nowMs += 500
  const [again] = await claim(frontier, 2)
  assert.deepEqual([pathsOf([again!]), again?.attempt], [['2'], 2])
})

test('an expired message is caught and its task waits again', async () => {
  let ttlMs: number | undefined = 50
  const runId = newRun()
  await using frontier = await open(runId, { messageTtlMs: () => ttlMs })
  await frontier.add(pages(20))
  await until(async () => (await depth(`expired_urls.${runId}`)) === 20)
  ttlMs = undefined // from now on the queue's own hour applies: the smaller of both
  const given = new Set<string>()
  await until(async () => {
    const leases = await claim(frontier, 10)
    for (const path of pathsOf(leases)) given.add(path)
    await finish(frontier, leases)
    return given.size === 20
  })
  assert.equal((await frontier.stats()).completed, 20)
})

test('an expired message becomes a dead letter with its own cause, if configured', async () => {
  const runId = newRun()
  await using frontier = await open(runId, {
    messageTtlMs: ({ lane }) => (lane === 'priority' ? 30 : undefined),
    expired: 'dead',
  })
  await frontier.add([page('stale news', { lane: 'priority' }), page('lasting')])
  await until(async () => (await depth(`expired_urls.${runId}`)) === 1)
  const leases = await claim(frontier, 5)
  assert.deepEqual(pathsOf(leases), ['lasting'])
  await until(async () => (await frontier.stats()).dead === 1)
  const [group] = await frontier.dead.groups()
  assert.match(group!.cause, /waited in the queue for longer than its message lives/)
  assert.equal((await frontier.stats()).pending, 0)
  await until(async () => (await depth(`failed_urls.${runId}`)) === 1)
})

test('a task whose message went from worker to worker unsettled has not expired and does not become a dead letter', async () => {
  const runId = newRun()
  await using frontier = await open(runId, { expired: 'dead' })
  await frontier.add([page('handed around')])
  const queue = `url_queue_ttl.${runId}`
  await until(async () => (await depth(queue)) === 1)
  await aside(async (channel) => {
    await until(async () => {
      const message = await channel.basicGet({ queue })
      if (message !== undefined) channel.basicNack({ deliveryTag: message.deliveryTag, requeue: true })
      return (await depth(`expired_urls.${runId}`)) === 1
    })
  })
  const given: Lease[] = []
  await until(async () => {
    given.push(...(await claim(frontier, 1)))
    return given.length === 1 || (await frontier.stats()).dead > 0
  })
  assert.deepEqual([pathsOf(given), (await frontier.stats()).dead], [['handed%20around'], 0])
})

test('a queue declared differently by another program is reported, not fought over', async () => {
  const runId = newRun()
  await aside((channel) =>
    channel.queueDeclare({ queue: `url_queue_ttl.${runId}`, durable: false, exclusive: false, autoDelete: true }),
  )
  await assert.rejects(open(runId), (error: ScrapeError) => {
    assert.equal(error.code, 'E_SERVICE')
    assert.match(error.fix, /declared otherwise/)
    return true
  })
})

test('a worker has no more unacknowledged messages than its prefetch; others get the rest', async () => {
  const runId = newRun()
  await using one = await open(runId, { prefetch: 10 })
  await using two = await open(runId, { prefetch: 10, waitMs: 2000 })
  await one.add(pages(100))
  const first = await claim(one, 5)
  const second = await claim(two, 10, { workerId: 'two' })
  assert.equal(first.length, 5)
  assert.equal(second.length, 10)
  await until(async () => (await depth(`url_queue_ttl.${runId}`)) === 80)
})

test('several workers share the work evenly', async () => {
  const runId = newRun()
  const handles = await Promise.all([1, 2, 3].map(() => open(runId, { waitMs: 50 })))
  await handles[0]!.add(Array.from({ length: 600 }, (_, i) => page(i, { url: `https://h${i % 20}.example/${i}` })))
  const work = async (frontier: Frontier, workerId: string): Promise<number> => {
    let done = 0
    for (;;) {
      const leases = await claim(frontier, 4, { workerId })
      if (leases.length === 0 && (await frontier.stats()).remaining === 0) return done
      await sleep(2)
      await finish(frontier, leases)
      done += leases.length
    }
  }
  const shares = await Promise.all(handles.map((handle, i) => work(handle, `w${i}`)))
  for (const handle of handles) await handle[Symbol.asyncDispose]()
  assert.equal(shares.reduce((sum, share) => sum + share, 0), 600) // biome-ignore format: one line reads better
  for (const share of shares) assert.ok(share > 100, `shares were ${shares}`)
})

test('a URL that was recorded as seen but never published is published later', async () => {
  const runId = newRun()
  let nowMs = 1_700_000_000_000
  const now = () => nowMs
  {
    // Seen and numbered, but nothing published: the producer died after the script.
    await using ledger = await openRedisFrontier(redis.url, { runId, now })
    await ledger.add(pages(5))
  }
  await using frontier = await open(runId, { now })
  assert.deepEqual(await frontier.add(pages(5)), { added: 0, seen: 5 })
  const leases = await claim(frontier, 3)
  assert.equal(leases.length, 3)
  await finish(frontier, leases)
  // Staged and not confirmed: the process died before the broker had it.
  const prefix = `sluice:{${runId}}:`
  const client = new Redis(redis.url)
  await client.zadd(`${prefix}sending`, nowMs, '4', nowMs, '5')
  client.disconnect()
  await aside((channel) => channel.queuePurge({ queue: `url_queue_ttl.${runId}` }))
  nowMs += 20_000
  const rest = [...(await claim(frontier, 3)), ...(await claim(frontier, 3))]
  assert.deepEqual(pathsOf(rest).sort(), ['3', '4'])
})

test('a page whose worker was lost before the acknowledgement is repeated, its item is not', async () => {
  const runId = newRun()
  const item = { key: 'a', json: '{"a":1}' }
  await using frontier = await open(runId)
  {
    const lost = await open(runId)
    await lost.add([page(1)])
    assert.equal((await claim(lost, 1, { workerId: 'lost' })).length, 1)
    await lost[Symbol.asyncDispose]()
  }
  await frontier.sweep({ lossesMax: 3, workerIds: ['lost'] })
  const [lease] = await claim(frontier, 1)
  assert.equal(lease?.losses, 1)
  const committed = await frontier.commit([{ kind: 'done', lease: lease!, items: [item, item] }])
  assert.deepEqual([committed.settled, committed.items.new, committed.items.same], [1, 1, 1])
  assert.equal((await frontier.items.read({ afterSeq: 0, max: 10 })).length, 1)
})

test('a foreign message goes to the dead letters and to failed_urls, and does no harm', async () => {
  const runId = newRun()
  await using frontier = await open(runId, { waitMs: 100 })
  const queue = `url_queue_ttl.${runId}`
  await aside(async (channel) => {
    for (const body of [
      '{"broken',
      'plain text',
      Buffer.from([0xff, 0, 1]),
      '[1,2]',
      '{"url":"ftp://x.example/"}',
      '{"epoch":"x"}',
      '{"url":"https://b.example/lane","route":"page","lane":""}',
      '{"url":"https://b.example/lane","route":"page","lane":"files"}',
      `{"url":"https://b.example/lane","route":"page","lane":"${'x'.repeat(300)}"}`,
      '{"url":"https://b.example/priority","route":"page","priority":1e999}',
    ]) {
      await channel.basicPublish({ routingKey: queue }, body)
    }
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}` // can be parsed, but not stringified again
    for (const body of ['{nonsense', deep])
      await channel.basicPublish({ routingKey: queue, contentType: 'application/json' }, Buffer.from(body))
    await channel.basicPublish({ routingKey: queue }, { url: 'https://b.example/x?utm_source=y', route: 'page' })
  })
  await frontier.add([page('ours')])
  const given: Lease[] = []
  await until(async () => {
    given.push(...(await claim(frontier, 5)))
    return given.length === 2 && (await frontier.stats()).dead === 12
  })
  assert.deepEqual(given.map(({ task }) => task.url).sort(), ['https://a.example/ours', 'https://b.example/x'])
  await finish(frontier, given)
  const groups = await frontier.dead.groups()
  assert.ok(groups.every(({ code }) => code === 'E_MESSAGE_FOREIGN'))
  assert.ok(groups.some(({ cause }) => cause.includes('is not JSON')))
  await until(async () => (await depth(`failed_urls.${runId}`)) === 12)
  const { pending, claimed, completed, failed, seen } = await frontier.stats()
  assert.equal(pending + claimed + completed + failed, seen)
})

test('a foreign message in a queue that never had a task becomes a task, and the run does not end before', async () => {
  const runId = newRun()
  await using frontier = await open(runId)
  const queue = `priority_queue.${runId}`
  const body = { url: 'https://b.example/theirs', route: 'page' }
  await aside((channel) => channel.basicPublish({ routingKey: queue }, body))
  await until(async () => (await depth(queue)) === 1)
  assert.equal((await frontier.stats()).remaining, 1)
  const given: Lease[] = []
  await until(async () => given.push(...(await claim(frontier, 5))) > 0)
  assert.deepEqual(given.map(({ task }) => [task.url, task.lane]), [['https://b.example/theirs', 'priority']]) // biome-ignore format: one line reads better
  await finish(frontier, given)
  assert.equal((await frontier.stats()).remaining, 0)
})

test('every dead letter has a copy in failed_urls for people, whatever its cause', async () => {
  const runId = newRun()
  await using frontier = await open(runId)
  await frontier.add([page('gone'), page('poison')])
  const [gone] = await claim(frontier, 1)
  await claim(frontier, 1, { workerId: 'lost' })
  await frontier.commit([
    { kind: 'dead', lease: gone!, error: { code: 'E_NOT_FOUND', class: 'not-found', message: 'answered 404' } },
  ])
  assert.equal((await frontier.sweep({ lossesMax: 0, workerIds: ['lost'] })).dead, 1)
  await until(async () => (await depth(`failed_urls.${runId}`)) === 2)
  const copies: unknown[] = []
  await aside(async (channel) => {
    while (copies.length < 2) {
      const { body } = (await channel.basicGet({ queue: `failed_urls.${runId}` }))!
      copies.push([body.url, body.error.code])
    }
  })
  const [{ error }] = (await frontier.dead.list({ host: 'a.example' })).filter(({ task }) => /poison/.test(task.url)) as [DeadLetter] // biome-ignore format: one line reads better
  assert.deepEqual(copies.sort(), [['https://a.example/gone', 'E_NOT_FOUND'], ['https://a.example/poison', error.code]]) // biome-ignore format: one line reads better
})

test('in auto mode the broker waits for nothing, and the tasks of a lost worker still come back', async () => {
  const runId = newRun()
  const auto = { ack: 'auto' as const, waitMs: 200, lostMs: 300 }
  await using frontier = await open(runId, auto)
  {
    const lost = await open(runId, auto)
    await lost.add(pages(50))
    await claim(lost, 5, { workerId: 'lost' })
    await until(async () => (await depth(`url_queue_ttl.${runId}`)) === 0) // all delivered, none waits for an acknowledgement
    await lost[Symbol.asyncDispose]()
  }
  await frontier.sweep({ lossesMax: 3, workerIds: ['lost'] })
  await until(async () => {
    await finish(frontier, await claim(frontier, 10))
    return (await frontier.stats()).remaining === 0
  })
  assert.equal((await frontier.stats()).completed, 50)
})

test('a lane may have any name, even an empty one', async () => {
  await using frontier = await open(newRun())
  await frontier.add([page('nameless', { lane: '' })])
  assert.deepEqual(pathsOf(await claim(frontier, 1)), ['nameless'])
})

test('a priority that cannot be ordered is rejected, not lost on the way', async () => {
  await using frontier = await open(newRun())
  for (const priority of [Number.POSITIVE_INFINITY, Number.NaN])
    await assert.rejects(frontier.add([page(1, { priority })]), { code: 'E_OPTION', message: /priority/ })
  assert.equal((await frontier.stats()).seen, 0)
})

test('a queue that was purged or deleted is refilled from the ledger', async () => {
  const runId = newRun()
  await using frontier = await open(runId, { waitMs: 100, lostMs: 300 })
  await frontier.add(pages(30))
  const queue = `url_queue_ttl.${runId}`
  await until(async () => (await depth(queue)) === 30)
  await aside((channel) => channel.queuePurge({ queue }))
  let done = 0
  const work = async (upTo: number) => {
    await until(async () => {
      const leases = await claim(frontier, 5)
      done += leases.length
      await finish(frontier, leases)
      return done >= upTo
    })
  }
  await work(10)
  await aside((channel) => channel.queueDelete({ queue }))
  await frontier.add([page('late')])
  await work(31)
  assert.equal((await frontier.stats()).completed, 31)
})

test('hosts that a worker avoids do not block the others', async () => {
  const runId = newRun()
  await using frontier = await open(runId, { prefetch: 16, beltMax: 50, waitMs: 100 })
  await frontier.add([
    ...pages(500, { priority: 1 }),
    ...Array.from({ length: 5 }, (_, i) => page(i, { url: `https://b.example/${i}` })),
  ])
  const given: Lease[] = []
  await until(async () => {
    given.push(...(await claim(frontier, 2, { avoidHosts: ['a.example'] })))
    return given.length === 5
  })
  assert.ok(given.every(({ task }) => task.url.startsWith('https://b.example/')))
  assert.equal((await frontier.stats()).pending, 500)
})

test('a process that claims nothing for a while gives back what was delivered to it', async () => {
  const runId = newRun()
  await using idle = await open(runId, { idleMs: 100 })
  await using busy = await open(runId, { waitMs: 2000 })
  await idle.add(pages(10))
  assert.equal((await claim(idle, 1, { workerId: 'idle' })).length, 1)
  await until(async () => (await depth(`url_queue_ttl.${runId}`)) === 9)
  assert.equal((await claim(busy, 10)).length, 9)
})

test('a finished run leaves nothing behind for good', async () => {
  const runId = newRun()
  {
    await using frontier = await open(runId, { keepMs: 60_000 })
    await frontier.add(pages(10))
    await finish(frontier, await claim(frontier, 10))
  }
  const client = new Redis(redis.url)
  try {
    const keys = await client.keys(`sluice:{${runId}}:*`)
    assert.ok(keys.length > 10)
    for (const key of keys) assert.ok((await client.pttl(key)) > 0, key)
    const queues = (await rabbit.api('GET', `/queues/${rabbit.vhost}`)) as { name: string }[]
    assert.deepEqual(queues.filter(({ name }) => name.endsWith(`.${runId}`)).map(({ name }) => name), [`failed_urls.${runId}`]) // biome-ignore format: one line reads better
    // Once opened again, it stays.
    await using frontier = await open(runId)
    assert.equal((await frontier.stats()).completed, 10)
    assert.deepEqual(await frontier.add(pages(11)), { added: 1, seen: 10 })
    for (const key of await client.keys(`sluice:{${runId}}:*`)) assert.ok((await client.pttl(key)) < 0, key)
  } finally {
    client.disconnect()
  }
})

test('runs are isolated from each other', async () => {
  await using one = await open(newRun())
  await using two = await open(newRun())
  await one.add(pages(5))
  assert.deepEqual(await claim(two, 5), [])
  assert.deepEqual(await two.add(pages(5)), { added: 5, seen: 0 })
  assert.equal((await claim(one, 5)).length, 5)
})

test('a worker that finds more to do continues after another one considered the run finished', async () => {
  const runId = newRun()
  await using staying = await open(runId, { waitMs: 200 })
  {
    await using leaving = await open(runId)
    await leaving.add(pages(2))
    await finish(staying, await claim(staying, 2))
    await until(async () => (await leaving.stats()).remaining === 0)
  } // deletes the queues of the run
  await staying.add(pages(5))
  const given: Lease[] = []
  await until(async () => {
    given.push(...(await claim(staying, 5)))
    return given.length === 3
  })
})
