/**
 * How fast the `postgres:` frontier is, what it costs the server, and whether that stays so: on a private server with fsync on.
 *
 *   node bench/frontier-postgres.ts [--quick] [--only adding,comparing,growing,holding,hosts,idling]
 *
 * Prints JSON. Rates are tasks per second of claim + done; `serverMsPer1000` is the CPU time of all processes of the server.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Client } from 'pg'
import { openPostgresFrontier } from '../src/frontier/postgres/engine.ts'
import { startPostgres } from '../test/services/postgres.ts'
import { addJobs, workOff } from './frontier-postgres/graphile.ts'
import { pages, type Timing, type Work, work } from './frontier-postgres/process.ts'
import { serverCpuMs } from './frontier-postgres/server-cpu.ts'

const BATCH = 50
/** Processed before each measurement: a process, its code and the server's plans are slow at first. */
const WARM_UP_TASKS = 5000
const ROUNDS = 3
/** Backends of closed connections are counted once the postmaster has reaped them. */
const REAPED_MS = 200

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: 'adding,comparing,growing,holding,hosts,idling' },
  },
})
const sizes = options.quick
  ? { adding: 100_000, comparing: 12_000, sample: 20_000, growing: [10_000, 100_000], holding: 60_000 }
  : {
      adding: 400_000,
      comparing: 60_000,
      sample: 50_000,
      growing: [10_000, 100_000, 1_000_000, 5_000_000],
      holding: 300_000,
    }

await using server = await startPostgres({ fsync: true, settings: ['max_wal_size=8GB', 'shared_buffers=256MB'] })

interface Price {
  perSecond: number
  serverMsPer1000: number
}

/** Rate and cost of `count` tasks. */
async function measured(count: number, run: () => Promise<unknown>): Promise<Price> {
  const cpuMs = serverCpuMs(server.pid!)
  const startMs = performance.now()
  await run()
  const ms = performance.now() - startMs
  await sleep(REAPED_MS)
  const serverMsPer1000 = ((serverCpuMs(server.pid!) - cpuMs) / count) * 1000
  return { perSecond: Math.round((count / ms) * 1000), serverMsPer1000: Number(serverMsPer1000.toFixed(1)) }
}

async function inProcesses(jobs: [what: string, url: string, runId: string, json: object][]): Promise<Timing[]> {
  const children = jobs.map(([what, url, runId, json]) => {
    return fork(join(import.meta.dirname, 'frontier-postgres/process.ts'), [what, url, runId, JSON.stringify(json)])
  })
  await Promise.all(children.map((child) => once(child, 'message')))
  for (const child of children) child.send('go')
  const timings = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as Timing))
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  return timings
}

/**
 * Many tasks at once without the cost of adding them: inserts the rows directly. Vacuumed, since the autovacuum after every bulk
 * load would otherwise be part of the measurement.
 */
async function fill(url: string, runId: string, { from, to, hosts }: { from: number; to: number; hosts: number }) {
  {
    await using frontier = await openPostgresFrontier(url, { runId })
    await frontier.add(pages({ from: -hosts, to: 0, hosts }))
  }
  await query(
    url,
    `insert into sluice.ready (seq, queue_id, created_ms, depth, attempts, url_hash, url, route)
     select nextval('sluice.task_seq'), q.ids[1 + n % array_length(q.ids, 1)], 0, 1, 0, sha256(n::text::bytea),
       'https://www.host-' || n % ${hosts} || '.example/products/category/' || n || '?page=' || n % 10, 'page'
     from generate_series(${from}, ${to - 1}) n,
       (select array_agg(id order by id) as ids from sluice.queue join sluice.run using (run_id) where name = '${runId}') q`,
  )
  await query(url, 'vacuum sluice.ready')
  await query(
    url,
    `insert into sluice.tally (run_id, pending) select run_id, ${to - from} from sluice.run where name = '${runId}'`,
  )
}

async function query(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(text)
  await client.end()
}

