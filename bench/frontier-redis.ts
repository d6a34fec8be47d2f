/**
 * Throughput of Redis: the `redis:` engine (streams) beside its ledger alone, with one process and with two; how soon an idle
 * worker gets a new task; and bytes of Redis per waiting task, per claimed task, and per seen URL. On a separate server, with
 * `appendonly yes`.
 *
 *   node bench/frontier-redis.ts [--tasks 100000] [--rounds 3] [--wakes 40] [--json]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import type { NewTask } from '../src/core/task.ts'
import type { Frontier, Lease } from '../src/frontier/contract.ts'
import { openRedisFrontier } from '../src/frontier/redis/engine.ts'
import { openRedisStreamsFrontier } from '../src/frontier/redis-streams/engine.ts'
import { type RedisServer, startRedis } from '../test/services/redis.ts'
import { serverCpuMs } from './frontier-postgres/server-cpu.ts'

const BATCH = 50
const LEASE_MS = 60_000
/** The polling intervals of the crawl loop when a shared frontier is empty. */
const POLL_MS = { min: 20, max: 500 }
const IDLE_MS = 3000

type Engine = 'ledger' | 'streams'
const ENGINES: readonly Engine[] = ['ledger', 'streams']

interface Orders {
  engine: Engine
  url: string
  runId: string
}

function open({ engine, url, runId }: Orders): Promise<Frontier> {
  return engine === 'ledger' ? openRedisFrontier(url, { runId }) : openRedisStreamsFrontier(url, { runId })
}

function* pages(count: number): Generator<NewTask> {
  for (let n = 0; n < count; n++)
    yield { url: `https://www.host-${n % 100}.example/products/${n}?page=${n % 10}`, route: 'page', depth: 1 }
}

/** In a separate process: reports that it is ready, and works when told. */
async function work(orders: Orders): Promise<void> {
  await using frontier = await open(orders)
  const workerId = `worker-${process.pid}`
  const told = once(process, 'message')
  process.send!('ready')
  await told
  for (;;) {
    const leases = await frontier.claim({ max: BATCH, workerId, leaseMs: LEASE_MS })
    if (leases.length > 0) await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))
    else if ((await frontier.stats()).remaining === 0) break
  }
  process.send!('done')
  process.disconnect()
}

interface Rate {
  perSecond: number
  serverMsPer1000: number
}

async function rateOf(server: RedisServer, count: number, body: () => Promise<unknown>): Promise<Rate> {
  const cpuMs = serverCpuMs(server.pid!)
  const startMs = performance.now()
  await body()
  const ms = performance.now() - startMs
  return {
    perSecond: Math.round((count / ms) * 1000),
    serverMsPer1000: round(((serverCpuMs(server.pid!) - cpuMs) / count) * 1000),
  }
}

async function workOff(
  server: RedisServer,
  orders: Orders,
  { processes, count }: { processes: number; count: number },
) {
  const ready = async (child: ChildProcess) => {
    await once(child, 'message')
    return child
  }
  const argv = [JSON.stringify(orders)]
  const children = await Promise.all(Array.from({ length: processes }, () => ready(fork(import.meta.filename, argv))))
  return await rateOf(server, count, async () => {
    const done = children.map((child) => once(child, 'message'))
    for (const child of children) child.send('go')
    await Promise.all(done)
  })
}

async function engineRates(server: RedisServer, engine: Engine, { tasks, round: n }: { tasks: number; round: number }) {
  const rates: Record<string, Rate> = {}
  for (const processes of [1, 2]) {
    const orders = { engine, url: server.url, runId: `${engine}-${processes}-${n}` }
    await using frontier = await open(orders)
    rates['add'] = await rateOf(server, tasks, () => frontier.add(pages(tasks)))
    rates[`claimAndCommitBy${processes}`] = await workOff(server, orders, { processes, count: tasks })
  }
  return rates
}

