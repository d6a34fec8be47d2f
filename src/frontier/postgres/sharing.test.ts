/** Many clients, processes and runs on one database. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Pool } from 'pg'
import { until } from '../../../test/fleet.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import type { NewTask } from '../../core/task.ts'
import type { Frontier, Lease } from '../contract.ts'
import { openPostgresFrontier } from './engine.ts'
import { readItems } from './items.ts'
import { dropRun } from './runs.ts'

const database = await postgresForTests()
after(() => database[Symbol.asyncDispose]())

const LEASE_MS = 60_000

function pages(count: number, hosts = 1): NewTask[] {
  return Array.from({ length: count }, (_, n) => ({
    url: `https://h${n % hosts}.example/${n}`,
    route: 'page',
    depth: 0,
  }))
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

async function open(count: number, runId: string): Promise<{ all: Frontier[] } & AsyncDisposable> {
  const all = await Promise.all(Array.from({ length: count }, () => openPostgresFrontier(database.url, { runId })))
  return {
    all,
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((frontier) => frontier[Symbol.asyncDispose]()))
    },
  }
}

test('is migrated once when ten processes open an empty database at the same moment', async () => {
  await using empty = await postgresForTests()
  const children = Array.from({ length: 10 }, (_, n) => {
    return fork(join(import.meta.dirname, 'open-worker.test-kit.ts'), [empty.url, String(n)])
  })
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0] as number))
  assert.deepEqual(codes, Array(10).fill(0))
  await using frontier = await openPostgresFrontier(empty.url, { runId: 'first' })
  assert.equal((await frontier.stats()).pending, 10)
})

test('four clients add overlapping batches in any order without a deadlock', async () => {
  await using clients = await open(4, 'overlap')
  const source = pages(6000, 300)
  const added = await Promise.all(clients.all.map((frontier) => frontier.add(shuffled(source))))
  assert.equal(
    added.reduce((sum, { added: count }) => sum + count, 0),
    6000,
  )
  const pool = new Pool({ connectionString: database.url })
  const { rows } = await pool.query('select deadlocks::int from pg_stat_database where datname = current_database()')
  await pool.end()
  assert.equal(rows[0]!['deadlocks'], 0)
})

test('a claim of ten never gives more, whichever claims run beside it', async () => {
  await using clients = await open(4, 'ten')
  await clients.all[0]!.add(pages(1000, 7))
  const given: string[] = []
  await Promise.all(
    clients.all.map(async (frontier, n) => {
      for (;;) {
        const leases = await frontier.claim({ max: 10, workerId: `w${n}`, leaseMs: LEASE_MS })
        assert.ok(leases.length <= 10)
        if (leases.length === 0 && (await frontier.stats()).pending === 0) return
        given.push(...leases.map(({ task }) => task.url))
      }
    }),
  )
  assert.equal(given.length, 1000)
  assert.equal(new Set(given).size, 1000)
})

test('does not forget a queue that runs empty while it is filled again', async () => {
  // A claim closes a queue that it finds empty. With one task at a time on two hosts this happens all the time, between adds.
  await using clients = await open(4, 'trickle')
  const [first, second, third, fourth] = clients.all as [Frontier, Frontier, Frontier, Frontier]
  const source = pages(1200, 2)
  let isAdding = true
  const add = async (frontier: Frontier, part: number) => {
    for (const [n, task] of source.entries()) if (n % 2 === part) await frontier.add([task])
  }
  const work = async (frontier: Frontier, workerId: string) => {
    let finished = 0
    for (;;) {
      const leases = await frontier.claim({ max: 3, workerId, leaseMs: LEASE_MS })
      finished += (await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))).settled
      if (leases.length === 0 && !isAdding && (await frontier.stats()).remaining === 0) return finished
    }
  }
  const working = Promise.all([work(third, 'a'), work(fourth, 'b')])
  await Promise.all([add(first, 0), add(second, 1)])
  isAdding = false
  const [a, b] = await working
  assert.equal(a + b, 1200)
})

test('finds a task that another client returned below what it has served', async () => {
  await using clients = await open(2, 'handed-back')
  const [mine, other] = clients.all as [Frontier, Frontier]
  await mine.add(pages(40))
  const early = await other.claim({ max: 10, workerId: 'other', leaseMs: LEASE_MS })
  await mine.claim({ max: 20, workerId: 'mine', leaseMs: LEASE_MS })
  await other.commit(early.map((lease) => ({ kind: 'postpone', lease, atMs: 0, reason: 'drain' })))
  // On a busy machine, where searching again is expensive, it happens a little later.
  let found = 0
  await until('all are found', async () => {
    found += (await mine.claim({ max: 30, workerId: 'mine', leaseMs: LEASE_MS })).length
    return found >= 20
  })
  assert.equal(found, 20)
})

test('keeps the runs of one database separate', async () => {
  await using one = await openPostgresFrontier(database.url, { runId: 'one' })
  await using two = await openPostgresFrontier(database.url, { runId: 'two' })
  await one.add(pages(20))
  assert.deepEqual(await two.add(pages(5)), { added: 5, seen: 0 })
  const [lease] = await two.claim({ max: 1, workerId: 'w', leaseMs: LEASE_MS })
  const items = [{ key: 'a', json: '1' }]
  await two.commit([{ kind: 'done', lease: lease!, items, tasks: pages(7) }])
  await one.pause('lunch')
  await one.setMeta('name', 'one')
  const [ofOne, ofTwo] = [await one.stats(), await two.stats()]
  assert.deepEqual([ofOne.pending, ofOne.items, ofOne.isPaused, ofOne.seen], [20, 0, true, 20])
  assert.deepEqual([ofTwo.pending, ofTwo.completed, ofTwo.items, ofTwo.isPaused], [6, 1, 1, false])
  assert.equal(await two.getMeta('name'), undefined)
  assert.equal((await two.claim({ max: 50, workerId: 'w', leaseMs: LEASE_MS })).length, 6)
  assert.deepEqual(await one.sweep({ lossesMax: 3, workerIds: 'all' }), { returned: 0, dead: 0 })
  assert.equal((await two.stats()).claimed, 6)
})

test('drops a run with everything it has, and no other; its workers get an error', async () => {
  await using dropped = await openPostgresFrontier(database.url, { runId: 'dropped' })
  await using kept = await openPostgresFrontier(database.url, { runId: 'kept' })
  for (const frontier of [dropped, kept]) {
    await frontier.add(pages(20, 3))
    const [lease, dead] = await frontier.claim({ max: 2, workerId: 'w', leaseMs: LEASE_MS })
    await frontier.commit([
      { kind: 'done', lease: lease!, items: [{ key: 'a', json: '1' }] },
      { kind: 'dead', lease: dead!, error: { code: 'E_SERVER', class: 'server-error', message: 'x' } },
    ])
  }
  const pool = new Pool({ connectionString: database.url, max: 1 })
  try {
    assert.equal(await dropRun(pool, 'dropped'), true)
    assert.equal(await dropRun(pool, 'dropped'), false)
    assert.deepEqual((await kept.stats()).pending, 18)
    assert.equal((await readItems(pool, 'kept')).length, 1)
    assert.deepEqual(await readItems(pool, 'dropped'), [])
    const { rows } = await pool.query(`select to_regclass('sluice.done_' || max(run_id)) as gone from sluice.run`)
    assert.ok(rows.length === 1)
  } finally {
    await pool.end()
  }
  await assert.rejects(dropped.claim({ max: 1, workerId: 'w', leaseMs: LEASE_MS }), { code: 'E_RUN_NOT_FOUND' })
  await assert.rejects(dropped.add(pages(30)), { code: 'E_RUN_NOT_FOUND' })
})

test('keeps confirmed items for readers of the run', async () => {
  await using frontier = await openPostgresFrontier(database.url, { runId: 'items', keepsItems: true })
  await frontier.add(pages(1))
  const [lease] = await frontier.claim({ max: 1, workerId: 'w', leaseMs: LEASE_MS })
  const rows = ['a', 'b', 'c'].map((key) => ({ key, json: JSON.stringify({ key }) }))
  const { items } = await frontier.commit([{ kind: 'done', lease: lease!, items: rows }])
  assert.deepEqual(items, { new: 3, same: 0, changed: 0, backlog: 0 })
  await frontier.items.confirm(2, { jsonl: '20' })
  const pool = new Pool({ connectionString: database.url, max: 1 })
  const all = await readItems(pool, 'items')
  const last = await readItems(pool, 'items', { afterSeq: all[1]!.seq, max: 5 })
  await pool.end()
  assert.deepEqual([all.length, last.map(({ key }) => key)], [3, ['c']])
})

test('numbers items in the order in which they become readable, however many commit at once', async () => {
  await using clients = await open(4, 'item-order')
  await clients.all[0]!.add(pages(400))
  let isDone = false
  const seen: number[] = []
  const read = async () => {
    await using reader = await openPostgresFrontier(database.url, { runId: 'item-order' })
    for (let afterSeq = 0; ; ) {
      const isLast = isDone
      const some = await reader.items.read({ afterSeq, max: 50 })
      seen.push(...some.map(({ seq }) => seq))
      afterSeq = some.at(-1)?.seq ?? afterSeq
      if (isLast && some.length === 0) return
    }
  }
  const reading = read()
  await Promise.all(
    clients.all.map(async (frontier, n) => {
      let leases: Lease[]
      do {
        leases = await frontier.claim({ max: 4, workerId: `w${n}`, leaseMs: LEASE_MS })
        const items = (lease: Lease) => [
          { key: lease.task.url, json: '1' },
          { key: `${lease.task.url}#2`, json: '2' },
        ]
        await frontier.commit(leases.map((lease) => ({ kind: 'done', lease, items: items(lease) })))
      } while (leases.length > 0)
    }),
  )
  isDone = true
  await reading
  assert.deepEqual(
    seen,
    Array.from({ length: 800 }, (_, i) => i + 1),
  )
})
