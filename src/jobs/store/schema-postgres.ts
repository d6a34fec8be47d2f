/**
 * The time tables on PostgreSQL: weekly partitions and rollup tables; with TimescaleDB, hypertables and continuous aggregates of
 * the same names. The choice is made once, here: a partitioned table cannot become a hypertable.
 *
 * The TimescaleDB branch is written from its documentation and has never been run.
 */

import type { Dialect } from '../../drivers/sql.ts'
import { isPlain, KEEP_DAYS, ROLLUPS, type Rollup, TIME_TABLES, type TimeTable } from './contract.ts'
import { rollupTable, timeColumns } from './schema-time.ts'

const TABLES = Object.keys(TIME_TABLES) as TimeTable[]

export const postgresTimeTables = (dialect: Dialect): string => `
  ${PARTITIONS}
  alter table sluice.job add column words tsvector generated always as (to_tsvector('simple', search)) stored;
  create index job_words on sluice.job using gin (words);
  do $migration$
  declare has_timescale boolean := false;
  begin
    if exists (select from pg_available_extensions where name = 'timescaledb') then
      begin
        create extension if not exists timescaledb;
        has_timescale := true;
      exception when others then
        raise notice 'timescaledb is there but cannot be used: %', sqlerrm;
      end;
    end if;
    if has_timescale then
      ${TABLES.map((table) => timescaleTable(dialect, table)).join('\n')}
      ${ROLLUPS.map((rollup) => (isPlain(rollup) ? continuousAggregate(rollup) : rollupTable(dialect, rollup))).join('\n')}
      ${TIMESCALE_PARTITIONS}
    else
      ${TABLES.map((table) => partitionedTable(dialect, table)).join('\n')}
      ${ROLLUPS.map((rollup) => rollupTable(dialect, rollup)).join('\n')}
    end if;
  end $migration$;
  ${TABLES.map((table) => `select sluice.ensure_partitions('${table}', statement_timestamp(), 3);`).join('\n')}`

function partitionedTable(dialect: Dialect, table: TimeTable): string {
  const time = TIME_TABLES[table]
  return `
      create table sluice.${table} (${timeColumns(dialect)[table]}) partition by range (${time});
      create index ${table}_time on sluice.${table} using brin (${time}) with (pages_per_range = 16);
      create table sluice.${table}_default partition of sluice.${table} default;`
}

/**
 * A partition is a week from Monday, named after its first day. `ensure` creates them from this week on and moves rows out of the
 * default partition to where they belong. `drop` is retention: a week at a time, without reading a row.
 */
const PARTITIONS = `
  create function sluice.add_partition(parent text, starts timestamptz) returns boolean language plpgsql as $f$
  declare
    part text := parent || '_' || to_char(starts at time zone 'UTC', 'YYYYMMDD');
    ends timestamptz := starts + interval '7 days';
    time_column text := case parent when 'job_observation' then 'observed_at' else 'happened_at' end;
  begin
    if to_regclass('sluice.' || part) is not null then return false; end if;
    execute format('create table sluice.%I (like sluice.%I including defaults)', part, parent);
    execute format('with moved as (delete from sluice.%I where %I >= %L and %I < %L returning *) insert into sluice.%I select * from moved',
      parent || '_default', time_column, starts, time_column, ends, part);
    execute format('alter table sluice.%I attach partition sluice.%I for values from (%L) to (%L)', parent, part, starts, ends);
    return true;
  end $f$;
  create function sluice.week_of(at timestamptz) returns timestamptz language sql immutable as
    $f$ select date_bin(interval '7 days', at, timestamptz '2001-01-01 00:00:00Z') $f$;
  create function sluice.ensure_partitions(parent text, at timestamptz, ahead int) returns int language plpgsql as $f$
  declare made int := 0;
  begin
    perform pg_advisory_xact_lock(hashtext('sluice.' || parent));
    for week in 0..ahead loop
      if sluice.add_partition(parent, sluice.week_of(at) + week * interval '7 days') then made := made + 1; end if;
    end loop;
    return made;
  end $f$;
  create function sluice.drop_partitions(parent text, before timestamptz) returns int language plpgsql as $f$
  declare
    part record;
    dropped int := 0;
    time_column text := case parent when 'job_observation' then 'observed_at' else 'happened_at' end;
  begin
    perform pg_advisory_xact_lock(hashtext('sluice.' || parent));
    for part in
      select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = to_regclass('sluice.' || parent) and c.relname ~ '_[0-9]{8}$'
    loop
      if to_date(right(part.relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC' + interval '7 days' <= before then
        execute format('drop table sluice.%I', part.relname);
        dropped := dropped + 1;
      end if;
    end loop;
    execute format('delete from sluice.%I where %I < %L', parent || '_default', time_column, before);
    return dropped;
  end $f$;`

function timescaleTable(dialect: Dialect, table: TimeTable): string {
  const time = TIME_TABLES[table]
  return `
      create table sluice.${table} (${timeColumns(dialect)[table]});
      perform create_hypertable('sluice.${table}', by_range('${time}', interval '7 days'));
      alter table sluice.${table} set (timescaledb.compress, timescaledb.compress_segmentby = 'source', timescaledb.compress_orderby = '${time}');
      perform add_compression_policy('sluice.${table}', interval '7 days');
      perform add_retention_policy('sluice.${table}', interval '${KEEP_DAYS[table]} days');`
}

/** Maintained by TimescaleDB, recent rows read from the hypertable: it has no watermark of ours, so it is not computed here. */
function continuousAggregate(rollup: Rollup): string {
  const { name, from, keys, values } = rollup
  const source = `sluice.${from}`
  const select = rollup.select({
    prefix: 'sluice.',
    source,
    day: `time_bucket(interval '1 day', ${TIME_TABLES[from]})`,
  })
  const columns = [...Object.keys(keys), ...Object.keys(values)].join(', ')
  return `
      create materialized view sluice.${name}_rollup
        with (timescaledb.continuous, timescaledb.materialized_only = false) as ${select} with no data;
      perform add_continuous_aggregate_policy('sluice.${name}_rollup',
        start_offset => interval '3 days', end_offset => interval '1 hour', schedule_interval => interval '1 hour');
      create view sluice.${name} as select (day at time zone 'UTC')::date as day, ${columns} from sluice.${name}_rollup;`
}

/** TimescaleDB creates chunks itself and drops them by policy; these functions exist so that callers need not care. */
const TIMESCALE_PARTITIONS = `
      create or replace function sluice.ensure_partitions(parent text, at timestamptz, ahead int) returns int
        language sql as $f$ select 0 $f$;
      create or replace function sluice.drop_partitions(parent text, before timestamptz) returns int language sql as
        $f$ select count(*)::int from drop_chunks(('sluice.' || parent)::regclass, older_than => before) $f$;`
