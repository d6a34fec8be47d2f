/** A claim and a commit read a few rows per task, whatever the statistics were when their plans were made. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { postgresForTests } from '../../../test/services/postgres.ts'
import type { NewTask } from '../../core/task.ts'
import type { Frontier, Lease, Outcome } from '../contract.ts'
import { openPostgresFrontier } from './engine.ts'

const TASKS = 12_000
/** Index entries read per task, over all indexes of all tables; includes a full look at a queue each second. */
const ENTRIES_PER_TASK_MAX = 20

function* pages(from: number, to: number): Generator<NewTask> {
  for (let n = from; n < to; n++) yield { url: `https://h${n % 5}.example/${n}`, route: 'page', depth: 0, data: n }
}

/** Every kind of outcome, so that every plan is made and used. */
function outcomeOf(lease: Lease): Outcome {
  const n = lease.task.data as number
  const error = { code: 'E_SERVER', class: 'server-error', message: 'x' } as const
  if (n % 7 === 1 && lease.attempt === 1) return { kind: 'retry', lease, atMs: 0, error }
  if (n % 100 === 2 && lease.attempt === 1) return { kind: 'retry', lease, atMs: Date.now() + 1, error }
  if (n % 7 === 3) return { kind: 'dead', lease, error }
  return { kind: 'done', lease, items: [{ key: String(n), json: '1' }] }
}

async function workOff(frontier: Frontier, count: number): Promise<void> {
  for (let finished = 0; finished < count; ) {
    const leases = await frontier.claim({ max: 50, workerId: 'w', leaseMs: 60_000 })
    await frontier.extend(leases, 60_000)
    const outcomes = leases.map(outcomeOf)
    await frontier.commit(outcomes)
    finished += outcomes.filter(({ kind }) => kind === 'done' || kind === 'dead').length
  }
}

test('reads few rows per task with plans made on empty tables, while a snapshot is held', async () => {
  await using database = await postgresForTests()
  const other = new Client({ connectionString: database.url })
  await other.connect()
  {
    await using frontier = await openPostgresFrontier(database.url, { connectionsMax: 1 })
    await frontier.add(pages(0, 20))
    await workOff(frontier, 20)
    // From here on the statistics say that all tables are empty, and all plans are made again.
    await frontier.dead.drop()
    await other.query('vacuum analyze')
    await frontier.add(pages(20, 40))
    await workOff(frontier, 20)
    await other.query('begin isolation level repeatable read')
    await other.query('select count(*) from sluice.run')
    await frontier.add(pages(40, TASKS))
    await workOff(frontier, TASKS - 40)
    await frontier.sweep({ lossesMax: 3 })
  }
  await other.query('commit')
  const { rows } = await other.query(`
    select relname, indexrelname, idx_tup_read::int as read from pg_stat_user_indexes where idx_tup_read > 0 order by 3 desc`)
  const { rows: scans } = await other.query(`
    select relname, seq_tup_read::int as read from pg_stat_user_tables where seq_tup_read > ${TASKS} order by 2 desc`)
  await other.end()
  const perTask = rows.reduce((sum, row) => sum + (row['read'] as number), 0) / TASKS
  assert.ok(perTask < ENTRIES_PER_TASK_MAX, `${perTask.toFixed(1)} per task: ${JSON.stringify(rows.slice(0, 8))}`)
  assert.deepEqual(
    scans.filter((row) => row['relname'] !== 'inflight'),
    [],
    'no table is read from end to end',
  )
})
