/**
 * The commit, on the server: outcomes leave `inflight` only with the token of their lease; tasks and items of stale outcomes are
 * left out; then tasks, then items, all in one transaction. A repeated commit gets the answer of the first one.
 */
import { TASK_ARGUMENTS, TASK_PARAMETERS } from './admit-sql.ts'
import { BY_KEY, LOCKS, NOW, SUM_OF_COUNTS } from './functions.ts'
import { BODY } from './schema.ts'

/**
 * The leases that a commit removes from `inflight`: by task number, which is unique there, and by claim number, which is the
 * fencing token. `p_seqs` are ascending, so the index in the arrays is found by binary search; `p_nos` are the indexes in the
 * list of all outcomes, which identify stale ones.
 */
const GONE = `
      delete from sluice.inflight i where i.seq = any(p_seqs) and i.lease_id = p_leases[width_bucket(i.seq, p_seqs)]
      returning i.*, width_bucket(i.seq, p_seqs) as n`

const SETTLE = `
  create function sluice.settle_done(p_now bigint, p_nos int[], p_leases bigint[], p_seqs bigint[]) returns int[]
  language plpgsql ${BY_KEY} as $$
  declare
    v_settled int[];
  begin
    with gone as (${GONE}
    ), kept as (
      insert into sluice.done (completed_ms, claimed_ms, run_id, losses, worker_id, ${BODY})
        select p_now, claimed_ms, run_id, losses, worker_id, ${BODY} from gone
    )
    select array_agg(p_nos[n]) into v_settled from gone;
    return v_settled;
  end $$;

  create function sluice.settle_again(
    p_now bigint, p_nos int[], p_leases bigint[], p_seqs bigint[], p_delays bigint[], p_tries int[],
    out settled int[], out queues int[]
  ) language plpgsql ${BY_KEY} as $$
  begin
    with gone as (${GONE}
    ), counted as (
      select queue_id, seq, created_ms, depth, attempts + p_tries[n] as attempts, url_hash, url, route, data, session,
        run_id, losses, p_delays[n] as delay from gone
    ), later as (
      insert into sluice.delayed (run_id, at_ms, losses, ${BODY}) select run_id, p_now + delay, losses, ${BODY} from counted where delay > 0
    ), alone as (
      insert into sluice.suspect (run_id, losses, ${BODY})
        select run_id, losses, ${BODY} from counted where delay <= 0 and losses > 0 order by seq
    ), now as (
      insert into sluice.ready (${BODY}) select ${BODY} from counted where delay <= 0 and losses = 0 returning queue_id
    )
    select (select array_agg(p_nos[n]) from gone), (select array_agg(distinct queue_id) from now) into settled, queues;
  end $$;

  create function sluice.settle_dead(
    p_now bigint, p_nos int[], p_leases bigint[], p_seqs bigint[], p_hosts text[], p_codes text[], p_classes text[],
    p_causes text[], p_errors text[], p_snapshots text[]
  ) returns int[] language plpgsql ${BY_KEY} as $$
  declare
    v_settled int[];
  begin
    with gone as (${GONE}
    ), kept as (
      insert into sluice.dead (died_ms, run_id, losses, host, worker_id, code, class, cause, error, snapshot,
          queue_id, seq, created_ms, depth, attempts, url_hash, url, route, data, session)
        select p_now, run_id, losses, p_hosts[n], worker_id, p_codes[n], p_classes[n], p_causes[n], p_errors[n], p_snapshots[n],
          queue_id, seq, created_ms, depth, attempts + 1, url_hash, url, route, data, session from gone order by p_nos[n]
    )
    select array_agg(p_nos[n]) into v_settled from gone;
    return v_settled;
  end $$;
`

/**
 * Items of one run are numbered without gaps, in the order in which their commits become visible: a commit with new items holds
 * the run's lock from the numbering to the end of its transaction, and takes no other lock after it.
 */
const ACCEPT = `
  create function sluice.accept_items(
    p_run int, p_keys text[], p_contents text[], p_jsons text[], out items_new int, out items_same int, out items_changed int
  ) language plpgsql ${BY_KEY} as $$
  declare
    v_hashes bytea[];
    v_equal int;
  begin
    select array_agg(sha256(convert_to(k, 'UTF8')) order by n) into v_hashes from unnest(p_keys) with ordinality u(k, n);
    items_new := 0;
    if exists (
      select 1 from unnest(v_hashes) h where (select i.seq from sluice.item i where i.run_id = p_run and i.key_hash = h) is null
    ) then
      perform pg_advisory_xact_lock(${LOCKS.items}, p_run);
      insert into sluice.item (run_id, seq, key_hash, key, content, json)
        select p_run, coalesce((select max(i.seq) from sluice.item i where i.run_id = p_run), 0) + row_number() over (order by f.n),
          f.hash, f.key, f.content, f.json
        from (
          select distinct on (u.hash) u.* from unnest(v_hashes, p_keys, p_contents, p_jsons) with ordinality u(hash, key, content, json, n)
          where (select i.seq from sluice.item i where i.run_id = p_run and i.key_hash = u.hash) is null
          order by u.hash, u.n
        ) f;
      get diagnostics items_new = row_count;
    end if;
    items_same := 0;
    items_changed := 0;
    if items_new < cardinality(p_keys) then
      select count(*) into v_equal from unnest(v_hashes, p_contents) u(hash, content)
        where u.content = (select i.content from sluice.item i where i.run_id = p_run and i.key_hash = u.hash);
      items_same := v_equal - items_new;
      items_changed := cardinality(p_keys) - v_equal;
    end if;
  end $$;
`

