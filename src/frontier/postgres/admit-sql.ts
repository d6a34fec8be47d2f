/** Adding tasks, on the server. */
import { BY_HASH, BY_KEY, NOW } from './functions.ts'

/** Parameters for tasks, whatever their origin. An array is null if no task has such a value. */
export const TASK_PARAMETERS = `
    p_urls text[], p_keys text[], p_queues int[], p_routes text[], p_depths int[], p_datas text[], p_sessions text[],
    p_delays bigint[]`
export const TASK_ARGUMENTS = 'p_urls, p_keys, p_queues, p_routes, p_depths, p_datas, p_sessions, p_delays'

// Sorted by hash: without the order, 7 of 160 overlapping batches of 1,000 deadlocked.
const FRESH = `
    with input as materialized (
      select distinct on (hash) t.*, sha256(convert_to(coalesce(t.key, t.url), 'UTF8')) as hash
      from unnest(p_urls, p_keys, p_queues, p_routes, p_depths, p_datas, p_sessions, p_delays) with ordinality
        t(url, key, queue, route, depth, data, session, delay, n)
      order by hash, n
    ), fresh as (
      insert into sluice.seen (run_id, url_hash) select p_run, hash from input on conflict do nothing returning url_hash
    )`
const BODY_OF_INPUT = 'queue, p_now, depth, 0, hash, url, route, data, session'
const COLUMNS = 'seq, queue_id, created_ms, depth, attempts, url_hash, url, route, data, session'

export const ADMIT = `
  -- The caller opens the queues afterwards.
  create function sluice.admit(p_run int, p_now bigint, ${TASK_PARAMETERS}) returns int language plpgsql ${BY_HASH} as $$
  declare
    v_added int;
  begin
    if p_delays is null then
      ${FRESH}
      insert into sluice.ready (${COLUMNS})
        select nextval('sluice.task_seq'), ${BODY_OF_INPUT}
        from (select i.* from fresh f join input i on i.hash = f.url_hash order by i.n) i;
      get diagnostics v_added = row_count;
    else
      ${FRESH}, numbered as materialized (
        select nextval('sluice.task_seq') as seq, i.* from (select i.* from fresh f join input i on i.hash = f.url_hash order by i.n) i
      ), now as (
        insert into sluice.ready (${COLUMNS}) select seq, ${BODY_OF_INPUT} from numbered where coalesce(delay, 0) <= 0
      ), later as (
        insert into sluice.delayed (run_id, at_ms, losses, ${COLUMNS})
          select p_run, p_now + delay, 0, seq, ${BODY_OF_INPUT} from numbered where delay > 0
      )
      select count(*) into v_added from numbered;
    end if;
    return v_added;
  end $$;

  create function sluice.add(p_run int, p_op bigint, p_repeat boolean, p_forget bigint[], p_now bigint, ${TASK_PARAMETERS}, p_open int[])
  returns int language plpgsql ${BY_KEY} as $$
  declare
    v_added int;
  begin
    perform pg_advisory_xact_lock(p_op);
    if p_repeat then
      select a.added into v_added from sluice.answer a where a.op = p_op;
      if found then return v_added; end if;
    end if;
    if p_forget is not null then delete from sluice.answer where op = any(p_forget); end if;
    v_added := sluice.admit(p_run, ${NOW}, ${TASK_ARGUMENTS});
    if v_added > 0 then
      perform sluice.open_queues(p_open);
      insert into sluice.tally (run_id, pending) values (p_run, v_added);
    end if;
    insert into sluice.answer (op, run_id, added) values (p_op, p_run, v_added);
    return v_added;
  end $$;
`
