/** Who may ask a server what, what it has answered, and who of several servers leads. */
import type { Dialect } from './sql.ts'

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
