/**
 * Throughput of RabbitMQ and Redis: publishing with confirms and consuming with acknowledgements, ours beside the bare client
 * library in the same run; the whole engine's claim + done; and Redis memory per seen URL.
 *
 *   node bench/frontier-rabbit.ts [--messages 10000] [--rounds 3] [--urls 1000000] [--json]
 */
import { hash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { Connection } from 'rabbitmq-client'
import type { NewTask } from '../src/core/task.ts'
import type { Frontier } from '../src/frontier/contract.ts'
import { Broker } from '../src/frontier/rabbit/broker.ts'
import { openRabbitFrontier } from '../src/frontier/rabbit/engine.ts'
import { Intake } from '../src/frontier/rabbit/intake.ts'
import { messageOf } from '../src/frontier/rabbit/message.ts'
import { namesOf, WORK_EXCHANGE } from '../src/frontier/rabbit/names.ts'
import { IN_FLIGHT_MAX, publishAll } from '../src/frontier/rabbit/publisher.ts'
import { openRedisFrontier } from '../src/frontier/redis/engine.ts'
import { BASE } from '../src/frontier/redis/lua.ts'
import { taskOf } from '../src/frontier/shared/intake.ts'
import { startRabbit } from '../test/services/rabbitmq.ts'
import { startRedis } from '../test/services/redis.ts'

const PREFETCH = 500
const BATCH = 50
const EPOCH = 'bench'

const page = (n: number): NewTask => ({
  url: `https://www.host-${n % 100}.example/products/${n}?page=${n % 10}`,
  route: 'page',
  depth: 1,
})
const messagesOf = (count: number) =>
  Array.from({ length: count }, (_, i) => messageOf(EPOCH, String(i + 1), taskOf(page(i))))

async function rate(count: number, body: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await body()
  return Math.round(count / ((performance.now() - startMs) / 1000))
}

/** The library as its own manual shows it, with as many messages in flight as ours. */
async function bare(url: string, count: number): Promise<{ publish: number; consume: number }> {
  const connection = new Connection(url)
  connection.on('error', console.error)
  const { work, workKey } = namesOf('bare')
  const { queue, arguments: args } = work('bulk')
  const publisher = connection.createPublisher({
    confirm: true,
    exchanges: [{ exchange: WORK_EXCHANGE, type: 'topic', durable: true }],
    queues: [{ queue, durable: true, arguments: args }],
    queueBindings: [{ queue, exchange: WORK_EXCHANGE, routingKey: workKey('bulk') }],
  })
  const messages = messagesOf(count)
  const publish = await rate(count, async () => {
    for (let from = 0; from < count; from += IN_FLIGHT_MAX) {
      const batch = messages.slice(from, from + IN_FLIGHT_MAX)
      await Promise.all(
        batch.map((body) =>
          publisher.send(
            { exchange: WORK_EXCHANGE, routingKey: workKey('bulk'), durable: true, mandatory: true },
            body,
          ),
        ),
      )
    }
  })
  const consume = await rate(count, async () => {
    let got = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    const options = { queue, queueOptions: { passive: true }, qos: { prefetchCount: PREFETCH } }
    const consumer = connection.createConsumer(options, async () => {
      if (++got === count) resolve()
    })
    await promise
    await consumer.close()
  })
  await publisher.close()
  await connection.queueDelete({ queue })
  await connection.close()
  return { publish, consume }
}

/** Our publisher, consumers and selection among deliveries; without the ledger. */
async function ours(url: string, count: number): Promise<{ publish: number; consume: number }> {
  const names = namesOf('ours')
  const broker = new Broker(url, names)
  const { publisher, consumer } = await broker.session()
  const messages = messagesOf(count)
  const publish = await rate(count, async () => {
    const outgoing = messages.map((body) => ({
      key: String(body.seq),
      body,
      envelope: { exchange: WORK_EXCHANGE, routingKey: names.workKey('bulk') },
    }))
    const { confirmed } = await publishAll(publisher, outgoing)
    if (confirmed.length !== count) throw new Error(`${confirmed.length} of ${count} were confirmed`)
  })
  const nothing = async () => {}
  const intake = new Intake(
    { broker, names, epoch: EPOCH, ackOf: () => 'manual', onExpired: nothing, onStray: nothing },
    PREFETCH,
  )
  const consume = await rate(count, async () => {
    await intake.consume(['bulk'], BATCH)
    for (let got = 0; got < count; ) {
      // Like a claim: until it has what it wants.
      const wanted = Math.min(BATCH, count - got)
      await intake.deliveries.until(() => intake.deliveries.waiting() >= wanted, 1000)
      const chosen = intake.deliveries.choose({ max: BATCH, workerId: 'bench', leaseMs: 1 }, BATCH)
      for (const delivery of chosen) intake.deliveries.hold(delivery.seq, delivery)
      for (const { seq } of chosen) intake.deliveries.release(seq)
      got += chosen.length
    }
  })
  await intake.rest()
  await consumer.queueDelete({ queue: names.work('bulk').queue })
  await broker.close()
  return { publish, consume }
}

async function engine(frontier: Frontier, count: number) {
  function* source() {
    for (let n = 0; n < count; n++) yield page(n)
  }
  const add = await rate(count, () => frontier.add(source()))
  const claimMs: number[] = []
  const claimAndDone = await rate(count, async () => {
    for (let done = 0; done < count; ) {
      const beforeMs = performance.now()
      const leases = await frontier.claim({ max: BATCH, workerId: 'bench', leaseMs: 60_000 })
      claimMs.push(performance.now() - beforeMs)
      done += (await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))).settled
    }
  })
  claimMs.sort((a, b) => a - b)
  const quantile = (q: number) => Number(claimMs[Math.floor(q * (claimMs.length - 1))]!.toFixed(2))
  return { add, claimAndDone, claimP50Ms: quantile(0.5), claimP99Ms: quantile(0.99) }
}

