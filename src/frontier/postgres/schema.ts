/**
 * Tables of a `postgres:` frontier. Location is state: a task's row is in exactly one of ready, delayed, suspect, inflight, dead
 * or done, and moves there with its whole body. No index contains a status, so finished tasks do not slow down claims, and a
 * heartbeat touches no index at all.
 *
 *   seen ──▶ ready ──claim──▶ inflight ──done──▶ done
 *              ▲  delayed ◀─retry/postpone─┤ │
 *              └── suspect ◀──────sweep────┘ └──▶ dead
 *
 * Times are epoch milliseconds of the database's clock.
 *
 * Writers take locks in this order, to avoid deadlocks: op · inflight · seen · queue · items. A claim skips locked rows, and
 * locks a queue's row only at its end, when it no longer waits for anything.
 */

/** The columns of a task that move from table to table. */
export const BODY = 'queue_id, seq, created_ms, depth, attempts, url_hash, url, route, data, session'

const BODY_TYPES = `
    seq bigint not null, created_ms bigint not null, queue_id int not null, depth int not null, attempts int not null,
    url_hash bytea not null, url text not null, route text not null, data text, session text`

/** Dead rows at the head of a queue make it slow: vacuum by absolute number, not by share of a large table. */
const CHURNS =
  'autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0'

export const TABLES = `
  create table sluice.run (
    run_id int generated always as identity primary key, name text not null unique, pause_reason text,
    created_at timestamptz not null default now()
  );
  create table sluice.meta (run_id int not null, name text not null, value text not null, primary key (run_id, name));

  -- Tells the frontiers that have the database open apart: the upper half of the numbers of their operations.
  create sequence sluice.client_no as int cycle;
  create sequence sluice.task_seq;

  -- One per lane, priority and host, kept for good, so that its number can be cached. weight = -priority: the order is
  -- ascending throughout. class: 0 manual, 1 priority, 2 all other lanes, which share, 3 files,
  -- given only to who asks for their lane. Open: may have something ready.
  create table sluice.queue (
    id int generated always as identity primary key, run_id int not null, class smallint not null, lane text not null,
    weight float8 not null, host text not null, is_open boolean not null default false
  ) with (${CHURNS});
  create unique index queue_name on sluice.queue (run_id, host, lane, weight);
  create index queue_turn on sluice.queue (run_id, class, weight, id) where is_open;
  create index queue_lane_turn on sluice.queue (run_id, lane, weight, id) where is_open;

  create table sluice.ready (${BODY_TYPES}, primary key (queue_id, seq)) with (${CHURNS});
  create table sluice.delayed (
    at_ms bigint not null, run_id int not null, losses int not null, ${BODY_TYPES}, primary key (run_id, at_ms, seq)
  ) with (${CHURNS});
  create table sluice.suspect (
    turn bigint generated always as identity, run_id int not null, losses int not null, ${BODY_TYPES}, primary key (run_id, turn)
  );
  -- As small as the work in hand: expiry and worker are scanned, not indexed, so that a heartbeat is a HOT update.
  create table sluice.inflight (
    lease_id bigint not null, claimed_ms bigint not null, expires_ms bigint not null, run_id int not null, losses int not null,
    worker_id text not null, ${BODY_TYPES}, primary key (seq)
  ) with (fillfactor = 50, ${CHURNS});
  create index inflight_alone on sluice.inflight (run_id, worker_id) where losses > 0;
  create table sluice.dead (
    turn bigint generated always as identity, died_ms bigint not null, run_id int not null, losses int not null, ${BODY_TYPES},
    host text not null, worker_id text not null, code text not null, class text not null, cause text not null,
    error text not null, snapshot text, primary key (run_id, turn)
  );
  create unique index dead_hash on sluice.dead (run_id, url_hash);

  -- What a run keeps for good is in partitions of its own: a run of a million pages is dropped in milliseconds.
  create table sluice.seen (run_id int not null, url_hash bytea not null, primary key (run_id, url_hash)) partition by list (run_id);
  create table sluice.done (
    completed_ms bigint not null, claimed_ms bigint not null, run_id int not null, losses int not null, worker_id text not null,
    ${BODY_TYPES}
  ) partition by list (run_id);
  -- Not partitioned: a cached plan that reads a partitioned table locks all its partitions, that is all runs, each time.
  create table sluice.item (
    seq bigint not null, run_id int not null, key_hash bytea not null, key text not null, content text not null, json text not null,
    created_at timestamptz not null default now(), primary key (run_id, seq), unique (run_id, key_hash)
  );
  create table sluice.item_mark (run_id int primary key, seq bigint not null, positions text not null);

  -- Counters, as what each transaction changed in them. Rows are only inserted, and folded into one every few seconds: no row is
  -- hot, and a snapshot held elsewhere does not make an update wade through its old versions.
  create table sluice.tally (
    run_id int not null, pending int8 not null default 0, claimed int8 not null default 0, completed int8 not null default 0,
    failed int8 not null default 0, dead int8 not null default 0, counts jsonb
  ) with (${CHURNS});
  create index tally_run on sluice.tally (run_id);

  -- What an operation answered, until its client has heard it: a repeat after a broken connection gets the same answer.
  create table sluice.answer (
    op bigint primary key, run_id int not null, added int not null, items_new int not null default 0,
    items_same int not null default 0, items_changed int not null default 0, stale int[]
  ) with (${CHURNS});
`

