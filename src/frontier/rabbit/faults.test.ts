/** The broker, Redis and the network fail and recover: the run continues, with nothing lost or duplicated. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from 'rabbitmq-client'
import { startRabbit } from '../../../test/services/rabbitmq.ts'
import { startRedis } from '../../../test/services/redis.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { Outage } from '../../drivers/outage.ts'
import type { Frontier } from '../contract.ts'
import { openRabbitFrontier, type RabbitFrontierOptions } from './engine.ts'

const [rabbit, redis] = await Promise.all([startRabbit(), startRedis()])
after(async () => {
  await rabbit[Symbol.asyncDispose]()
  await redis[Symbol.asyncDispose]()
})

const PAGES = 1500
const pages = Array.from({ length: PAGES }, (_, i) => ({
  url: `https://h${i % 9}.example/${i}`,
  route: 'page',
  depth: 0,
}))
const open = (runId: string, options: RabbitFrontierOptions = {}) =>
  openRabbitFrontier(rabbit.url, { redisUrl: redis.url, runId, ...options })

/** Works until nothing is left; reports how many are done. Each page emits one item. */
async function work(frontier: Frontier, workerId: string, told: (done: number) => void = () => {}): Promise<number> {
  for (let done = 0; ; ) {
    const leases = await frontier.claim({ max: 10, workerId, leaseMs: 60_000 })
    if (leases.length === 0) {
      if ((await frontier.stats()).remaining === 0) return done
      await sleep(10)
      continue
    }
    await sleep(1)
    const { settled } = await frontier.commit(
      leases.map((lease) => ({ kind: 'done', lease, items: [{ key: lease.task.url, json: '{}' }] })),
    )
    done += settled
    told(done)
  }
}

/** Two workers; `fault` happens when the first has done a third of its share. */
async function workThrough(
  runId: string,
  fault: () => Promise<void>,
  options: RabbitFrontierOptions = {},
): Promise<void> {
  await using one = await open(runId, options)
  await using two = await open(runId, options)
  await one.add(pages)
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const working = Promise.all([work(one, 'one', (done) => done > PAGES / 6 && resolve()), work(two, 'two')])
  working.catch(() => {})
  await begun
  await fault()
  const shares = await working
  const { completed, seen, items, failed } = await one.stats()
  assert.deepEqual({ completed, seen, items, failed }, { completed: PAGES, seen: PAGES, items: PAGES, failed: 0 })
  assert.equal(shares[0] + shares[1], PAGES, 'no lease was lost on the way')
}

test('continues when the broker is killed and restarted, and reports each attempt', async () => {
  const outages: Outage[] = []
  await workThrough(
    'broker',
    async () => {
      await rabbit.stop('SIGKILL')
      await sleep(500)
      await rabbit.start()
    },
    { onOutage: (outage) => outages.push(outage) },
  )
  assert.ok(outages.length >= 4, `told of ${outages.length} attempts`)
  assert.ok(outages.some(({ attempt }) => attempt > 1))
  for (const { error, waitMs } of outages) assert.ok(error.message.length > 0 && waitMs > 0)
})

test('continues when Redis is killed and restarted', async () => {
  const outages: Outage[] = []
  await workThrough(
    'redis',
    async () => {
      await redis.stop('SIGKILL')
      await sleep(500)
      await redis.start()
    },
    { onOutage: (outage) => outages.push(outage) },
  )
  assert.ok(outages.length > 0)
})

test('continues when the connection is cut', async () => {
  await using amqp = await wire(rabbit.port)
  await using resp = await wire(redis.port)
  const runId = 'wire'
  await using frontier = await openRabbitFrontier(`amqp://guest:guest@127.0.0.1:${amqp.port}`, {
    redisUrl: `redis://127.0.0.1:${resp.port}/0`,
    runId,
  })
  await frontier.add(pages)
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const working = work(frontier, 'one', (done) => done > 200 && resolve())
  working.catch(() => {})
  await begun
  for (const cut of [amqp, resp, amqp]) {
    cut.cut()
    await sleep(300)
    cut.mend()
    await sleep(200)
  }
  assert.equal(await working, PAGES)
  const { completed, items } = await frontier.stats()
  assert.deepEqual({ completed, items }, { completed: PAGES, items: PAGES })
})