async function adding() {
  const count = sizes.adding
  await using database = await server.createDatabase()
  await using frontier = await openPostgresFrontier(database.url, { connectionsMax: 1 })
  await frontier.add(pages({ from: -WARM_UP_TASKS, to: 0, hosts: 1 }))
  const fresh = await measured(count, () => frontier.add(pages({ from: 0, to: count, hosts: 1 })))
  const seen = await measured(count / 2, () => frontier.add(pages({ from: 0, to: count / 2, hosts: 1 })))
  await using many = await openPostgresFrontier(database.url, { connectionsMax: 1, runId: 'many' })
  await many.add(pages({ from: -WARM_UP_TASKS, to: 0, hosts: 1000 }))
  const manyHosts = await measured(count / 2, () => many.add(pages({ from: 0, to: count / 2, hosts: 1000 })))
  // Four processes, each with half of its neighbour's tasks: 2.5 parts offered in 4, each part once new.
  const part = count / 4
  const jobs = [0, 1, 2, 3].map((n): [string, string, string, object] => {
    return ['add', database.url, 'four', { from: (n * part) / 2, to: (n * part) / 2 + part, hosts: 100 }]
  })
  let timings: Timing[] = []
  const four = await measured(count, async () => {
    timings = await inProcesses(jobs)
  })
  const slowestMs = Math.max(...timings.map(({ ms }) => ms))
  const added = timings.reduce((sum, timing) => sum + timing.count, 0)
  return {
    oneConnection: fresh,
    oneConnectionAllSeen: seen,
    oneConnection1000Hosts: manyHosts,
    fourOverlapping: { ...four, perSecond: Math.round((count / slowestMs) * 1000), offered: count, added },
  }
}

/** Claim + done of a run that has `count` more tasks than it will process. */
async function ours(url: string, runId: string, { warmUp = WARM_UP_TASKS, ...job }: Work & { warmUp?: number }) {
  await using frontier = await openPostgresFrontier(url, { runId })
  await work(frontier, { ...job, count: warmUp })
  let timing: Timing | undefined
  const price = await measured(job.count, async () => {
    timing = await work(frontier, job)
  })
  return {
    ...price,
    claimP50Ms: Number(timing!.claimP50Ms.toFixed(2)),
    claimP99Ms: Number(timing!.claimP99Ms.toFixed(2)),
  }
}

/** Alternating, several times, and the median of each: this machine has other work, too. */
async function comparing() {
  const count = sizes.comparing
  await using database = await server.createDatabase()
  const { url } = database
  const graphile = async (batch: number, jobs: number) => {
    await addJobs(url, jobs)
    await query(url, 'analyze') // see graphileAsLoaded; ours needs none
    return await measured(jobs, () => workOff(url, batch))
  }
  {
    await using frontier = await openPostgresFrontier(url)
    await frontier.add(pages({ from: 0, to: ROUNDS * 3 * (count + WARM_UP_TASKS), hosts: 1 }))
  }
  const asLoaded = await graphileAsLoaded(count)
  await graphile(BATCH, WARM_UP_TASKS)
  const rounds: Record<'graphileDefault' | 'graphileBatched' | 'oneLoop' | 'threeLoops' | 'fourProcesses', Price>[] = []
  for (let i = 0; i < ROUNDS; i++) {
    rounds.push({
      graphileDefault: await graphile(0, count / 10),
      graphileBatched: await graphile(BATCH, count),
      oneLoop: await ours(url, 'default', { count, batch: BATCH, loops: 1 }),
      threeLoops: await ours(url, 'default', { count, batch: BATCH, loops: 3 }),
      fourProcesses: await inFour(url, count),
    })
  }
  const middle = (name: keyof (typeof rounds)[0]) => {
    return rounds.map((round) => round[name]).sort((a, b) => a.perSecond - b.perSecond)[Math.floor(ROUNDS / 2)]!
  }
  const best = middle('threeLoops').perSecond
  const times = (rate: { perSecond: number }) => Number((best / rate.perSecond).toFixed(2))
  return {
    graphileDefault: middle('graphileDefault'),
    graphileBatched: middle('graphileBatched'),
    graphileBatchedAsLoaded: asLoaded,
    oneLoop: middle('oneLoop'),
    threeLoops: middle('threeLoops'),
    fourProcesses: middle('fourProcesses'),
    timesDefault: times(middle('graphileDefault')),
    timesBatched: times(middle('graphileBatched')),
    timesBatchedAsLoaded: times(asLoaded),
    rates: rounds.map((round) => Object.values(round).map(({ perSecond }) => perSecond)),
  }
}

