/** Many runs share one database. The permanent data of a run has its own partitions, created and dropped with it. */
import type { Pool } from 'pg'
import { ScrapeError } from '../../core/errors.ts'
import { LOCKS } from './functions.ts'

const PARTITIONED = "array['seen', 'done']"

/**
 * Attached, not created as partitions: that would lock out everyone who reads or writes other runs. Dropping one needs that lock,
 * so it waits for it only briefly, and the caller tries again.
 */
export const RUNS = `
  create function sluice.open_run(p_name text) returns int language plpgsql as $$
  declare
    v_run int;
    v_table text;
  begin
    select run_id into v_run from sluice.run where name = p_name;
    if found then return v_run; end if;
    perform pg_advisory_xact_lock(${LOCKS.runs}, 0);
    select run_id into v_run from sluice.run where name = p_name;
    if found then return v_run; end if;
    insert into sluice.run (name) values (p_name) returning run_id into v_run;
    foreach v_table in array ${PARTITIONED} loop
      execute format('create table sluice.%I (like sluice.%I including all)', v_table || '_' || v_run, v_table);
      execute format('alter table sluice.%I attach partition sluice.%I for values in (%s)', v_table, v_table || '_' || v_run, v_run);
    end loop;
    return v_run;
  end $$;

  create function sluice.drop_run(p_name text) returns boolean language plpgsql set lock_timeout = '500ms' as $$
  declare
    v_run int;
    v_table text;
  begin
    perform pg_advisory_xact_lock(${LOCKS.runs}, 0);
    delete from sluice.run where name = p_name returning run_id into v_run;
    if not found then return false; end if;
    foreach v_table in array ${PARTITIONED} loop
      execute format('drop table sluice.%I', v_table || '_' || v_run);
    end loop;
    delete from sluice.ready where queue_id in (select id from sluice.queue where run_id = v_run);
    foreach v_table in array array['queue', 'delayed', 'suspect', 'inflight', 'dead', 'item', 'item_mark', 'tally', 'answer', 'meta'] loop
      execute format('delete from sluice.%I where run_id = $1', v_table) using v_run;
    end loop;
    return true;
  end $$;
`

const LOCK_NOT_AVAILABLE = '55P03'
const TRIES_MAX = 20

/** Deletes a run with everything it has seen, done and emitted. False if there is no run of that name. */
export async function dropRun(pool: Pool, name: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { rows } = await pool.query({ text: 'select sluice.drop_run($1)', values: [name], rowMode: 'array' })
      return rows[0]![0] as boolean
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
      if (attempt === TRIES_MAX) {
        throw new ScrapeError('E_SERVICE', `the run ${name} cannot be dropped: its tables are being read`, {
          cause: error,
          fix: 'Wait for the long query or backup on this database to end, then try again.',
        })
      }
    }
  }
}
