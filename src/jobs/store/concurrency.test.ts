/** Several servers on one PostgreSQL: nothing duplicated, nothing lost. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../../../test/fleet.ts'
import { Bench, DAY, posting, T0 } from '../../../test/jobs-bench.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { openPostgresDatabase } from '../../store/postgres.ts'
import { Rollups } from './rollups.ts'

const nothing = async () => {}

describe('jobs on one PostgreSQL', () => {
  it('creates one job when two servers read it at the same moment', async () => {
    await using database = await postgresForTests()
    await using one = new Bench(await openPostgresDatabase(database.url), nothing)
    await using other = new Bench(await openPostgresDatabase(database.url), nothing)
    const some = Array.from({ length: 20 }, (_, n) => n)
    await Promise.all([
      one.run(
        T0,
        some.map((n) => posting(n)),
      ),
      other.run(
        T0,
        some.map((n) => posting(n, {}, 'lever')),
        { scraper: 'lever' },
      ),
    ])
    const count = async (table: string) => Number((await one.ask(`select count(*) as n from @${table}`))[0]!['n'])
    assert.deepEqual([await count('job'), await count('job_source')], [20, 40])
  })

  it('waits for a transaction that writes to a day before it computes that day', async () => {
    await using database = await postgresForTests()
    await using writer = new Bench(await openPostgresDatabase(database.url), nothing)
    const db = await openPostgresDatabase(database.url)
    await using computer = new Bench(db, nothing)
    await using rollups = new Rollups({ db, say: () => {}, now: () => T0 + DAY })
    await writer.run(T0, [posting(1)])
    const isWritten = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const items = [{ key: 'k', item: posting(2), content: '' }]
    const batch = { runId: 'slow', scraper: 'greenhouse', scope: 's', isFirst: false, atMs: T0 + 1000, items }
    const writing = writer.db.transaction(async (rows) => {
      await writer.projection.project(rows, batch)
      isWritten.resolve()
      await mayCommit.promise
    })
    await isWritten.promise
    const computing = rollups.refresh()
    const waiting = `select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await until('the computer waits', async () => Number((await computer.ask(waiting))[0]!['n']) > 0)
    mayCommit.resolve()
    await writing
    await computing
    const [row] = await computer.ask('select sum(jobs) as n from @seen_by_day_rollup')
    assert.equal(Number(row!['n']), 2)
  })
})