/** Right after a bulk load into a new database, when the statistics are still those of empty tables. */
async function graphileAsLoaded(count: number): Promise<Price> {
  await using database = await server.createDatabase()
  await addJobs(database.url, count)
  return await measured(count, () => workOff(database.url, BATCH))
}

async function inFour(url: string, count: number) {
  let timings: Timing[] = []
  const job = { count: count / 4, batch: BATCH, loops: 1 }
  const price = await measured(count, async () => {
    timings = await inProcesses([0, 1, 2, 3].map(() => ['work', url, 'default', job]))
  })
  return { ...price, perSecond: Math.round((count / Math.max(...timings.map(({ ms }) => ms))) * 1000) }
}

async function growing() {
  await using database = await server.createDatabase()
  const rows = []
  for (const pending of sizes.growing) {
    const count = Math.min(sizes.sample, pending / 2)
    const runId = `run-${pending}`
    await fill(database.url, runId, { from: 0, to: pending + count + WARM_UP_TASKS, hosts: 1 })
    rows.push({ pending, ...(await ours(database.url, runId, { count, batch: BATCH, loops: 1 })) })
  }
  return rows
}

/** While a snapshot is held open, so that claimed rows cannot be vacuumed. */
async function holding() {
  await using database = await server.createDatabase()
  const count = sizes.holding
  const result: Record<string, unknown> = {}
  for (const isHeld of [false, true]) {
    const runId = `held-${isHeld}`
    await fill(database.url, runId, { from: 0, to: count + 2 * WARM_UP_TASKS, hosts: 1 })
    const other = new Client({ connectionString: database.url })
    await other.connect()
    await other.query('begin isolation level repeatable read')
    await other.query('select count(*) from sluice.run')
    if (!isHeld) await other.query('commit')
    const parts = []
    await using frontier = await openPostgresFrontier(database.url, { runId })
    await work(frontier, { count: WARM_UP_TASKS, batch: BATCH, loops: 1 })
    for (let i = 0; i < 4; i++) {
      const job = { count: count / 4, batch: BATCH, loops: 1 }
      let p50 = 0
      const price = await measured(job.count, async () => {
        p50 = (await work(frontier, job)).claimP50Ms
      })
      parts.push({ ...price, claimP50Ms: Number(p50.toFixed(2)) })
    }
    await other.end()
    result[isHeld ? 'snapshotHeld' : 'free'] = parts
  }
  return result
}

async function hosts() {
  await using database = await server.createDatabase()
  const rows = []
  for (const count of [1, 1000, ...(options.quick ? [] : [100_000])]) {
    const runId = `hosts-${count}`
    const tasks = sizes.sample + WARM_UP_TASKS
    await fill(database.url, runId, { from: 0, to: 2 * Math.max(tasks, count), hosts: count })
    rows.push({ hosts: count, ...(await ours(database.url, runId, { count: sizes.sample, batch: BATCH, loops: 1 })) })
  }
  return rows
}

/** What an idle worker costs that polls and gets nothing: the case for or against LISTEN/NOTIFY. */
async function idling() {
  await using database = await server.createDatabase()
  await using frontier = await openPostgresFrontier(database.url)
  await frontier.add(pages({ from: 0, to: 1000, hosts: 10 }))
  await work(frontier, { count: 2000, batch: BATCH, loops: 1 })
  const claims = 2000
  const { serverMsPer1000 } = await measured(claims, async () => {
    for (let i = 0; i < claims; i++) await frontier.claim({ max: BATCH, workerId: 'idle', leaseMs: 60_000 })
  })
  return { serverMsPerEmptyClaim: serverMsPer1000 / 1000 }
}

const sections = { adding, comparing, growing, holding, hosts, idling }
const result: Record<string, unknown> = { processors: cpus().length, load: loadavg()[0], batch: BATCH }
for (const name of options.only.split(',') as (keyof typeof sections)[]) result[name] = await sections[name]()
console.log(JSON.stringify(result, undefined, 2))
