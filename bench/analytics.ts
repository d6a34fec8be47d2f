/**
 * How fast job statistics are on 2,000,000 observations of 200,000 jobs in 14 weeks, on a private PostgreSQL.
 *
 *   node bench/analytics.ts [--quick]
 *
 * Prints JSON: milliseconds, the median of several queries; `rawMs` is the same answer computed from the rows themselves.
 */
import { parseArgs } from 'node:util'
import { Analytics } from '../src/jobs/store/analytics.ts'
import { ROLLUPS } from '../src/jobs/store/contract.ts'
import { Rollups } from '../src/jobs/store/rollups.ts'
import { JobSearch } from '../src/jobs/store/search.ts'
import { openPostgresDatabase } from '../src/store/postgres.ts'
import { Bench, posting } from '../test/jobs-bench.ts'
import { startPostgres } from '../test/services/postgres.ts'
import { fill } from './analytics/fill.ts'

const DAY_MS = 86_400_000
const ASKS = 7
/** The batch size in which items of a run are read. */
const INGESTED = 200
const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const sizes = options.quick
  ? { jobs: 20_000, observations: 200_000, days: 98 }
  : { jobs: 200_000, observations: 2_000_000, days: 98 }

await using server = await startPostgres({ settings: ['shared_buffers=512MB', 'max_wal_size=8GB'] })
await using database = await server.createDatabase()
await using parts = new AsyncDisposableStack()
const db = await openPostgresDatabase(database.url)
parts.defer(() => db.close())

const round = (ms: number) => Number(ms.toFixed(1))

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return round(performance.now() - startMs)
}

async function median(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let ask = 0; ask < ASKS; ask++) times.push(await timed(work))
  return times.sort((a, b) => a - b)[ASKS >> 1]!
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const daysBack = (days: number) => dayOf(Date.now() - days * DAY_MS)
const all = { from: daysBack(sizes.days), to: daysBack(0) }
const past = { from: daysBack(sizes.days), to: daysBack(1) }
const month = { from: daysBack(30), to: daysBack(0) }

const fillMs = await timed(() => fill(database.url, sizes))
await using rollups = new Rollups({ db, say: () => {} })
const buildMs = await timed(async () => {
  while ((await rollups.refresh()) > 0);
})
await db.rows('analyze', [])

const analytics = new Analytics(db)
const queries: Record<string, (days: typeof all) => Promise<unknown>> = {
  'jobs-per-day': (days) => analytics.jobsPerDay(days, {}),
  'jobs-per-day of a source': (days) => analytics.jobsPerDay(days, { source: 'lever' }),
  'by-company': (days) => analytics.byCompany(days, 50),
  'by-location': (days) => analytics.byLocation(days, 50),
  'salary-histogram': (days) => analytics.salaryHistogram(days, {}),
  'salary-trend': (days) => analytics.salaryTrend(days, {}),
  'hiring-trends': (days) => analytics.hiringTrends(days, 50),
  quality: (days) => analytics.quality(days, undefined),
  duplicates: (days) => analytics.duplicates(days, undefined),
}
const analyticsMs: Record<string, object> = {}
for (const [name, ask] of Object.entries(queries))
  analyticsMs[name] = {
    days98: await median(() => ask(past)),
    withToday: await median(() => ask(all)),
    month: await median(() => ask(month)),
  }

const rollupReadMs = await median(() =>
  db.rows('select day, sum(jobs) from sluice.seen_by_day_rollup group by day order by day', []),
)
const rawMs = await timed(() =>
  db.rows(
    `select (observed_at at time zone 'UTC')::date, count(*), count(distinct job_id), percentile_cont(0.5) within group (order by salary_min)
     from sluice.job_observation group by 1`,
    [],
  ),
)

const search = new JobSearch(db)
const searches: Record<string, Parameters<JobSearch['find']>[0]> = {
  newest: { status: 'active', limit: 50 },
  'a common word': { q: 'rust', status: 'active', limit: 50 },
  'two words, one rare': { q: 'engineer 12345', limit: 50 },
  'no such word': { q: 'xylophone', limit: 50 },
  company: { company: 'Company 77', limit: 50 },
  location: { location: 'City 123', status: 'active', limit: 50 },
  'source, kind and pay': { source: 'lever', employment_type: 'full_time', salary_min: 150_000, limit: 50 },
  'word, place and kind': { q: 'nursing', location: 'City 123', employment_type: 'full_time', limit: 50 },
  'a page far behind': { status: 'active', before: Math.floor(sizes.jobs / 10), limit: 50 },
}
const searchMs: Record<string, number> = {}
for (const [name, query] of Object.entries(searches)) searchMs[name] = await median(() => search.find(query))
searchMs['one job'] = await median(() => search.get(4711))
searchMs['companies'] = await median(() => search.companies({ limit: 50 }))

const ingest = new Bench(db, async () => {})
const ingestMs = async (scraper: 'greenhouse' | 'lever') => {
  let at = Date.now()
  let n = 0
  return await median(async () => {
    const postings = Array.from({ length: INGESTED }, () => posting(n++, {}, scraper))
    at += 1000
    await ingest.run(at, postings, { scraper, isComplete: false })
  })
}
const ingestOf200Ms = {
  new: await ingestMs('greenhouse'),
  joined: await ingestMs('lever'),
  again: await ingestMs('greenhouse'),
}

const twoDays = [daysBack(40), daysBack(41)]
const refreshMs = await median(async () => {
  for (const day of twoDays)
    await db.rows('insert into sluice.rollup_dirty (rollup, bucket) select rollup, $1 from sluice.rollup_watermark', [
      day,
    ])
  await rollups.refresh()
})

const [size] = await db.rows(
  `select sum(pg_total_relation_size(inhrelid)) as bytes, count(*) as parts from pg_inherits where inhparent = 'sluice.job_observation'::regclass`,
  [],
)
const [oldest, second] = (
  await db.rows(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'sluice.job_observation'::regclass and c.relname ~ '[0-9]{8}$' order by 1 limit 2`,
    [],
  )
).map((row) => String(row['name']))
const [week] = await db.rows(
  `select count(*) as n, min(observed_at) as first, max(observed_at) as last from sluice.${second}`,
  [],
)
const deleteMs = await timed(() => db.rows(`delete from sluice.${second}`, []))
const dropMs = await timed(() => db.rows(`drop table sluice.${oldest}`, []))

console.log(
  JSON.stringify(
    {
      ...sizes,
      fillMs,
      observationMb: Math.round(Number(size!['bytes']) / 1e6),
      partitions: Number(size!['parts']),
      rollups: ROLLUPS.length,
      buildMs,
      rollupReadMs,
      rawMs,
      analyticsMs,
      searchMs,
      ingestOf200Ms,
      refreshTwoDaysMs: refreshMs,
      retention: { rowsOfAWeek: Number(week!['n']), deleteMs, dropMs },
    },
    undefined,
    2,
  ),
)
