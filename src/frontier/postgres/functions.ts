/**
 * What all our PL/pgSQL functions have in common. One call is one round trip and one transaction, so they work through a pooler
 * in transaction mode; their plans are cached on the server without a prepared statement on the client.
 *
 * A plan is made once per connection, often while the tables are still empty, and must also be right for five million rows and a
 * million dead ones. So no plan may depend on statistics: it is generic, and there is only one way to execute it. Tables are
 * never joined with each other or with the caller's input, because the planner may reverse such a join and scan the whole index
 * (30–100 ms a commit while a snapshot was held). Rows are looked up by `= any(array)`, by a scalar subquery, by a lateral
 * subquery with a limit, or by ctid; the two costs below make a ctid lookup cheaper than any scan, however small the table.
 */
export const BY_KEY = `
  set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on set random_page_cost = 0.001
  set cpu_operator_cost = 0.1`

/** The same for statements that join two inputs from the caller, thousands of rows each. */
export const BY_HASH = `
  set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = on set enable_mergejoin = off set enable_nestloop = off`

/** The current time, by the clock of the database unless a test passes its own. */
export const NOW = 'coalesce(p_now, (extract(epoch from clock_timestamp()) * 1000)::bigint)'

/** Sums the JSON counters in the rows of a table or query; null if there are none. */
export const SUM_OF_COUNTS = (rows: string) => `(
        select jsonb_object_agg(c.name, c.sum) from (
          select e.key as name, sum(e.value::int8) as sum from ${rows} r cross join lateral jsonb_each_text(r.counts) e group by e.key
        ) c)`

/** First keys of our advisory locks, all of them held only until the end of a transaction. */
export const LOCKS = {
  runs: 0x534c_0002,
  items: 0x534c_0003,
  fold: 0x534c_0004,
  queues: 0x534c_0005,
} as const

export const HELPERS = `
  -- After its rows are in ready. Waits for a claim that is closing one of them, and opens it again.
  create function sluice.open_queues(p_queues int[]) returns void language plpgsql ${BY_KEY} as $$
  begin
    if (select bool_or(not is_open) from (select is_open from sluice.queue where id = any(p_queues) order by id for key share) q) then
      perform 1 from sluice.queue where id = any(p_queues) and not is_open order by id for no key update;
      update sluice.queue set is_open = true where id = any(p_queues) and not is_open;
    end if;
  end $$;

  create function sluice.fold(p_run int) returns void language plpgsql ${BY_KEY} as $$
  begin
    if not pg_try_advisory_xact_lock(${LOCKS.fold}, p_run) then return; end if;
    with gone as (delete from sluice.tally where run_id = p_run returning *)
    insert into sluice.tally (run_id, pending, claimed, completed, failed, dead, counts)
      select p_run, sum(pending), sum(claimed), sum(completed), sum(failed), sum(dead), ${SUM_OF_COUNTS('gone')}
      from gone having count(*) > 0;
  end $$;

  -- The numbers of queues, in the order of their names; makes those that are new.
  create function sluice.queues(p_run int, p_hosts text[], p_lanes text[], p_weights float8[]) returns table (id int)
  language plpgsql ${BY_KEY} as $$
  begin
    -- One at a time: in the order of the caller two would deadlock, and sorted the hosts would not be served as they came.
    perform pg_advisory_xact_lock(${LOCKS.queues}, p_run);
    insert into sluice.queue (run_id, class, lane, weight, host)
      select p_run, case when n.lane = 'manual' then 0 when n.lane = 'priority' then 1 when n.lane = 'files' or n.lane like 'files@%' then 3 else 2 end, n.lane, n.weight, n.host
      from unnest(p_hosts, p_lanes, p_weights) with ordinality n(host, lane, weight, at)
      where (select q.id from sluice.queue q
        where q.run_id = p_run and q.host = n.host and q.lane = n.lane and q.weight = n.weight) is null
      order by n.at;
    return query select (
        select q.id from sluice.queue q where q.run_id = p_run and q.host = n.host and q.lane = n.lane and q.weight = n.weight)
      from unnest(p_hosts, p_lanes, p_weights) with ordinality n(host, lane, weight, at) order by n.at;
  end $$;
`
