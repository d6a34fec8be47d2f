/** kill -9 at any moment, dozens of times: no page or item is lost or duplicated, and the counters stay correct. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { crawlInOneGo, fateOf, killAgainAndAgain, LOSSES_MAX, workerIdOf } from '../crash-site.test-kit.ts'
import { openPostgresFrontier } from './engine.ts'

const PAGES = 16_000
const KILLS = 16
const WORKER = join(import.meta.dirname, 'crash-worker.test-kit.ts')

test('loses and duplicates nothing when workers are killed at any moment', async (t) => {
  await using database = await postgresForTests()
  await using frontier = await openPostgresFrontier(database.url, { runId: 'crash' })
  const workers = await killAgainAndAgain(frontier, () => fork(WORKER, [database.url, String(PAGES)]), {
    kills: KILLS,
    withinMs: 60,
  })
  const { remaining } = await frontier.stats()
  t.diagnostic(`${remaining} tasks were left after the last of ${KILLS} kills`)
  // A killed worker may leave a transaction that commits its claim after our sweep: those leases are lost too.
  const sweeper = setInterval(() => void sweepKilled(), 200)
  const alive = new Set(workers.map(({ pid }) => workerIdOf(pid)))
  async function sweepKilled() {
    const holders = await query(database.url, 'select distinct worker_id from sluice.inflight')
    const gone = holders.map((row) => row['worker_id'] as string).filter((id) => !alive.has(id))
    if (gone.length > 0) await frontier.sweep({ lossesMax: LOSSES_MAX, workerIds: gone })
  }
  await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, 'exit')))
  clearInterval(sweeper)

  const { pending, claimed, completed, failed, dead, seen, items } = await frontier.stats()
  const reached = crawlInOneGo(PAGES)
  const finished = [...reached].filter((n) => fateOf(n) !== 'dead')
  const died = reached.size - finished.length
  assert.deepEqual({ pending, claimed, failed, dead }, { pending: 0, claimed: 0, failed: died, dead: died })
  assert.deepEqual({ seen, completed }, { seen: reached.size, completed: finished.length })

  const log = await frontier.items.read({ afterSeq: 0, max: 2 * PAGES })
  const expected = new Set(finished.flatMap((n) => (n === 0 ? [0] : [n, n - 1])).map((k) => `item ${k}`))
  assert.deepEqual(new Set(log.map(({ key }) => key)), expected)
  assert.deepEqual([log.length, items], [expected.size, expected.size])
  assert.deepEqual(
    log.map(({ seq }) => seq),
    log.map((_, i) => i + 1),
    'numbered without gaps',
  )
  await checkTables(database.url, { completed, dead, seen })
})

/** The tables must agree with the engine's own counters. */
async function checkTables(url: string, { completed, dead, seen }: Record<'completed' | 'dead' | 'seen', number>) {
  const tables = ['seen', 'done', 'dead', 'ready', 'delayed', 'suspect', 'inflight']
  const [counts] = await query(
    url,
    `select ${tables.map((name) => `(select count(*)::int from sluice.${name}) as ${name}`)}`,
  )
  assert.deepEqual({ ...counts }, { seen, done: completed, dead, ready: 0, delayed: 0, suspect: 0, inflight: 0 })
  const [twice] = await query(url, 'select count(*)::int - count(distinct url_hash)::int as n from sluice.done')
  assert.equal(twice!['n'], 0, 'each page is done once')
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
