/** Schedules, and every fire of each. */
import type { Dialect } from '../../drivers/sql.ts'

export const scheduleTables = ({ prefix, now, identity }: Dialect): string => `
  create table ${prefix}schedule (
    id text primary key,
    name text not null unique,
    scraper text not null,
    args text not null,
    limits text not null,
    cron text not null,
    tz text not null,
    overlap text not null,
    jitter_ms bigint not null,
    is_catch_up int not null,
    is_paused int not null default 0,
    created_ms bigint not null default (${now}),
    next_ms bigint not null
  );
  create index schedule_next on ${prefix}schedule (next_ms);
  create table ${prefix}schedule_fire (
    id ${identity},
    schedule_id text not null,
    due_ms bigint not null,
    at_ms bigint not null default (${now}),
    outcome text not null,
    run_id text,
    reason text,
    unique (schedule_id, due_ms)
  );
  create index schedule_fire_latest on ${prefix}schedule_fire (schedule_id, id desc);`
