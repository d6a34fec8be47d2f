/** The time tables of jobs and their daily rollups: the part that both databases share. */

import type { Dialect } from '../../drivers/sql.ts'
import { type Rollup, TIME_TABLES, type TimeTable, wordsOf } from './contract.ts'

/** Columns of the time tables, with types that both databases know. */
export function timeColumns(dialect: Dialect): Record<TimeTable, string> {
  const { time } = wordsOf(dialect)
  const job = `
    source text not null,
    company_id bigint,
    employment_type text,
    workplace text,
    salary_min double precision,
    salary_max double precision,
    currency text`
  return {
    job_observation: `
    observed_at ${time} not null,
    job_id bigint not null,${job},
    sources int not null,
    filled int not null,
    problems int not null,
    content_hash text not null,
    primary key (job_id, source, observed_at)`,
    job_event: `
    happened_at ${time} not null,
    job_id bigint not null,
    type text not null,${job},
    before text,
    after text,
    changed text,
    primary key (job_id, happened_at, type)`,
  }
}

/** The table of precomputed rows, the view that is read, and the watermark between precomputed and raw days. */
export function rollupTable(dialect: Dialect, rollup: Rollup): string {
  const { prefix } = dialect
  const { day, dayOf } = wordsOf(dialect)
  const { name, from, keys, values } = rollup
  const columns = [['day', `${day} not null`], ...Object.entries(keys), ...Object.entries(values)]
  const watermark = (column: string) => `(select ${column} from ${prefix}rollup_watermark where rollup = '${name}')`
  const time = TIME_TABLES[from]
  const tail = `(select * from ${prefix}${from} where ${time} >= ${watermark('starts_at')})`
  return `
  create table ${prefix}${name}_rollup (${columns.map(([column, type]) => `${column} ${type}`).join(', ')});
  create index ${name}_rollup_day on ${prefix}${name}_rollup (day, ${Object.keys(keys)[0]});
  insert into ${prefix}rollup_watermark (rollup, day, starts_at) values ('${name}', '1970-01-01', '1970-01-01T00:00:00.000Z');
  create view ${prefix}${name} as
    select ${columns.map(([column]) => column).join(', ')} from ${prefix}${name}_rollup where day < ${watermark('day')}
    union all
    select * from (${rollup.select({ prefix, source: tail, day: dayOf(time) })}) as fresh;`
}
