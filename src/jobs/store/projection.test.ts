/** From postings to jobs, on both databases. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Bench, DAY, OPEN, posting, type Run, T0, typesOf } from '../../../test/jobs-bench.ts'
import type { JobView } from './view.ts'

for (const [engine, open] of Object.entries(OPEN))
  describe(`jobs on ${engine}`, () => {
    let bench: Bench
    before(async () => {
      bench = await open()
    })
    beforeEach(() => bench.clear())
    after(() => bench[Symbol.asyncDispose]())

    it('follows a posting from its first day to its return', async () => {
      const [one, other] = [posting(1), posting(2)]
      assert.deepEqual(typesOf(await bench.run(T0, [one, other])), ['created', 'created'])
      assert.deepEqual(typesOf(await bench.run(T0 + DAY, [one, other])), [], 'seen again is no news')
      const renamed = posting(1, { title: 'Senior Account Manager' })
      const [updated] = await bench.run(T0 + 2 * DAY, [renamed, other])
      assert.equal(updated!.type, 'job.updated')
      assert.deepEqual(updated!.data['changed'], ['title'])
      assert.deepEqual(updated!.data['before'], { title: 'Account Manager' })
      const [gone] = await bench.run(T0 + 3 * DAY, [other])
      assert.equal(gone!.type, 'job.gone')
      assert.equal((gone!.data['job'] as JobView).title, 'Senior Account Manager')
      assert.equal((gone!.data['job'] as JobView).status, 'gone')
      assert.deepEqual(typesOf(await bench.run(T0 + 4 * DAY, [other])), [], 'gone is said once')
      const [relisted] = await bench.run(T0 + 5 * DAY, [renamed, other])
      assert.equal(relisted!.type, 'job.relisted')
      const { status, metrics } = relisted!.data['job'] as JobView
      assert.equal(status, 'active')
      assert.deepEqual(metrics, { times_seen: 4, sources: 1, days_active: 4, reposts: 0, updates: 1 })
      const observed = await bench.ask('select count(*) as n from @job_observation')
      assert.equal(Number(observed[0]!['n']), 10)
    })

    it('postings missing from an incomplete, narrowed, truncated or empty run are not gone', async () => {
      const all = [1, 2, 3].map((n) => posting(n))
      await bench.run(T0, all)
      const few = all.slice(0, 1)
      const runs: Run[] = [
        { isComplete: false },
        { args: { board: 'acme', search: 'nurse' } },
        { args: { board: 'acme', results: 1 } },
        { args: null },
      ]
      for (const [at, run] of runs.entries())
        assert.deepEqual(typesOf(await bench.run(T0 + (at + 1) * DAY, few, run)), [], JSON.stringify(run))
      const cut = posting(1, { raw: { truncated: true } })
      assert.deepEqual(typesOf(await bench.run(T0 + 9 * DAY, [cut])), [], 'the board itself sent less than it has')
      assert.deepEqual(typesOf(await bench.run(T0 + 10 * DAY, [posting(7, { board_token: 'other' })])), ['created'])
      assert.deepEqual(typesOf(await bench.run(T0 + 11 * DAY, few)), ['gone', 'gone'], 'a whole board does tell')
    })

    it('believes an empty board the sixth time', async () => {
      await bench.run(T0, [posting(1)])
      for (let n = 1; n <= 5; n++) assert.deepEqual(typesOf(await bench.run(T0 + n * DAY, [])), [])
      assert.deepEqual(typesOf(await bench.run(T0 + 6 * DAY, [])), ['gone'])
    })

    it('creates one job for a posting on two boards', async () => {
      await bench.run(T0, [posting(1, {}, 'linkedin')], { scraper: 'linkedin' })
      const events = await bench.run(T0 + DAY, [posting(1)])
      assert.deepEqual(typesOf(events), ['cluster_joined'])
      const job = events[0]!.data['job'] as JobView
      assert.deepEqual([job.source, job.sources.length, job.metrics.sources], ['greenhouse', 2, 2])
      assert.deepEqual(await bench.ask('select count(*) as n from @job').then((rows) => Number(rows[0]!['n'])), 1)
      assert.deepEqual(
        typesOf(await bench.run(T0 + 2 * DAY, [posting(2)])),
        ['created'],
        'the other board still has it',
      )
      const [{ status }] = (await bench.ask(`select status from @job where title = 'Account Manager'`)) as [
        { status: string },
      ]
      assert.equal(status, 'active')
    })

    it('merges two boards within one batch, and keeps different jobs apart', async () => {
      const events = await bench.run(T0, [posting(1), posting(1, {}, 'lever'), posting(7)])
      assert.deepEqual(typesOf(events), ['cluster_joined', 'created', 'created'])
    })

    it('reports a pay change with both amounts', async () => {
      await bench.run(T0, [posting(2)])
      const more = posting(2, { salary: { min: 70_000, max: 80_000, currency: 'EUR', interval: 'year' } })
      const events = await bench.run(T0 + DAY, [more])
      assert.deepEqual(typesOf(events), ['salary_changed', 'updated'])
      const told = events.find(({ type }) => type === 'job.salary_changed')!.data
      const pay = (side: 'before' | 'after') => (told[side] as { salary: { min: number } }).salary.min
      assert.deepEqual([pay('before'), pay('after')], [52_000, 70_000])
      assert.equal((told['job'] as JobView).salary_annual_max, 80_000)
    })

    it('expires postings past their last day, and detects reposts', async () => {
      await bench.run(T0, [posting(1, { valid_through: '2026-10-07' }), posting(2)])
      assert.deepEqual(typesOf(await bench.run(T0 + 2 * DAY, [posting(2)], { isComplete: false })), [])
      assert.deepEqual(typesOf(await bench.run(T0 + 3 * DAY, [posting(2)], { isComplete: false })), ['expired'])
      const again = posting(2, { source_job_id: 'greenhouse-2-again' })
      assert.deepEqual(typesOf(await bench.run(T0 + 30 * DAY, [again], { isComplete: false })), [
        'cluster_joined',
        'reposted',
      ])
    })

    it('copes with hostile text', async () => {
      const odd = posting(1, {
        title: `Robert'); drop table job;-- ${'x'.repeat(5000)}`,
        company: '💥'.repeat(400),
        locations: ['\u0000nowhere\u0000', 'zz-🌋', ''],
        description_text: 'a\u0000b'.repeat(30_000),
      })
      const keys = [{ source_job_id: 'x'.repeat(9000) }, { board_token: 'a\u0000b' }].map((more) => posting(3, more))
      const lost = { ...posting(4), title: 7 } as never
      await bench.run(T0, [odd, ...keys, lost, posting(2)])
      assert.equal((await bench.ask('select key from @job')).length, 2)
      await bench.run(T0 + DAY, [odd, posting(2)])
      assert.equal((await bench.ask('select job_id from @job_observation')).length, 4)
    })
  })
