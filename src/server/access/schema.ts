/** API keys, first answers by idempotency key, the audit log and the leader. */
import type { Dialect } from '../../drivers/sql.ts'

export const accessTables = ({ prefix, now, identity }: Dialect): string => `
  create table ${prefix}api_key (
    id text primary key,
    name text not null unique,
    hash text not null unique,
    role text not null,
    created_ms bigint not null default (${now}),
    used_ms bigint,
    revoked_ms bigint
  );
  create table ${prefix}first_answer (
    key text primary key,
    fingerprint text not null,
    status int,
    body text,
    begun_ms bigint not null default (${now})
  );
  create index first_answer_begun on ${prefix}first_answer (begun_ms);
  create table ${prefix}leader (
    name text primary key,
    holder text not null,
    until_ms bigint not null
  );
  create table ${prefix}audit (
    id ${identity},
    at_ms bigint not null default (${now}),
    caller text not null,
    role text not null,
    action text not null,
    detail text not null,
    status int not null
  );`

/** Lets keys expire and have successors of the same name; and stores the address of each action. */
export const accessRotation = ({ prefix, now }: Dialect): string => `
  create table ${prefix}api_key_next (
    id text primary key,
    name text not null,
    hash text not null unique,
    role text not null,
    created_ms bigint not null default (${now}),
    used_ms bigint,
    revoked_ms bigint,
    expires_ms bigint,
    successor_id text
  );
  insert into ${prefix}api_key_next (id, name, hash, role, created_ms, used_ms, revoked_ms)
    select id, name, hash, role, created_ms, used_ms, revoked_ms from ${prefix}api_key;
  drop table ${prefix}api_key;
  alter table ${prefix}api_key_next rename to api_key;
  create unique index api_key_name on ${prefix}api_key (name) where successor_id is null;
  alter table ${prefix}audit add column address text not null default '';`
