/** Searching for jobs, and analytics about them, on both databases. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Bench, DAY, OPEN, posting, T0 } from '../../../test/jobs-bench.ts'
import type { RunRecord } from '../../core/run.ts'
import { Analytics } from './analytics.ts'
import { Rollups } from './rollups.ts'
import { ScrapeHealth } from './scrape-health.ts'
import { JobSearch, wordsIn } from './search.ts'

const days = { from: '2026-10-01', to: '2026-10-31' }
const record = (more: object) =>
  ({
    id: 'run-a',
    scraper: 'greenhouse',
    startedAt: '2026-10-05T08:00:00.000Z',
    finishedAt: '2026-10-05T08:10:30.000Z',
    durationMs: 100_000,
    pages: { ok: 90 },
    items: { new: 200, same: 0, changed: 0 },
    bytes: 5000,
    latencyMs: { p50: 100, p95: 300 },
    errors: [
      { code: 'E_TIMEOUT', class: 'timeout', count: 6, example: '' },
      { code: 'E_CONNECT', class: 'network', count: 4, example: '' },
    ],
    ...more,
  }) as RunRecord

for (const [engine, open] of Object.entries(OPEN))
  describe(`looking for jobs on ${engine}`, () => {
    let bench: Bench
    before(async () => {
      bench = await open()
      await bench.run(
        T0,
        Array.from({ length: 24 }, (_, n) => posting(n)),
      )
      await bench.run(
        T0 + DAY,
        Array.from({ length: 23 }, (_, n) => posting(n)),
      )
      await bench.run(T0 + 2 * DAY, [posting(1, {}, 'lever')], { scraper: 'lever' })
      await using rollups = new Rollups({ db: bench.db, say: () => {}, now: () => T0 + 2 * DAY })
      await rollups.refresh()
    })
    after(() => bench[Symbol.asyncDispose]())

    it('finds by words, company, place, source, kind, pay and time, and all of them together', async () => {
      const search = new JobSearch(bench.db)
      const count = async (query: object) => (await search.find({ limit: 100, ...query })).length
      assert.equal(await count({}), 24)
      assert.equal(await count({ status: 'active' }), 23)
      assert.equal(await count({ q: 'engin' }), 4)
      assert.equal(await count({ q: 'ENGINEER backend company' }), 4)
      assert.equal(await count({ q: 'customers nurse' }), 4, 'the description is searched, too')
      assert.equal(await count({ q: 'gineer' }), 0, 'words are found by their beginning')
      assert.equal(await count({ company: 'COMPANY 2, Inc.' }), 6)
      assert.equal(await count({ location: 'london' }), 8)
      assert.equal(await count({ location: 'us' }), 8)
      assert.equal(await count({ location: '%' }), 0)
      assert.equal(await count({ source: 'lever' }), 1)
      assert.equal(await count({ employment_type: 'part_time', workplace: 'hybrid' }), 2)
      assert.equal(await count({ salary_min: 80_000, currency: 'eur' }), 2)
      assert.equal(await count({ since: new Date(T0 + DAY).toISOString() }), 0)
      assert.equal(await count({ q: 'nurse', location: 'new york', employment_type: 'full_time' }), 2)
    })

    it('pages without gaps or repeats', async () => {
      const search = new JobSearch(bench.db)
      const ids: string[] = []
      for (let before: number | undefined; ; before = Number(ids.at(-1))) {
        const found = (await search.find({ limit: 7, before })).map(({ id }) => id)
        ids.push(...found.slice(0, 7))
        if (found.length <= 7) break
      }
      assert.equal(new Set(ids).size, 24)
      assert.equal(ids.length, 24)
      const first = await search.companies({ limit: 3 })
      const rest = await search.companies({ limit: 3, after: first[2]!.key })
      assert.deepEqual(
        [...first.slice(0, 3), ...rest].map(({ jobs }) => jobs),
        [6, 6, 6, 5],
      )
    })

    it('shows a job with its sources and what happened to it', async () => {
      const search = new JobSearch(bench.db)
      const [found] = await search.find({ limit: 1, source: 'lever' })
      const job = await search.get(Number(found!.id))
      assert.deepEqual(
        job!.sources.map(({ source, source_job_id }) => [source, source_job_id]),
        [
          ['greenhouse', 'greenhouse-1'],
          ['lever', 'lever-1'],
        ],
      )
      assert.deepEqual(
        job!.history.map(({ type }) => type),
        ['cluster_joined', 'created'],
      )
      assert.match(job!.description_text!, /customers/)
      assert.equal(await search.get(123_456), undefined)
    })

    it('treats nothing in a query as an operator', () => {
      assert.deepEqual(wordsIn(`c++ 'a' & "b" | !x:* NEAR(`), ['c', 'a', 'b', 'x', 'near'])
      assert.equal(wordsIn('w '.repeat(100)).length, 10)
    })

    it('counts by day, company, place, pay and source', async () => {
      const analytics = new Analytics(bench.db)
      const perDay = await analytics.jobsPerDay(days, {})
      assert.deepEqual(perDay, [
        { day: '2026-10-05', active: 24, new: 24, updated: 0, gone: 0 },
        { day: '2026-10-06', active: 23, new: 0, updated: 0, gone: 1 },
        { day: '2026-10-07', active: 1, new: 0, updated: 0, gone: 0 },
      ])
      const kind = { source: 'greenhouse', employment_type: 'part_time' }
      assert.deepEqual(
        (await analytics.jobsPerDay(days, kind)).map(({ active }) => active),
        [6, 6],
      )
      const until = { ...days, to: '2026-10-06' }
      assert.deepEqual(
        (await analytics.byCompany(until, 10)).data.map(({ jobs }) => jobs),
        [6, 6, 6, 5],
      )
      assert.equal((await analytics.byCompany(days, 10)).day, '2026-10-07')
      const places = await analytics.byLocation(until, 2)
      assert.deepEqual(
        places.data.map(({ city, jobs }) => [city, jobs]),
        [
          ['Berlin', 8],
          ['London', 8],
        ],
      )
      const histogram = await analytics.salaryHistogram(days, { currency: 'EUR' })
      assert.deepEqual(
        histogram.map(({ from, jobs }) => [from, jobs]),
        [
          [50_000, 3],
          [60_000, 5],
          [70_000, 4],
        ],
      )
      const [pay] = await analytics.salaryTrend(days, {})
      assert.deepEqual([pay!.jobs, pay!.min, pay!.p50, pay!.max, pay!.mean], [12, 55_000, 65_000, 77_000, 66_000])
      const [trend] = await analytics.hiringTrends({ from: '2026-10-06', to: '2026-10-07' }, 1)
      assert.deepEqual([trend!.new, trend!.newBefore, trend!.change], [0, 6, -1])
      const quality = await analytics.quality(days, 'greenhouse')
      assert.deepEqual([quality[0]!.postings, quality[0]!.completeness['salary']], [47, 24 / 47])
      const { sharedJobs, data } = await analytics.duplicates(days, undefined)
      assert.deepEqual(
        [sharedJobs, data.find(({ source }) => source === 'lever')],
        [1, { source: 'lever', share: 1, joined: 1, reposted: 0 }],
      )
      assert.deepEqual(await analytics.byCompany({ from: '2020-01-01', to: '2020-01-02' }, 5), { day: null, data: [] })
    })

    it('reports how scraping went, counting a resumed run once', async () => {
      const health = new ScrapeHealth(bench.db)
      const end = async (one: RunRecord) =>
        await bench.db.transaction((rows) => health.finish(rows, { record: one } as never))
      await end(record({}))
      await end(
        record({ id: 'run-b', finishedAt: '2026-10-05T09:59:59.999Z', errors: [], latencyMs: { p50: 200, p95: 250 } }),
      )
      await end(record({}))
      const range = { from: '2026-10-05T00:00:00.000Z', below: '2026-10-06T00:00:00.000Z' }
      const [day] = await health.read({ ...range, per: 'day' })
      assert.deepEqual([day!.at, day!.runs, day!.pages, day!.items], ['2026-10-05T00:00:00Z', 2, 190, 400])
      assert.deepEqual([day!.pagesPerSecond, day!.responseMsP50, day!.responseMsP95], [0.9, 150, 300])
      assert.deepEqual(
        day!.errors.map(({ class: name, count }) => [name, count]),
        [
          ['network', 4],
          ['timeout', 6],
        ],
      )
      assert.equal(day!.successRate, 180 / 190)
      const hours = await health.read({ ...range, per: 'hour' })
      assert.deepEqual(
        hours.map(({ at, pages }) => [at, pages]),
        [
          ['2026-10-05T08:00:00Z', 100],
          ['2026-10-05T09:00:00Z', 90],
        ],
      )
      assert.deepEqual(await health.read({ ...range, per: 'day', scraper: 'books' }), [])
    })
  })
