/** Daily numbers: equal to a full count, whatever was written when; and the partitions below them. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Bench, DAY, OPEN, posting, T0 } from '../../../test/jobs-bench.ts'
import { ROLLUPS } from './contract.ts'
import { Rollups } from './rollups.ts'

/** Reproducible pseudo-random numbers. */
function numbersFrom(seed: number): (max: number) => number {
  let state = seed
  return (max) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * max)
  }
}

const rollupsAt = (bench: Bench, nowMs: number, keepDays = { job_observation: 365, job_event: 730 }) =>
  new Rollups({ db: bench.db, say: () => {}, now: () => nowMs, keepDays })

const read = async (bench: Bench, name: string) =>
  (await bench.ask(`select v.*, cast(day as text) as day_text from @${name} v`))
    .map(({ day: _, ...row }) =>
      JSON.stringify(Object.entries(row).map(([key, value]) => [key, value === null ? null : String(value)])),
    )
    .sort()

for (const [engine, open] of Object.entries(OPEN))
  describe(`numbers per day on ${engine}`, () => {
    let bench: Bench
    before(async () => {
      bench = await open()
    })
    beforeEach(() => bench.clear())
    after(() => bench[Symbol.asyncDispose]())

    it('equal a full count after random changes, including late ones', async () => {
      const next = numbersFrom(7)
      for (let round = 0; round < 24; round++) {
        const isLate = next(4) === 0
        const day = isLate ? Math.max(0, Math.floor(round / 3) - 2) : Math.floor(round / 3)
        const pay = {
          min: 40_000 + next(20) * 1000,
          max: 90_000,
          currency: next(2) === 0 ? 'EUR' : 'USD',
          interval: 'year',
        }
        const some = Array.from({ length: 12 }, (_, n) => n).filter(() => next(3) > 0)
        const source = next(3) === 0 ? 'lever' : 'greenhouse'
        const postings = some.map((n) =>
          posting(isLate ? n + 12 * round : n, next(4) === 0 ? { salary: pay } : {}, source),
        )
        await bench.run(T0 + day * DAY + round * 60_000, postings, { scraper: source })
        if (next(3) === 0) {
          await using rollups = rollupsAt(bench, T0 + day * DAY)
          await rollups.refresh()
        }
      }
      await bench.run(T0 + DAY, [posting(900), posting(901)])
      await bench.run(T0 + 7 * DAY + 3_600_000, [posting(906), posting(907)])
      await using rollups = rollupsAt(bench, T0 + 7 * DAY)
      assert.ok((await rollups.refresh()) >= 1, 'a day of last week is computed again')
      const fresh = new Map<string, string[]>()
      for (const { name } of ROLLUPS) {
        fresh.set(name, await read(bench, name))
        const ahead = await bench.ask(`select count(*) as n from @${name}_rollup`)
        assert.ok(
          Number(ahead[0]!['n']) > 0 && Number(ahead[0]!['n']) < fresh.get(name)!.length,
          `${name} is in both parts`,
        )
      }
      await bench.ask(`update @rollup_watermark set day = '1970-01-01', starts_at = '1970-01-01T00:00:00.000Z'`)
      for (const { name } of ROLLUPS) assert.deepEqual(fresh.get(name), await read(bench, name), name)
    })

    it('cover what was seen: each job once, pay with its quartiles', async () => {
      const all = Array.from({ length: 9 }, (_, n) => posting(n))
      await bench.run(T0, all)
      await bench.run(T0 + 3_600_000, [...all, posting(1, {}, 'lever')])
      await using rollups = rollupsAt(bench, T0 + DAY)
      await rollups.refresh()
      const sum = async (sql: string) => Number((await bench.ask(sql))[0]!['n'])
      assert.equal(await sum('select sum(jobs) as n from @seen_by_day_rollup'), 9)
      assert.equal(await sum('select sum(jobs) as n from @source_by_day_rollup'), 10)
      assert.equal(await sum('select sum(observations) as n from @source_by_day_rollup'), 19)
      assert.equal(await sum(`select sum(events) as n from @event_by_day_rollup where type = 'created'`), 9)
      const [pay] = await bench.ask(`select * from @salary_by_day_rollup where source = ''`)
      // The midpoints of the pay of postings 0, 2, 4, 6 and 8.
      assert.deepEqual(
        ['jobs', 'lowest', 'p25', 'p50', 'p75', 'highest'].map((name) => Number(pay![name])),
        [5, 55_000, 57_000, 59_000, 61_000, 63_000],
      )
      const [quality] = await bench.ask(`select * from @quality_by_day where source = 'greenhouse'`)
      assert.deepEqual(
        [Number(quality!['postings']), Number(quality!['has_title']), Number(quality!['has_salary'])],
        [18, 18, 10],
      )
    })

    it('outlive the rows they were computed from', async () => {
      await bench.run(T0, [posting(1)])
      await bench.run(T0 + 40 * DAY, [posting(1)])
      const now = T0 + 41 * DAY
      await using rollups = rollupsAt(bench, now, { job_observation: 20, job_event: 20 })
      await rollups.refresh()
      await rollups.keep()
      const count = async (table: string) => Number((await bench.ask(`select count(*) as n from @${table}`))[0]!['n'])
      assert.equal(await count('job_observation'), 1)
      assert.equal(await count('seen_by_day'), 2)
    })
  })

describe('partitions', () => {
  let bench: Bench
  before(async () => {
    bench = await OPEN['postgres:']!()
  })
  after(() => bench[Symbol.asyncDispose]())

  const partitions = async () =>
    (
      await bench.ask(`select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'sluice.job_observation'::regclass order by 1`)
    ).map(({ name }) => String(name))
  const held = async (table: string) => Number((await bench.ask(`select count(*) as n from @${table}`))[0]!['n'])

  it('exist three weeks ahead, take over rows that came earlier, and are dropped as a whole', async () => {
    const now = Date.UTC(2031, 4, 14, 12) // a Wednesday
    await bench.run(now - 60_000, [posting(1)])
    assert.equal(await held('job_observation_default'), 1, 'nobody had made its week')
    await using rollups = rollupsAt(bench, now)
    await rollups.keep()
    const made = await partitions()
    const weeks = ['20310512', '20310519', '20310526', '20310602'].map((week) => `job_observation_${week}`)
    assert.deepEqual(
      made.filter((name) => weeks.includes(name)),
      weeks,
    )
    assert.deepEqual([await held('job_observation_default'), await held('job_observation_20310512')], [0, 1])
    await using later = rollupsAt(bench, now + 50 * DAY, { job_observation: 40, job_event: 40 })
    assert.ok((await later.keep()) >= 2)
    const left = await partitions()
    assert.ok(!left.includes('job_observation_20310512') && left.includes('job_observation_20310526'), left.join())
    assert.equal(await held('job_observation'), 0)
  })
})
