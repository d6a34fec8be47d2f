/**
 * Daily rollups of the jobs store, each with its own SELECT over one of the two time tables. The tables are created from these
 * definitions, days that were written to are recomputed with them, and days after the watermark are read with them.
 */
import type { Dialect } from '../../drivers/sql.ts'

/** SQL that differs between the two databases. */
interface Words {
  /** Type of a timestamp. SQLite stores ISO text in UTC, which sorts by time. */
  readonly time: string
  /** Type of a day. */
  readonly day: string
  /** SQL for the day, in UTC, of a timestamp column. */
  dayOf(column: string): string
  /** SQL: true if the column is one of the numbers in the parameter, a JSON array. */
  idIn(column: string, parameter: string): string
  /** Waits until no other transaction writes jobs: two at once could create two jobs for one posting. */
  readonly alone: string
}

const WORDS: Readonly<Record<Dialect['name'], Words>> = {
  postgres: {
    time: 'timestamptz',
    day: 'date',
    dayOf: (column) => `(${column} at time zone 'UTC')::date`,
    idIn: (column, parameter) =>
      `${column} = any(array(select json_array_elements_text(cast(${parameter} as json))::bigint))`,
    alone: `select pg_advisory_xact_lock(hashtext('sluice.job'))`,
  },
  sqlite: {
    time: 'text',
    day: 'text',
    dayOf: (column) => `substr(${column}, 1, 10)`,
    idIn: (column, parameter) => `${column} in (select value from json_each(${parameter}))`,
    alone: 'select 1',
  },
}

export const wordsOf = ({ name }: Dialect): Words => WORDS[name]

/** The two tables that grow over time, and their timestamp columns. */
export const TIME_TABLES = { job_observation: 'observed_at', job_event: 'happened_at' } as const
export type TimeTable = keyof typeof TIME_TABLES

/** How long their rows are kept. The rollups stay. */
export const KEEP_DAYS: Readonly<Record<TimeTable, number>> = { job_observation: 365, job_event: 730 }

export interface Rollup {
  /** Name of the view that is read. Precomputed rows are in `NAME_rollup`. */
  readonly name: string
  readonly from: TimeTable
  /** Names and types, without the day, which is always the first column. */
  readonly keys: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
  /** `source` is the time table or part of it, `day` the SQL for a row's day. */
  select(parts: { prefix: string; source: string; day: string }): string
}

/** One row per key, each value an aggregate: TimescaleDB can maintain these itself. */
interface PlainRollup extends Rollup {
  readonly aggregates: Readonly<Record<string, string>>
}

export const isPlain = (rollup: Rollup): rollup is PlainRollup => 'aggregates' in rollup

/** Fields that count towards completeness; one bit each in `job_observation.filled`, so append only. */
export const FILLED_FIELDS = [
  'title',
  'company',
  'job_url',
  'location',
  'description',
  'date_posted',
  'employment_type',
  'salary',
  'workplace',
  'apply_url',
] as const

export const PAY_BUCKET = 10_000
const MIDDLE = '(coalesce(salary_min, salary_max) + coalesce(salary_max, salary_min)) / 2'
const JOBS = { jobs: 'count(distinct job_id)' }
const KIND = { employment_type: 'text', workplace: 'text' }

function plain(
  rollup: Pick<Rollup, 'name' | 'from' | 'keys'> & { aggregates: Record<string, string>; where?: string },
): PlainRollup {
  const { keys, aggregates, where } = rollup
  return {
    ...rollup,
    values: Object.fromEntries(Object.keys(aggregates).map((name) => [name, 'bigint'])),
    select({ source, day }) {
      const names = Object.keys(keys).map((key) => (key === 'bucket' ? `${PAY_STEP} as bucket` : key))
      const sums = Object.entries(aggregates).map(([name, sql]) => `${sql} as ${name}`)
      const groups = Array.from({ length: names.length + 1 }, (_, at) => at + 1)
      return `select ${[`${day} as day`, ...names, ...sums].join(', ')} from ${source} as seen
        ${where === undefined ? '' : `where ${where}`} group by ${groups.join(', ')}`
    },
  }
}

