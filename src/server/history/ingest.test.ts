/** Reading runs: each item once, as it arrives, whatever fails in between. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Bench, onBothDatabases } from '../../../test/history.ts'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { openPostgresDatabase } from '../../store/postgres.ts'
import type { Projection } from './contract.ts'

const books = (count: number, from = 0) => Array.from({ length: count }, (_, i) => ({ url: `/${from + i}`, price: 1 }))

/** Fails in the middle of a batch, the given number of times. */
function failing(times: number): Projection {
  let left = times
  return {
    name: 'failing',
    accepts: () => true,
    project: async () => {
      if (left-- > 0) throw new Error('in the middle')
      return []
    },
    finish: async () => [],
  }
}

onBothDatabases('reading runs', (check) => {
  check('items are known while the run is going, each counted once', async (db) => {
    await using bench = new Bench(db)
    const run = bench.run('r1').add(...books(250))
    await bench.look()
    assert.equal((await bench.history.entities({ limit: 500 })).entities.length, 250)
    run.add(...books(5, 250))
    await bench.look()
    await bench.look()
    run.end(bench.nowMs)
    await bench.look()
    const { entities } = await bench.history.entities({ limit: 500 })
    assert.deepEqual([entities.length, entities.every(({ timesSeen }) => timesSeen === 1)], [255, true])
    assert.deepEqual([bench.ingest.items, run.isSettled], [255, true])
  })

  check('a batch that fails changes nothing, and is read again later', async (db) => {
    await using bench = new Bench(db, undefined, { projection: failing(1) })
    const run = bench.run('r1').add(...books(3))
    run.end(bench.nowMs + 1000)
    await bench.look()
    assert.match(bench.warnings.join(), /run r1 cannot be read: in the middle/)
    assert.deepEqual([(await bench.history.entities({ limit: 5 })).entities, bench.ingest.items], [[], 0])
    await bench.look()
    assert.equal(bench.warnings.length, 1, 'it rests')
    bench.nowMs += 60_000
    await bench.look()
    assert.deepEqual(await bench.kinds('/1'), ['new'])
  })

  check('a resumed run is read further, and judged by its last end', async (db) => {
    await using bench = new Bench(db)
    await bench.complete('r1', books(4))
    const run = bench.run('r2').add(...books(3))
    run.end(bench.nowMs + 1000, { isFinished: false })
    await bench.look()
    assert.deepEqual([bench.told(), run.isSettled], [[], true])
    run.goOn().add({ url: '/new', price: 1 })
    await bench.look()
    run.end(bench.nowMs + 1000)
    await bench.look()
    assert.deepEqual(bench.told(), ['new /new', 'gone /3'])
  })

  check('measures how long items took, except those that were there before', async (db) => {
    await using bench = new Bench(db)
    const scraped_at = new Date(bench.nowMs + 86_400_000).toISOString()
    const old = new Date(bench.nowMs - 1000).toISOString()
    bench.run('r1').add({ url: '/1', scraped_at }, { url: '/2' }, { url: '/3', scraped_at: old })
    await bench.look()
    assert.deepEqual(bench.latencies, [2000])
  })
})

describe('two servers on one database', () => {
  it('count no item twice', async () => {
    await using database = await postgresForTests()
    const dbs = [await openPostgresDatabase(database.url), await openPostgresDatabase(database.url)]
    try {
      await using one = new Bench(dbs[0]!)
      await using other = new Bench(dbs[1]!)
      const runs = [one.run('r1').add(...books(1500)), one.run('r2').add(...books(1500))]
      for (const run of runs) run.end(one.nowMs)
      // The same runs, as another server finds them.
      other.runs.push(...runs)
      other.nowMs = one.nowMs
      for (let look = 0; look < 20 && !runs.every(({ isSettled }) => isSettled); look++)
        await Promise.all([one.look(), other.look()])
      const [row] = await dbs[0]!.rows(
        `select (select count(*) from sluice.entity where seen = 2) as entities,
           (select count(*) from sluice.entity_change) as changes`,
        [],
      )
      assert.deepEqual([Number(row!['entities']), Number(row!['changes'])], [1500, 1500])
      assert.equal(one.ingest.items + other.ingest.items, 3000)
      assert.deepEqual([...one.warnings, ...other.warnings], [])
    } finally {
      for (const db of dbs) await db.close()
    }
  })
})