export const COMMIT = `
  ${SETTLE}
  ${ACCEPT}
  create function sluice.commit(
    p_run int, p_op bigint, p_repeat boolean, p_forget bigint[], p_now bigint,
    p_done_nos int[], p_done_leases bigint[], p_done_seqs bigint[],
    p_again_nos int[], p_again_leases bigint[], p_again_seqs bigint[], p_again_delays bigint[], p_again_tries int[],
    p_dead_nos int[], p_dead_leases bigint[], p_dead_seqs bigint[], p_hosts text[], p_codes text[], p_classes text[], p_causes text[],
    p_errors text[], p_snapshots text[],
    p_task_nos int[], ${TASK_PARAMETERS}, p_open int[],
    p_item_nos int[], p_item_keys text[], p_item_contents text[], p_item_jsons text[],
    p_counts jsonb, p_count_nos int[], p_count_each text[],
    out added int, out items_new int, out items_same int, out items_changed int, out stale int[], out backlog bigint
  ) language plpgsql ${BY_KEY} as $$
  declare
    v_now bigint := ${NOW};
    v_done int[]; v_again int[]; v_dead int[]; v_open int[];
    v_done_count int; v_again_count int; v_dead_count int;
  begin
    perform pg_advisory_xact_lock(p_op);
    if p_repeat then
      select a.added, a.items_new, a.items_same, a.items_changed, a.stale into added, items_new, items_same, items_changed, stale
        from sluice.answer a where a.op = p_op;
      if found then
        backlog := sluice.backlog(p_run);
        return;
      end if;
    end if;

    if p_done_nos is not null then v_done := sluice.settle_done(v_now, p_done_nos, p_done_leases, p_done_seqs); end if;
    if p_again_nos is not null then
      select s.settled, s.queues into v_again, v_open
        from sluice.settle_again(v_now, p_again_nos, p_again_leases, p_again_seqs, p_again_delays, p_again_tries) s;
    end if;
    if p_dead_nos is not null then
      v_dead := sluice.settle_dead(v_now, p_dead_nos, p_dead_leases, p_dead_seqs, p_hosts, p_codes, p_classes, p_causes, p_errors, p_snapshots);
    end if;
    v_done_count := coalesce(cardinality(v_done), 0);
    v_again_count := coalesce(cardinality(v_again), 0);
    v_dead_count := coalesce(cardinality(v_dead), 0);
    if v_done_count < coalesce(cardinality(p_done_nos), 0) or v_again_count < coalesce(cardinality(p_again_nos), 0)
      or v_dead_count < coalesce(cardinality(p_dead_nos), 0) then
      select array_agg(n) into stale from unnest(p_done_nos || p_again_nos || p_dead_nos) n
        where n <> all(coalesce(v_done || v_again || v_dead, '{}'));
      select array_agg(t.url order by t.at), array_agg(t.key order by t.at), array_agg(t.queue order by t.at), array_agg(t.route order by t.at),
          array_agg(t.depth order by t.at), array_agg(t.data order by t.at), array_agg(t.session order by t.at),
          case when p_delays is not null then array_agg(t.delay order by t.at) end
        into p_urls, p_keys, p_queues, p_routes, p_depths, p_datas, p_sessions, p_delays
      from unnest(p_task_nos, p_urls, p_keys, p_queues, p_routes, p_depths, p_datas, p_sessions, p_delays) with ordinality
        t(n, url, key, queue, route, depth, data, session, delay, at)
      where t.n = any(v_done);
      select array_agg(i.key order by i.at), array_agg(i.content order by i.at), array_agg(i.json order by i.at)
        into p_item_keys, p_item_contents, p_item_jsons
      from unnest(p_item_nos, p_item_keys, p_item_contents, p_item_jsons) with ordinality i(n, key, content, json, at)
      where i.n = any(v_done);
      -- The client has added up what all outcomes count, so that only a commit with stale ones pays for doing it here.
      p_counts := ${SUM_OF_COUNTS(`(
        select u.counts::jsonb as counts from unnest(p_count_nos, p_count_each) u(n, counts) where u.n = any(v_done || v_again || v_dead))`)};
    end if;

    added := case when p_urls is null then 0 else sluice.admit(p_run, v_now, ${TASK_ARGUMENTS}) end;
    if added > 0 then v_open := v_open || p_open; end if;
    if v_open is not null then perform sluice.open_queues(v_open); end if;
    if p_item_keys is null then
      items_new := 0; items_same := 0; items_changed := 0;
    else
      select a.items_new, a.items_same, a.items_changed into items_new, items_same, items_changed
        from sluice.accept_items(p_run, p_item_keys, p_item_contents, p_item_jsons) a;
    end if;
    if items_changed > 0 then p_counts := coalesce(p_counts, '{}') || jsonb_build_object('items.changed', items_changed); end if;
    with forgotten as (
      delete from sluice.answer where op = any(p_forget)
    ), counted as (
      insert into sluice.tally (run_id, pending, claimed, completed, failed, dead, counts)
        select p_run, added + v_again_count, -v_done_count - v_again_count - v_dead_count, v_done_count, v_dead_count, v_dead_count, p_counts
        where v_done_count + v_again_count + v_dead_count > 0
    )
    insert into sluice.answer (op, run_id, added, items_new, items_same, items_changed, stale)
      values (p_op, p_run, added, items_new, items_same, items_changed, stale);
    backlog := sluice.backlog(p_run);
  end $$;
`
