/** What is known across runs: how far each run has been read, the current state of every item, and every change to it. */
import type { Dialect } from '../../drivers/sql.ts'

export const historyTables = ({ prefix, identity }: Dialect): string => `
  create table ${prefix}ingest_run (
    run_id text primary key,
    scraper text not null,
    scope text not null,
    position text not null default '',
    items bigint not null default 0,
    started_ms bigint not null,
    is_done int not null default 0,
    version text not null default '',
    is_finished int not null default 0,
    is_complete int not null default 0,
    why text
  );
  create index ingest_run_scope on ${prefix}ingest_run (scraper, scope, run_id);
  create table ${prefix}ingest_turn (
    scraper text primary key,
    at_ms bigint not null
  );
  create table ${prefix}entity (
    scraper text not null,
    key text not null,
    json text not null,
    content text not null,
    status text not null,
    first_seen_ms bigint not null,
    last_seen_ms bigint not null,
    last_run text not null,
    seen bigint not null default 1,
    missed int not null default 0,
    scopes text not null,
    primary key (scraper, key)
  );
  create index entity_gone on ${prefix}entity (last_seen_ms) where status = 'gone';
  create table ${prefix}entity_change (
    id ${identity},
    scraper text not null,
    key text not null,
    at_ms bigint not null,
    run_id text not null,
    kind text not null,
    fields text not null
  );
  create index entity_change_of on ${prefix}entity_change (scraper, key, id);
  create index entity_change_at on ${prefix}entity_change (at_ms);`

/** What each scope saw of an item, if several have seen it. */
export const historyViews = ({ prefix }: Dialect): string => `alter table ${prefix}entity add column views text`

/** Which fields the items of a scraper have had, and since when. */
export const historyFields = ({ prefix }: Dialect): string => `
  create table ${prefix}entity_field (
    scraper text not null,
    field text not null,
    run_id text not null,
    since_ms bigint not null,
    is_declared int not null,
    is_gone int not null,
    primary key (scraper, field)
  )`