/** One row per task in the columns of a classic work queue, for people to query with SQL. */
export const VIEW = `
  create view sluice.url_work_queue as
  with task as (
    select q.run_id, r.seq, r.url, r.url_hash, q.weight, 'pending' as status, null::text as worker_id, null::bigint as claimed_ms,
      null::bigint as completed_ms, r.attempts, null::text as error, r.created_ms
    from sluice.ready r join sluice.queue q on q.id = r.queue_id
    union all
    select r.run_id, r.seq, r.url, r.url_hash, q.weight, 'pending', null, null, null, r.attempts, null, r.created_ms
    from sluice.delayed r join sluice.queue q on q.id = r.queue_id
    union all
    select r.run_id, r.seq, r.url, r.url_hash, q.weight, 'pending', null, null, null, r.attempts, null, r.created_ms
    from sluice.suspect r join sluice.queue q on q.id = r.queue_id
    union all
    select r.run_id, r.seq, r.url, r.url_hash, q.weight, 'claimed', r.worker_id, r.claimed_ms, null, r.attempts, null, r.created_ms
    from sluice.inflight r join sluice.queue q on q.id = r.queue_id
    union all
    select r.run_id, r.seq, r.url, r.url_hash, q.weight, 'completed', r.worker_id, r.claimed_ms, r.completed_ms, r.attempts, null,
      r.created_ms
    from sluice.done r join sluice.queue q on q.id = r.queue_id
    union all
    select r.run_id, r.seq, r.url, r.url_hash, q.weight, 'failed', r.worker_id, null, r.died_ms, r.attempts,
      r.error::json ->> 'message', r.created_ms
    from sluice.dead r join sluice.queue q on q.id = r.queue_id
  )
  select t.seq as id, run.name as run_id, scraper.value as scraper_name, t.url, encode(t.url_hash, 'hex') as url_hash,
    0 - t.weight as priority, t.status, t.worker_id, to_timestamp(t.claimed_ms / 1000.0) as claimed_at,
    to_timestamp(t.completed_ms / 1000.0) as completed_at, t.attempts as retry_count,
    coalesce(retries.value::int, 3) as max_retries, t.error as error_message, to_timestamp(t.created_ms / 1000.0) as created_at
  from task t join sluice.run on run.run_id = t.run_id
  left join sluice.meta scraper on scraper.run_id = t.run_id and scraper.name = 'scraper'
  left join sluice.meta retries on retries.run_id = t.run_id and retries.name = 'retries';
`