const PAY_STEP = `cast(floor(${MIDDLE} / ${PAY_BUCKET}) * ${PAY_BUCKET} as bigint)`

/** Midpoint of each job's pay on a day; quartiles are members of the list, not interpolated. */
const SALARY: Rollup = {
  name: 'salary_by_day',
  from: 'job_observation',
  /** The source is empty for all sources together. */
  keys: { source: 'text', currency: 'text' },
  values: {
    jobs: 'bigint',
    total: 'double precision',
    lowest: 'double precision',
    highest: 'double precision',
    p25: 'double precision',
    p50: 'double precision',
    p75: 'double precision',
  },
  select: ({ source, day }) => `
    select day, source, currency, count(*) as jobs, sum(pay) as total, min(pay) as lowest, max(pay) as highest,
      min(pay) filter (where place >= 0.25 * size) as p25,
      min(pay) filter (where place >= 0.5 * size) as p50,
      min(pay) filter (where place >= 0.75 * size) as p75
    from (
      select day, source, currency, pay, row_number() over (partition by day, source, currency order by pay) as place,
        count(*) over (partition by day, source, currency) as size
      from (
        select ${day} as day, source, currency, job_id, max(${MIDDLE}) as pay from ${source} as seen
        where currency is not null and (salary_min is not null or salary_max is not null) group by 1, 2, 3, 4
        union all
        select ${day} as day, '' as source, currency, job_id, max(${MIDDLE}) as pay from ${source} as seen
        where currency is not null and (salary_min is not null or salary_max is not null) group by 1, 3, 4
      ) as pays
    ) as places
    group by day, source, currency`,
}

const LOCATION: Rollup = {
  name: 'location_by_day',
  from: 'job_observation',
  keys: { location_id: 'bigint' },
  values: { jobs: 'bigint' },
  select: ({ prefix, source, day }) => `
    select ${day} as day, place.location_id, count(distinct seen.job_id) as jobs
    from ${source} as seen join ${prefix}job_location place on place.job_id = seen.job_id
    group by 1, 2`,
}

export const ROLLUPS: readonly Rollup[] = [
  plain({ name: 'seen_by_day', from: 'job_observation', keys: KIND, aggregates: JOBS }),
  plain({
    name: 'source_by_day',
    from: 'job_observation',
    keys: { source: 'text', ...KIND },
    aggregates: { ...JOBS, shared: 'count(distinct job_id) filter (where sources > 1)', observations: 'count(*)' },
  }),
  plain({ name: 'company_by_day', from: 'job_observation', keys: { company_id: 'bigint' }, aggregates: JOBS }),
  LOCATION,
  SALARY,
  plain({
    name: 'quality_by_day',
    from: 'job_observation',
    keys: { source: 'text' },
    aggregates: {
      postings: 'count(*)',
      valid: 'count(*) filter (where problems = 0)',
      ...Object.fromEntries(
        FILLED_FIELDS.map((field, bit) => [`has_${field}`, `count(*) filter (where (filled & ${1 << bit}) <> 0)`]),
      ),
    },
  }),
  plain({
    name: 'event_by_day',
    from: 'job_event',
    keys: { type: 'text', source: 'text', ...KIND },
    aggregates: { events: 'count(*)' },
  }),
  plain({
    name: 'company_event_by_day',
    from: 'job_event',
    keys: { type: 'text', company_id: 'bigint' },
    aggregates: { events: 'count(*)' },
  }),
  plain({
    name: 'pay_by_day',
    from: 'job_event',
    keys: { source: 'text', currency: 'text', bucket: 'bigint' },
    aggregates: { jobs: 'count(*)' },
    where: `type = 'created' and currency is not null and (salary_min is not null or salary_max is not null)`,
  }),
]