const REMEMBER = `${BASE} for i = argAt + 1, #ARGV do remember('crawled_urls', ARGV[i], '') end`

/** Bytes per URL that remain of a finished task, beside a plain set of the same hashes. */
async function memory(url: string, count: number) {
  const redis = new Redis(url)
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
  const fill = async (send: (hashes: Buffer[]) => Promise<unknown>) => {
    await redis.flushall()
    const before = await used()
    for (let from = 0; from < count; from += 10_000) {
      const hashes = Array.from({ length: Math.min(10_000, count - from) }, (_, i) =>
        hash('sha256', page(from + i).url, 'buffer'),
      )
      await send(hashes)
    }
    return ((await used()) - before) / count
  }
  const bytesPerUrl = await fill((hashes) =>
    redis.eval(REMEMBER, 1, 'sluice:{bench}:', '', '', '', ...hashes.map((bytes) => bytes.subarray(0, 16))),
  )
  const setOf16 = await fill((hashes) =>
    redis.sadd(
      'crawled_urls',
      hashes.map((bytes) => bytes.subarray(0, 16)),
    ),
  )
  const setOf32 = await fill((hashes) => redis.sadd('crawled_urls', hashes))
  await redis.flushall()
  const before = await used()
  const pendingCount = Math.min(count, 100_000)
  let bytesPerPending = 0
  {
    await using frontier = await openRedisFrontier(url, { runId: 'bench-memory' })
    await frontier.add(Array.from({ length: pendingCount }, (_, n) => page(n)))
    bytesPerPending = ((await used()) - before) / pendingCount
  }
  redis.disconnect()
  const round = (bytes: number) => Number(bytes.toFixed(1))
  return {
    urls: count,
    bytesPerUrl: round(bytesPerUrl),
    asSetOf16Bytes: round(setOf16),
    asSetOf32Bytes: round(setOf32),
    bytesPerPendingTask: round(bytesPerPending),
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    urls: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
  },
})
await using redis = await startRedis()
await using rabbit = await startRabbit()
const count = Number(values.messages)
await bare(rabbit.url, 1000)
await ours(rabbit.url, 1000)
const rounds: Record<'bare' | 'ours', { publish: number; consume: number }[]> = { bare: [], ours: [] }
for (let i = 0; i < Number(values.rounds); i++) {
  rounds.bare.push(await bare(rabbit.url, count))
  rounds.ours.push(await ours(rabbit.url, count))
}
const figures = (what: 'publish' | 'consume') => {
  const [bareRate, ourRate] = [median(rounds.bare.map((round) => round[what])), median(rounds.ours.map((round) => round[what]))] // biome-ignore format: one line reads better
  return { bare: bareRate, ours: ourRate, share: Number((ourRate / bareRate).toFixed(2)) }
}
const transport = { publishWithConfirms: figures('publish'), consumeAndAck: figures('consume') }
const engines: Record<string, object> = {}
{
  await using frontier = await openRabbitFrontier(rabbit.url, { redisUrl: redis.url, runId: 'bench' })
  engines['amqp:'] = await engine(frontier, count)
}
{
  await using frontier = await openRabbitFrontier(rabbit.url, { redisUrl: redis.url, runId: 'bench-auto', ack: 'auto' })
  engines['amqp: (auto)'] = await engine(frontier, count)
}
{
  await using frontier = await openRedisFrontier(redis.url, { runId: 'bench-redis' })
  engines['redis:'] = await engine(frontier, count)
}
const result = { messages: count, transport, engines, memory: await memory(redis.url, Number(values.urls)) }
console.log(JSON.stringify(result, null, values.json ? 0 : 2))
