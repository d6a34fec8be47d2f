/**
 * Tables of a `sqlite:` frontier. Location is state: a task's number is in exactly one of ready, delayed, suspect, inflight or
 * dead, or the task is finished and only its hash in `seen` is left. No row is marked, so none has to be skipped: a claim costs
 * the same after a thousand tasks and after a million.
 *
 *   seen ──▶ task + ready ──claim──▶ task + inflight ──done──▶ (counted)
 *                ▲  delayed ◀─retry/postpone─┤ │
 *                └── suspect ◀───────sweep───┘ └──▶ dead (whole row)
 */

/** 'SLCF': distinguishes our files from other databases. */
export const APPLICATION_ID = 0x534c4346

/** One entry per version, run in order; `PRAGMA user_version` counts those applied to a file. Never edit a released one. */
export const MIGRATIONS: readonly string[] = [
  `
  -- Insert only. 32 bytes of SHA-256 are the whole row: 1,000,000 take 41 MB.
  create table seen (hash blob primary key) strict, without rowid;

  -- One per lane, priority and host, kept for good, so that its number can be cached. weight = -priority: the order is
  -- ascending throughout. turn is null while nothing is ready.
  create table queue (
    id integer primary key, lane text not null, weight real not null, host text not null,
    turn integer, ready integer not null default 0, pending integer not null default 0, size integer not null default 0
  ) strict;
  create unique index queue_name on queue (host, lane, weight);
  create index queue_turn on queue (lane, weight, turn) where turn is not null;
  create index queue_size on queue (size desc) where size > 0;

  -- The body of every task that is neither finished nor dead; its number is its age.
  create table task (
    seq integer primary key, id blob not null, queue integer not null, url text not null, route text not null, data text,
    depth integer not null, session text, attempts integer not null default 0, losses integer not null default 0
  ) strict;

  create table ready (queue integer not null, seq integer not null, primary key (queue, seq)) strict, without rowid;
  create table delayed (seq integer primary key, at_ms integer not null) strict;
  create index delayed_at on delayed (at_ms);
  create table suspect (turn integer primary key autoincrement, seq integer not null, queue integer not null) strict;

  -- As small as the work in hand: expiry and worker are scanned, not indexed.
  create table inflight (
    seq integer primary key, queue integer not null, lease integer not null, worker text not null,
    expires_ms integer not null, alone integer not null
  ) strict;

  create table dead (
    turn integer primary key autoincrement, seq integer not null, id blob not null unique, queue integer not null,
    url text not null, route text not null, data text, depth integer not null, session text,
    attempts integer not null, losses integer not null, host text not null, code text not null, class text not null,
    cause text not null, error text not null, died_ms integer not null, snapshot text
  ) strict;

  create table item_key (hash blob primary key, content text not null) strict, without rowid;
  create table item_log (seq integer primary key, key text not null, json text not null) strict;
  create table sink_position (sink text primary key, position text not null) strict, without rowid;
  create table meta (name text primary key, value text not null) strict, without rowid;
  create table lane (name text primary key, pending integer not null, claimed integer not null) strict, without rowid;

  -- One row: every writer holds the write lock anyway, so one hot row costs nothing here.
  create table totals (
    pending integer not null, claimed integer not null, completed integer not null, failed integer not null,
    dead integer not null, seen integer not null, items integer not null, backlog integer not null,
    suspects integer not null, last_turn integer not null, last_lease integer not null, confirmed integer not null,
    pause_reason text
  ) strict;
  insert into totals values (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null);
  `,
  `
  create table counter (name text primary key, value integer not null) strict, without rowid;
  `,
]
