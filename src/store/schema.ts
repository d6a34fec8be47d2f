/** The tables of a store, in words that PostgreSQL and SQLite both understand. Times are epoch milliseconds of its own clock. */

import type { Dialect } from '../drivers/sql.ts'
import { jobTables } from '../jobs/store/schema.ts'
import { accessRotation, accessTables } from '../server/access/schema.ts'
import { historyFields, historyTables, historyViews } from '../server/history/schema.ts'
import { scheduleTables } from '../server/schedule/schema.ts'
import { webhookTables } from '../server/webhooks/schema.ts'
import { regionColumns } from './schema-regions.ts'

/** Never edit a released step: databases out there have it. */
export const STORE_STEPS = (dialect: Dialect): string[] => [
  runTables(dialect),
  accessTables(dialect),
  scheduleTables(dialect),
  webhookTables(dialect),
  historyTables(dialect),
  jobTables(dialect),
  historyViews(dialect),
  regionColumns(dialect),
  accessRotation(dialect),
  historyFields(dialect),
]

const runTables = ({ prefix, now, bytes, identity }: Dialect): string => `
  create table ${prefix}run_record (
    id text primary key,
    scraper text not null,
    state text not null,
    record text not null,
    definition_hash text not null,
    options text not null,
    created_ms bigint not null default (${now}),
    woken_ms bigint not null default (${now})
  );
  create index run_record_scraper on ${prefix}run_record (scraper, created_ms desc);
  create table ${prefix}worker (
    id text primary key,
    run_id text not null,
    scraper text not null,
    host text not null,
    pid int not null,
    started_ms bigint not null default (${now}),
    beat_ms bigint not null default (${now}),
    ended_ms bigint,
    is_drain_asked int not null default 0,
    report text
  );
  create index worker_run on ${prefix}worker (run_id);
  create table ${prefix}snapshot (
    run_id text not null,
    name text not null,
    bytes ${bytes} not null,
    primary key (run_id, name)
  );
  create table ${prefix}run_item (
    seq ${identity},
    run_id text not null,
    key text not null,
    content text not null,
    json text not null,
    unique (run_id, key)
  );
  create index run_item_run on ${prefix}run_item (run_id, seq);
  create table ${prefix}run_log (
    id ${identity},
    run_id text not null,
    line text not null
  );
  create index run_log_run on ${prefix}run_log (run_id, id);`
