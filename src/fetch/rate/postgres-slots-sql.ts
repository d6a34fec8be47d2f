/** The tables and statements of the fleet slots in PostgreSQL. */
import type { SlotPool } from './postgres-slots.ts'

/** Lock for the transaction that creates the tables: two workers that start together must not create them twice. */
const LOCK = 7_215_483_001

/**
 * `tat_ms`: when the next request would start if they came evenly, by the database's clock. `gap_ms`, `taken`, `now_ms`: from the
 * latest call (stored because RETURNING sees new values only). `pause_ms`: the intended length of the pause.
 *
 * Unlogged: nothing here outlives a minute or a Retry-After, and a commit need not wait for the disk. A server crash empties the
 * tables; the workers still know the pauses they have met. Half-empty pages keep the many updates of one row in place.
 */
const TABLES = `
  SELECT pg_advisory_xact_lock(${LOCK});
  CREATE SCHEMA IF NOT EXISTS sluice;
  CREATE UNLOGGED TABLE IF NOT EXISTS sluice.host_slot (
    host text PRIMARY KEY,
    tat_ms float8 NOT NULL DEFAULT 0,
    gap_ms float8 NOT NULL DEFAULT 0,
    early_ms float8 NOT NULL DEFAULT 0,
    taken int NOT NULL DEFAULT 0,
    now_ms float8 NOT NULL DEFAULT 0,
    paused_until_ms float8 NOT NULL DEFAULT 0,
    pause_ms float8 NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
  CREATE UNLOGGED TABLE IF NOT EXISTS sluice.slot_worker (
    id uuid PRIMARY KEY,
    seen_at timestamptz NOT NULL
  )`

/** Creates the tables if they are missing; a user without the right to create tables needs none once they exist. */
export async function prepareSlotTables(pool: SlotPool): Promise<void> {
  const known = `SELECT to_regclass('sluice.host_slot') IS NOT NULL AND to_regclass('sluice.slot_worker') IS NOT NULL AS ok`
  const { rows } = await pool.query<{ ok: boolean }>(known)
  if (rows[0]?.ok !== true) await pool.query(TABLES) // without parameters it is one transaction
}

const CLOCK = 'extract(epoch FROM clock_timestamp())::float8 * 1000'

/** The number of workers, sent with every answer in case it is the last. One not seen for 20 s has ended, or starts nothing. */
const WORKERS = `(SELECT count(*)::int FROM sluice.slot_worker WHERE seen_at > clock_timestamp() - interval '20 s') AS workers`

/**
 * $1 hosts, $2 intervals, $3 earliness, $4 counts, $5 horizon. Hands out the starts within the horizon, at most as many as
 * requested. The clock is read once, after the row is locked. A `tat_ms` or a pause further away than it can have been set comes
 * from a clock that was set back, and is cut to the largest possible value.
 */
export const TAKE = `
  INSERT INTO sluice.host_slot AS slot (host, gap_ms, early_ms, taken, now_ms, tat_ms)
  SELECT ask.host, ask.gap_ms, ask.early_ms, fresh.taken, clock.ms, clock.ms + fresh.taken * ask.gap_ms
  FROM unnest($1::text[], $2::float8[], $3::float8[], $4::int[]) AS ask (host, gap_ms, early_ms, count)
  CROSS JOIN LATERAL (SELECT ${CLOCK} AS ms) AS clock
  CROSS JOIN LATERAL (
    SELECT least(ask.count, 1 + floor(($5::float8 + ask.early_ms) / ask.gap_ms))::int AS taken
  ) AS fresh
  ORDER BY ask.host
  ON CONFLICT (host) DO UPDATE SET (gap_ms, early_ms, taken, now_ms, tat_ms, paused_until_ms) = (
    SELECT
      CASE WHEN given.taken > 0 THEN excluded.gap_ms ELSE slot.gap_ms END,
      excluded.early_ms, given.taken, clock.ms, next.ms + given.taken * excluded.gap_ms, pause.until_ms
    FROM (SELECT ${CLOCK} AS ms) AS clock
    CROSS JOIN LATERAL (
      SELECT greatest(clock.ms, least(slot.tat_ms, clock.ms + $5::float8 + slot.gap_ms + slot.early_ms)) AS ms
    ) AS next
    CROSS JOIN LATERAL (SELECT least(slot.paused_until_ms, clock.ms + slot.pause_ms) AS until_ms) AS pause
    CROSS JOIN LATERAL (
      SELECT CASE
        WHEN pause.until_ms > clock.ms OR next.ms - excluded.early_ms > clock.ms + $5::float8 THEN 0
        ELSE least(excluded.taken, 1 + floor((clock.ms + $5::float8 + excluded.early_ms - next.ms) / excluded.gap_ms))::int
      END AS taken
    ) AS given
  )
  RETURNING
    host, taken, tat_ms - taken * gap_ms - now_ms AS wait_ms, greatest(0, paused_until_ms - now_ms) AS paused_ms, ${WORKERS}`

/** $1 hosts, for those without a rate. A pause that a changed clock made longer is cut permanently, as in `TAKE`. */
export const LOOK = `
  WITH cut AS (
    UPDATE sluice.host_slot SET paused_until_ms = ${CLOCK} + pause_ms
    WHERE host = ANY ($1::text[]) AND paused_until_ms > ${CLOCK} + pause_ms
  )
  SELECT
    host, 0 AS taken, 0::float8 AS wait_ms, greatest(0, least(paused_until_ms - clock.ms, pause_ms)) AS paused_ms, ${WORKERS}
  FROM sluice.host_slot CROSS JOIN (SELECT ${CLOCK} AS ms) AS clock
  WHERE host = ANY ($1::text[])`

/** $1 hosts, $2 durations. */
export const PAUSE = `
  INSERT INTO sluice.host_slot AS slot (host, paused_until_ms, pause_ms)
  SELECT ask.host, clock.ms + ask.pause_ms, ask.pause_ms
  FROM unnest($1::text[], $2::float8[]) AS ask (host, pause_ms) CROSS JOIN (SELECT ${CLOCK} AS ms) AS clock
  ORDER BY ask.host
  ON CONFLICT (host) DO UPDATE SET paused_until_ms = excluded.paused_until_ms, pause_ms = excluded.pause_ms
  WHERE slot.paused_until_ms < excluded.paused_until_ms`

/** $1 our worker ID. */
export const MEET = `
  INSERT INTO sluice.slot_worker (id, seen_at) VALUES ($1::uuid, clock_timestamp())
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`

export const LEAVE = 'DELETE FROM sluice.slot_worker WHERE id = $1::uuid'

/** Deletes rows that expired ten minutes ago. */
export const CLEAN = `
  WITH gone AS (DELETE FROM sluice.slot_worker WHERE seen_at < clock_timestamp() - interval '10 min')
  DELETE FROM sluice.host_slot
  WHERE greatest(tat_ms, paused_until_ms) < extract(epoch FROM clock_timestamp() - interval '10 min') * 1000`