test('continues after half a minute without broker and Redis', async () => {
  await using amqp = await wire(rabbit.port)
  await using resp = await wire(redis.port)
  const outages: Outage[] = []
  await using frontier = await openRabbitFrontier(`amqp://guest:guest@127.0.0.1:${amqp.port}`, {
    redisUrl: `redis://127.0.0.1:${resp.port}/0`,
    runId: 'half a minute',
    onOutage: (outage) => outages.push(outage),
  })
  await frontier.add(pages)
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const working = work(frontier, 'one', (done) => done > 200 && resolve())
  working.catch(() => {})
  await begun
  for (const cut of [amqp, resp]) cut.cut()
  await sleep(30_000)
  for (const cut of [amqp, resp]) cut.mend()
  assert.equal(await working, PAGES)
  const { completed, items, failed } = await frontier.stats()
  assert.deepEqual({ completed, items, failed }, { completed: PAGES, items: PAGES, failed: 0 })
  assert.ok(outages.length >= 15, `told of ${outages.length} attempts`) // in the end they are 2 s apart
})

/** Everything that this process publishes, through any connection. */
async function publications(t: TestContext) {
  const connection = new Connection(rabbit.url)
  const channel = await connection.acquire()
  const { mock } = t.mock.method(Object.getPrototypeOf(channel), 'basicPublish')
  await channel.close()
  await connection.close()
  return () => mock.callCount()
}

test('sends nothing while the broker is short of memory, and resumes afterwards', async (t) => {
  const published = await publications(t)
  const outages: string[] = []
  let nowMs = 1_700_000_000_000
  const onOutage = ({ error }: Outage) => outages.push(error.message)
  await using frontier = await open('blocked', { onOutage, now: () => nowMs })
  await frontier.add(pages.slice(0, 10))
  assert.equal(await work(frontier, 'one'), 10)
  await frontier.add(pages.slice(10, 30))
  assert.equal((await frontier.claim({ max: 1, workerId: 'other', leaseMs: 600_000 })).length, 1) // so the broker has all of them
  await rabbit.ctl('set_vm_memory_high_watermark', 'absolute', '1MB')
  await frontier.add(pages.slice(30, 40)) // a broker reports that it is blocked only when it is sent more
  while (!outages.some((line) => /takes no messages for now/.test(line))) await sleep(20)
  const before = published()
  assert.equal(before, 40)
  await frontier.add(pages.slice(40, 60))
  // Delivered tasks can still be processed.
  const leases = await frontier.claim({ max: 10, workerId: 'two', leaseMs: 600_000 })
  assert.equal(leases.length, 10)
  const error = { code: 'E_NOT_FOUND', class: 'not-found', message: 'x' } as const
  await frontier.commit(leases.map((lease, i) => (i === 0 ? { kind: 'dead', lease, error } : { kind: 'done', lease })))
  // Messages unconfirmed for ten seconds would be sent again and again.
  for (let i = 0; i < 3; i++) {
    nowMs += 10_001
    await frontier.commit((await frontier.claim({ max: 1, workerId: 'two', leaseMs: 600_000 })).map((lease) => ({ kind: 'postpone', lease, atMs: 0, reason: 'test' }))) // biome-ignore format: one line reads better
  }
  assert.equal(published(), before)
  await frontier.sweep({ lossesMax: 3, workerIds: ['other'] })
  const working = work(frontier, 'one')
  await rabbit.ctl('set_vm_memory_high_watermark', 'absolute', '2GB')
  assert.equal(await working, 40)
})

test('reports at once and clearly what is wrong with a URL', async () => {
  const isService = (message: RegExp) => (error: ScrapeError) =>
    error.code === 'E_SERVICE' && message.test(error.message)
  const outages: Outage[] = []
  const options = { redisUrl: redis.url, runId: 'address', onOutage: (outage: Outage) => outages.push(outage) }
  await assert.rejects(
    openRabbitFrontier('amqp://guest:guest@127.0.0.1:1/', options),
    isService(/127.0.0.1:1\/ is unreachable/),
  )
  assert.ok(outages.length > 1, 'a line per attempt')
  const wrong = rabbit.url.replace('guest:guest', 'guest:wrong')
  await assert.rejects(openRabbitFrontier(wrong, options), isService(/refuses.*ACCESS_REFUSED/s))
  await assert.rejects(openRabbitFrontier(`${rabbit.url}/nowhere`, options), isService(/refuses.*nowhere/s))
  await assert.rejects(
    openRabbitFrontier(rabbit.url, { ...options, redisUrl: 'redis://127.0.0.1:1/0' }),
    isService(/127.0.0.1:1\/0 is unreachable/),
  )
  await assert.rejects(openRabbitFrontier('amqp://127.0.0.1?ack=perhaps', options), /neither manual nor auto/)
})

interface Wire extends AsyncDisposable {
  port: number
  cut(): void
  mend(): void
}

/** A proxy to a local port that can be cut: all connections die, and new ones are refused until it is restored. */
async function wire(to: number): Promise<Wire> {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect(to, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    mend() {
      isCut = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
    },
  }
}
