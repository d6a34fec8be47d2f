/** Events, the subscriptions to them, and their deliveries. */
import type { Dialect } from '../../drivers/sql.ts'

export const webhookTables = ({ prefix, now, identity }: Dialect): string => `
  create table ${prefix}event (
    id text primary key,
    type text not null,
    created_ms bigint not null,
    data text not null,
    dedupe text not null unique,
    webhook_id text
  );
  create index event_created on ${prefix}event (created_ms);
  create table ${prefix}webhook (
    id text primary key,
    name text not null unique,
    url text not null,
    events text not null,
    filter text not null,
    mode text not null,
    is_active int not null,
    disabled_reason text,
    secret text not null,
    old_secret text,
    old_secret_until_ms bigint not null default 0,
    failing_since_ms bigint,
    claimed_by text,
    claimed_until_ms bigint not null default 0,
    created_ms bigint not null
  );
  create table ${prefix}delivery (
    id ${identity},
    webhook_id text not null,
    event_id text not null,
    state text not null default 'pending',
    attempts int not null default 0,
    created_ms bigint not null,
    next_ms bigint not null,
    last_ms bigint,
    status int,
    duration_ms bigint,
    answer text,
    error text
  );
  create index delivery_open on ${prefix}delivery (webhook_id, id) where state in ('pending', 'failed');
  create index delivery_of on ${prefix}delivery (webhook_id, id desc);
  create index delivery_event on ${prefix}delivery (event_id);
  create table ${prefix}digest_event (
    webhook_id text not null,
    event_id text not null,
    due_ms bigint not null,
    primary key (webhook_id, event_id)
  );
  create table ${prefix}event_mark (
    name text primary key,
    at_ms bigint not null default (${now})
  );`
