/**
 * How fast the `sqlite:` frontier is and whether it stays so: adding, and claim + done in batches of 50, with 1 and 2 processes
 * at 10 thousand, 100 thousand and a million pending tasks.
 *
 *   node bench/frontier.ts [--tasks 1000000] [--hosts 1000] [--json]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { NewTask } from '../src/core/task.ts'
import { openSqliteFrontier } from '../src/frontier/sqlite/engine.ts'

const BATCH = 50
/** Tasks processed per measurement: at most half the queue, so that the other half remains at the end. */
const sampleOf = (pending: number) => Math.min(30_000, pending / 2)
/** Processed on a separate file before: a new process is slow for reasons unrelated to the frontier. */
const WARM_UP_TASKS = 5000

interface Sample {
  perSecond: number
  claimP50Ms: number
  claimP99Ms: number
  rssMb: number
}

function* pages(from: number, to: number, hosts: number): Generator<NewTask> {
  for (let n = from; n < to; n++) {
    yield {
      url: `https://www.host-${n % hosts}.example/products/category/${n}?page=${n % 10}`,
      route: 'page',
      depth: 1,
    }
  }
}

/** Claims and finishes `count` tasks. */
async function work(path: string, count: number): Promise<Sample> {
  await using frontier = await openSqliteFrontier(path)
  const claimMs: number[] = []
  const startMs = performance.now()
  let finished = 0
  while (finished < count) {
    const beforeMs = performance.now()
    const leases = await frontier.claim({ max: BATCH, workerId: `worker-${process.pid}`, leaseMs: 60_000 })
    claimMs.push(performance.now() - beforeMs)
    if (leases.length === 0) break
    finished += (await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))).settled
  }
  const perSecond = finished / ((performance.now() - startMs) / 1000)
  claimMs.sort((a, b) => a - b)
  const quantile = (q: number) => claimMs[Math.floor(q * (claimMs.length - 1))] ?? 0
  return { perSecond, claimP50Ms: quantile(0.5), claimP99Ms: quantile(0.99), rssMb: rssMb() }
}

function rssMb(): number {
  return process.memoryUsage.rss() / 1e6
}

/** Several processes on one file, which begin together. Their rates are added. */
async function workTogether(path: string, { processes, count }: { processes: number; count: number }): Promise<Sample> {
  const children = Array.from({ length: processes }, () => {
    return fork(import.meta.filename, ['--worker', path, '--count', String(count / processes)])
  })
  await Promise.all(children.map((child) => once(child, 'message')))
  for (const child of children) child.send('go')
  const samples = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as Sample))
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  const most = (name: keyof Sample) => Math.max(...samples.map((sample) => sample[name]))
  const perSecond = samples.reduce((sum, sample) => sum + sample.perSecond, 0)
  return { perSecond, claimP50Ms: most('claimP50Ms'), claimP99Ms: most('claimP99Ms'), rssMb: most('rssMb') }
}

async function rate(count: number, run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await run()
  return count / ((performance.now() - startMs) / 1000)
}

async function measure({ tasks, hosts }: { tasks: number; hosts: number }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const path = join(folder, 'frontier.db')
    const rows = []
    let added = 0
    const fill = async (count: number) => {
      await using frontier = await openSqliteFrontier(path)
      const from = added
      added += count
      const newPerSecond = await rate(count, () => frontier.add(pages(from, added, hosts)))
      const known = Math.min(100_000, count)
      const seenPerSecond = await rate(known, () => frontier.add(pages(from, from + known, hosts)))
      return { newPerSecond, seenPerSecond, addRssMb: rssMb() }
    }
    let waiting = 0
    for (const pending of [10_000, 100_000, 1_000_000].filter((size) => size <= tasks)) {
      const count = sampleOf(pending)
      const filled = await fill(pending - waiting + count)
      const one = await workTogether(path, { processes: 1, count })
      await fill(count)
      const two = await workTogether(path, { processes: 2, count })
      waiting = pending
      rows.push({ pending, ...filled, one, two, fileMb: statSync(path).size / 1e6 })
    }
    return rows
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '1000000' },
    hosts: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
    worker: { type: 'string' },
    count: { type: 'string', default: '0' },
  },
})

if (values.worker !== undefined) {
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const warmUp = join(scratch, 'frontier.db')
  {
    await using frontier = await openSqliteFrontier(warmUp)
    await frontier.add(pages(0, WARM_UP_TASKS, 100))
  }
  await work(warmUp, WARM_UP_TASKS)
  rmSync(scratch, { recursive: true })
  process.send!('ready')
  await once(process, 'message')
  process.send!(await work(values.worker, Number(values.count)))
  process.disconnect()
} else {
  const rows = await measure({ tasks: Number(values.tasks), hosts: Number(values.hosts) })
  const first = rows[0]!.one.perSecond
  const growth = first / rows.at(-1)!.one.perSecond
  if (values.json) console.log(JSON.stringify({ hosts: Number(values.hosts), rows, growth }))
  else {
    const n = (value: number) => Math.round(value).toLocaleString('en')
    console.table(
      rows.map((row) => ({
        pending: n(row.pending),
        'add new/s': n(row.newPerSecond),
        'add seen/s': n(row.seenPerSecond),
        'claim+done/s': n(row.one.perSecond),
        '2 processes': n(row.two.perSecond),
        'claim p50 ms': row.one.claimP50Ms.toFixed(2),
        'p99 ms': row.one.claimP99Ms.toFixed(2),
        '2p p99 ms': row.two.claimP99Ms.toFixed(2),
        'file MB': n(row.fileMb),
        'RSS MB': n(Math.max(row.one.rssMb, row.two.rssMb)),
        'add RSS MB': n(row.addRssMb),
      })),
    )
    console.log(
      `${values.hosts} hosts, batch ${BATCH}; 1 process is ${growth.toFixed(2)} times slower at the last length`,
    )
  }
}
