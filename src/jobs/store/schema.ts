/**
 * Jobs: the current state of each, and two time tables of what was seen and what happened. Every daily number is a view: days
 * before the watermark come from a table, the rest is computed on request.
 */

import type { Dialect } from '../../drivers/sql.ts'
import { ROLLUPS, wordsOf } from './contract.ts'
import { postgresTimeTables } from './schema-postgres.ts'
import { rollupTable, timeColumns } from './schema-time.ts'

export const jobTables = (dialect: Dialect): string =>
  [
    stateTables(dialect),
    dialect.name === 'postgres' ? postgresTimeTables(dialect) : sqliteTimeTables(dialect),
    healthTable(dialect),
  ].join('\n')

function stateTables(dialect: Dialect): string {
  const { prefix, identity } = dialect
  const { time, day } = wordsOf(dialect)
  return `
  create table ${prefix}company (
    id ${identity},
    key text not null unique,
    name text not null,
    url text,
    logo text,
    first_seen_at ${time} not null,
    last_seen_at ${time} not null
  );
  create table ${prefix}location (
    id ${identity},
    key text not null unique,
    name text not null,
    city text,
    region text,
    country_iso2 text,
    search text not null
  );
  create index location_country on ${prefix}location (country_iso2);
  create table ${prefix}job (
    id ${identity},
    key text not null unique,
    company_id bigint,
    title text not null,
    preferred_key text not null,
    employment_type text,
    workplace text,
    salary_annual_min double precision,
    salary_annual_max double precision,
    currency text,
    date_posted text,
    status text not null,
    first_seen_at ${time} not null,
    last_seen_at ${time} not null,
    summary text not null,
    search text not null
  );
  create index job_company on ${prefix}job (company_id, id desc);
  create index job_status on ${prefix}job (status, id desc);
  create index job_first_seen on ${prefix}job (first_seen_at, id);
  create index job_pay on ${prefix}job (salary_annual_max) where salary_annual_max is not null;
  create table ${prefix}job_location (
    location_id bigint not null,
    job_id bigint not null,
    primary key (location_id, job_id)
  );
  create index job_location_job on ${prefix}job_location (job_id);
  create table ${prefix}job_source (
    key text primary key,
    job_id bigint not null,
    source text not null,
    board_token text not null,
    scraper text not null,
    run_id text not null,
    status text not null,
    state text not null,
    posting text not null,
    job_url text not null,
    valid_through text,
    first_seen_at ${time} not null,
    last_seen_at ${time} not null
  );
  create index job_source_job on ${prefix}job_source (job_id, source);
  create index job_source_board on ${prefix}job_source (source, board_token, run_id) where status <> 'gone';
  create index job_source_end on ${prefix}job_source (valid_through) where status = 'active' and valid_through is not null;
  create table ${prefix}job_block (
    block text not null,
    job_id bigint not null,
    primary key (block, job_id)
  );
  create table ${prefix}job_board (
    source text not null,
    board_token text not null,
    run_id text not null,
    run_items int not null,
    is_truncated int not null,
    state text not null,
    primary key (source, board_token)
  );
  create index job_board_run on ${prefix}job_board (run_id);
  create table ${prefix}job_metric (
    job_id bigint primary key,
    times_seen bigint not null,
    sources int not null,
    days_active int not null,
    reposts int not null,
    updates int not null
  );
  create index job_metric_shared on ${prefix}job_metric (sources) where sources > 1;
  create table ${prefix}rollup_dirty (
    rollup text not null,
    bucket ${day} not null,
    marks int not null default 1,
    primary key (rollup, bucket)
  );
  create table ${prefix}rollup_watermark (
    rollup text primary key,
    day ${day} not null,
    starts_at ${time} not null
  );`
}

function sqliteTimeTables(dialect: Dialect): string {
  const columns = timeColumns(dialect)
  return `
  create table job_observation (${columns.job_observation});
  create index job_observation_time on job_observation (observed_at);
  create table job_event (${columns.job_event});
  create index job_event_time on job_event (happened_at);
  ${ROLLUPS.map((rollup) => rollupTable(dialect, rollup)).join('\n')}
  create virtual table job_words using fts5(search, content = 'job', content_rowid = 'id', tokenize = 'unicode61');
  create trigger job_words_add after insert on job begin
    insert into job_words (rowid, search) values (new.id, new.search);
  end;
  create trigger job_words_change after update of search on job when old.search <> new.search begin
    insert into job_words (job_words, rowid, search) values ('delete', old.id, old.search);
    insert into job_words (rowid, search) values (new.id, new.search);
  end;`
}

/** A run's pages by result: one row per run and class, in the minute the run ended. */
function healthTable(dialect: Dialect): string {
  return `
  create table ${dialect.prefix}scrape_health (
    minute ${wordsOf(dialect).time} not null,
    scraper text not null,
    class text not null,
    run_id text not null,
    pages bigint not null,
    items bigint not null,
    bytes bigint not null,
    work_ms bigint not null,
    p50_ms double precision,
    p95_ms double precision,
    primary key (run_id, class)
  );
  create index scrape_health_minute on ${dialect.prefix}scrape_health (minute, scraper);`
}