/** From the end of `add` in one process to the lease in another, which has been idle for a while. */
async function wakes(server: RedisServer, redis: Redis, { engine, count }: { engine: Engine; count: number }) {
  const orders = { engine, url: server.url, runId: `wakes-${engine}` }
  await using feeder = await open(orders)
  await using worker = await open(orders)
  await feeder.add([{ url: 'https://held.example/', route: 'page', depth: 0 }]) // keeps the run open
  await feeder.claim({ max: 1, workerId: 'holder', leaseMs: 600_000 })
  const claimOne = async () => {
    for (let pollMs = POLL_MS.min; ; pollMs = Math.min(POLL_MS.max, pollMs * 2)) {
      const [lease] = await worker.claim({ max: 1, workerId: 'idle', leaseMs: LEASE_MS })
      if (lease !== undefined) return lease
      await sleep(pollMs)
    }
  }
  const waitsMs: number[] = []
  for (let n = 0; n < count; n++) {
    const claimed = claimOne()
    await sleep(500 + Math.random() * 1000)
    const startMs = performance.now()
    await feeder.add([{ url: `https://new.example/${n}`, route: 'page', depth: 0 }])
    const lease = await claimed
    waitsMs.push(performance.now() - startMs)
    await worker.commit([{ kind: 'done', lease }])
  }
  waitsMs.sort((a, b) => a - b)
  const last = claimOne()
  await sleep(1000)
  const commandsOf = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))![1])
  const before = await commandsOf()
  await sleep(IDLE_MS)
  const commandsPerSecond = round(((await commandsOf()) - before - 1) / (IDLE_MS / 1000))
  await feeder.add([{ url: 'https://new.example/last', route: 'page', depth: 0 }])
  await worker.commit([{ kind: 'done', lease: await last }])
  return { medianMs: round(waitsMs[waitsMs.length >> 1]!), worstMs: round(waitsMs.at(-1)!), commandsPerSecond }
}

async function memory(server: RedisServer, redis: Redis, { engine, tasks }: { engine: Engine; tasks: number }) {
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
  await redis.flushall()
  const start = await used()
  await using frontier = await open({ engine, url: server.url, runId: 'memory' })
  await frontier.add(pages(tasks))
  const waiting = await used()
  const inHand = Math.min(tasks, 10_000)
  const leases: Lease[] = []
  while (leases.length < inHand)
    leases.push(...(await frontier.claim({ max: 100, workerId: `worker-${leases.length % 10}`, leaseMs: LEASE_MS })))
  const claimed = await used()
  for (let some: readonly Lease[] = leases; some.length > 0; ) {
    await frontier.commit(some.map((lease) => ({ kind: 'done', lease })))
    some = await frontier.claim({ max: 1000, workerId: 'worker-1', leaseMs: LEASE_MS })
  }
  const stream = await redis.memory('USAGE', 'sluice:{memory}:tasks:bulk', 'SAMPLES', 0)
  return {
    bytesPerTaskPending: round((waiting - start) / tasks),
    bytesMorePerTaskInHand: round((claimed - waiting) / leases.length),
    bytesPerUrlSeen: round(((await used()) - start) / tasks),
    bytesOfItsStreamAtTheEnd: Number(stream ?? 0),
  }
}

const round = (value: number) => Number(value.toFixed(1))
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tasks: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '3' },
      wakes: { type: 'string', default: '40' },
      json: { type: 'boolean', default: false },
    },
  })
  const tasks = Number(values.tasks)
  await using server = await startRedis()
  const redis = new Redis(server.url)
  const measured: Record<Engine, Record<string, Rate>[]> = { ledger: [], streams: [] }
  for (let n = 0; n < Number(values.rounds); n++) {
    for (const engine of ENGINES) measured[engine].push(await engineRates(server, engine, { tasks, round: n }))
  }
  const engines = ENGINES.map((engine) => {
    const names = Object.keys(measured[engine][0]!)
    const middle = (name: string, what: keyof Rate) => median(measured[engine].map((rates) => rates[name]![what]))
    return [
      engine,
      Object.fromEntries(
        names.map((name) => [
          name,
          { perSecond: middle(name, 'perSecond'), serverMsPer1000: middle(name, 'serverMsPer1000') },
        ]),
      ),
    ] as const
  })
  const wakeUps: Record<string, object> = {}
  for (const engine of ENGINES) wakeUps[engine] = await wakes(server, redis, { engine, count: Number(values.wakes) })
  const result = {
    tasks,
    load: round(loadavg()[0]!),
    engines: Object.fromEntries(engines),
    wakeUps,
    memory: {
      ledger: await memory(server, redis, { engine: 'ledger', tasks }),
      streams: await memory(server, redis, { engine: 'streams', tasks }),
    },
  }
  redis.disconnect()
  console.log(JSON.stringify(result, null, values.json ? 0 : 2))
}

if (process.argv[2]?.startsWith('{')) await work(JSON.parse(process.argv[2]) as Orders)
else await main()
