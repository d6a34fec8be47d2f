/** Heartbeats, and the sweep of leases of lost workers, on the server. */
import { BY_KEY, NOW } from './functions.ts'
import { BODY } from './schema.ts'

/** Leases swept in one transaction. */
export const SWEEP_MAX = 1000

export const SWEEP = `
  -- The numbers of the tasks that are still held; p_seqs ascending.
  create function sluice.extend(p_now bigint, p_lease_ms bigint, p_leases bigint[], p_seqs bigint[]) returns bigint[]
  language plpgsql ${BY_KEY} as $$
  declare
    v_now bigint := ${NOW};
    v_held bigint[];
  begin
    with held as (
      update sluice.inflight i set expires_ms = v_now + p_lease_ms
      where i.seq = any(p_seqs) and i.lease_id = p_leases[width_bucket(i.seq, p_seqs)] returning i.seq
    )
    select array_agg(seq) into v_held from held;
    return v_held;
  end $$;

  -- p_error has a 0 in place of the number of losses.
  create function sluice.sweep(
    p_run int, p_now bigint, p_is_all boolean, p_workers text[], p_losses_max int, p_code text, p_class text, p_cause text, p_error text,
    out returned int, out died int
  ) language plpgsql ${BY_KEY} as $$
  declare
    v_now bigint := ${NOW};
  begin
    with lost as materialized (
      select i.ctid as tid from sluice.inflight i
      where i.run_id = p_run and (i.expires_ms <= v_now or p_is_all or i.worker_id = any(p_workers))
      order by i.seq limit ${SWEEP_MAX} for update skip locked
    ), gone as (
      delete from sluice.inflight i using lost where i.ctid = lost.tid returning i.*
    ), alone as (
      insert into sluice.suspect (run_id, losses, ${BODY})
        select run_id, losses + 1, ${BODY} from gone where losses < p_losses_max order by seq returning 1
    ), kept as (
      insert into sluice.dead (died_ms, run_id, losses, host, worker_id, code, class, cause, error, ${BODY})
        select v_now, g.run_id, g.losses + 1, (select q.host from sluice.queue q where q.id = g.queue_id), g.worker_id, p_code, p_class, p_cause,
          replace(p_error, ' 0 ', ' ' || (g.losses + 1) || ' '), g.queue_id, g.seq, g.created_ms, g.depth, g.attempts, g.url_hash,
          g.url, g.route, g.data, g.session
        from gone g where g.losses >= p_losses_max order by g.seq
        returning 1
    )
    select (select count(*) from alone), (select count(*) from kept) into returned, died;
    if returned + died > 0 then
      insert into sluice.tally (run_id, pending, claimed, failed, dead) values (p_run, returned, -returned - died, died, died);
    end if;
  end $$;
`
