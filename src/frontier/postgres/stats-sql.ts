/** Stats, on the server. */
import { RUN_GONE } from '../../drivers/postgres/database.ts'
import { BY_HASH, BY_KEY, NOW, SUM_OF_COUNTS } from './functions.ts'

const HOSTS_MAX = 50

export const STATS = `
  -- Exact, of one moment, and as cheap with five million tasks as with five: sums of the few tallies not yet folded.
  create function sluice.totals(
    p_run int, out pending bigint, out claimed bigint, out completed bigint, out failed bigint, out dead bigint, out items bigint,
    out is_paused boolean, out pause_reason text, out counts jsonb
  ) language plpgsql ${BY_KEY} as $$
  begin
    with tallied as materialized (select * from sluice.tally t where t.run_id = p_run)
    select t.pending, t.claimed, t.completed, t.failed, t.dead,
      coalesce((select max(i.seq) from sluice.item i where i.run_id = p_run), 0), r.pause_reason is not null, r.pause_reason, t.counts
      into pending, claimed, completed, failed, dead, items, is_paused, pause_reason, counts
    from sluice.run r cross join (
      select coalesce(sum(t.pending), 0) as pending, coalesce(sum(t.claimed), 0) as claimed, coalesce(sum(t.completed), 0) as completed,
        coalesce(sum(t.failed), 0) as failed, coalesce(sum(t.dead), 0) as dead, ${SUM_OF_COUNTS('tallied')} as counts
      from tallied t
    ) t where r.run_id = p_run;
    if not found then raise exception 'the run is gone' using errcode = '${RUN_GONE}'; end if;
  end $$;

  -- Counted over the tables, queue by queue, whatever other runs have; what: 'lane' or 'host'.
  create function sluice.breakdown(p_run int) returns table (what text, name text, pending bigint, claimed bigint)
  language plpgsql ${BY_HASH} as $$
  begin
    return query
    with counted as (
      select q.id as queue_id, r.n as pending, 0 as claimed
        from sluice.queue q cross join lateral (select count(*) as n from sluice.ready y where y.queue_id = q.id) r
        where q.run_id = p_run and q.is_open
      union all select queue_id, count(*), 0 from sluice.delayed where run_id = p_run group by queue_id
      union all select queue_id, count(*), 0 from sluice.suspect where run_id = p_run group by queue_id
      union all select queue_id, 0, count(*) from sluice.inflight where run_id = p_run group by queue_id
    ), summed as (
      select queue_id, sum(c.pending)::bigint as pending, sum(c.claimed)::bigint as claimed from counted c group by queue_id
    ), queues as materialized (
      select q.lane, q.host, coalesce(s.pending, 0) as pending, coalesce(s.claimed, 0) as claimed
      from sluice.queue q left join summed s on s.queue_id = q.id where q.run_id = p_run
    )
    select 'lane', q.lane, sum(q.pending)::bigint, sum(q.claimed)::bigint from queues q group by q.lane
    union all (
      select 'host', q.host, sum(q.pending)::bigint, sum(q.claimed)::bigint from queues q where q.pending + q.claimed > 0
      group by q.host order by 3 desc, 2 limit ${HOSTS_MAX}
    );
  end $$;

  -- In milliseconds from now: the first time at which something waiting is due or a lease runs out.
  create function sluice.next_due(p_run int, p_now bigint) returns bigint language plpgsql ${BY_KEY} as $$
  begin
    return least(
      (select min(d.at_ms) from sluice.delayed d where d.run_id = p_run),
      (select min(i.expires_ms) from sluice.inflight i where i.run_id = p_run)
    ) - ${NOW};
  end $$;
`
