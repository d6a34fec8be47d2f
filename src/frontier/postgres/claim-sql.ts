/**
 * The claim, on the server: promotes due tasks, gives a suspect to a worker without leases, else deals tasks out over the open
 * queues of the top priority, then of the next, until there are enough.
 *
 * The client sends what it remembers: the queue of each level that was served last (for round-robin), and for each queue a
 * watermark below which it found nothing (`queue-marks.ts`). Without the watermark a claim wades through the dead index entries
 * of everything claimed since the last vacuum.
 *
 * Returned rows, by `what`: 0 a lease · 1 a queue that got due tasks, from `seq` on · 2 a queue that had less than its share · 3
 * the last row: `queue` is 1 if everything due at `seq` (epoch ms) was promoted, `attempts` is how many ms the search took.
 */
import { RUN_GONE } from '../../drivers/postgres/database.ts'
import { BY_KEY, NOW } from './functions.ts'
import { BODY } from './schema.ts'

/** Maximum number of due tasks that one claim promotes, to bound its time. The rest follow with the next claim. */
const PROMOTE_MAX = 5000

const PROMOTE = `
  create function sluice.promote(p_run int, p_now bigint, p_due_after bigint, out queues int[], out seqs bigint[], out is_all boolean)
  language plpgsql ${BY_KEY} as $$
  declare
    v_count int;
  begin
    with due as materialized (
      select ctid as tid from sluice.delayed where run_id = p_run and at_ms > p_due_after and at_ms <= p_now
      order by at_ms, seq limit ${PROMOTE_MAX} for update skip locked
    ), gone as (
      delete from sluice.delayed d using due where d.ctid = due.tid returning d.*
    ), alone as (
      insert into sluice.suspect (run_id, losses, ${BODY}) select run_id, losses, ${BODY} from gone where losses > 0 order by at_ms, seq
    ), again as (
      insert into sluice.ready (${BODY}) select ${BODY} from gone where losses = 0 returning queue_id, seq
    ), first as (
      select queue_id, min(seq) as seq from again group by queue_id
    )
    select array_agg(queue_id), array_agg(seq), (select count(*) from gone) into queues, seqs, v_count from first;
    is_all := v_count < ${PROMOTE_MAX};
    if queues is not null then perform sluice.open_queues(queues); end if;
  end $$;
`

type By = { column: 'class' | 'lane'; value: string }

/** The next queues of the level in ring order, starting after the one served last. */
const nextQueues = ({ column, value }: By) => `
            select array_agg(c.id), array_agg(least(
                case when p_mark_queues[width_bucket(c.id, p_mark_queues)] = c.id
                  then p_marks[width_bucket(c.id, p_mark_queues)] else 0 end,
                coalesce(v_due_seqs[array_position(v_due_queues, c.id)], ${Number.MAX_SAFE_INTEGER})))
              into v_queues, v_marks
            from (
              (select q.id from sluice.queue q where q.run_id = p_run and q.${column} = ${value} and q.weight = v_weight and q.is_open
                and q.id > v_after and q.host <> all(p_avoid) order by q.id limit v_left)
              union all
              (select q.id from sluice.queue q where q.run_id = p_run and q.${column} = ${value} and q.weight = v_weight and q.is_open
                and q.id > v_after_wrap and q.id <= v_turn and q.host <> all(p_avoid) order by q.id limit v_left)
              limit v_left
            ) c;`

const NEXT_QUEUES = `
            if p_lanes is null then ${nextQueues({ column: 'class', value: 'v_class' })}
            else ${nextQueues({ column: 'lane', value: 'v_group' })}
            end if;`

/** All lanes: lane classes and priorities form one ascending order. Named lanes: one after the other. */
const NEXT_LEVEL = `
          if p_lanes is null then
            select q.class, q.weight into v_class, v_next from sluice.queue q
            where q.run_id = p_run and q.is_open and q.class < 3
              and (q.class, q.weight) > (v_class, v_weight) and q.host <> all(p_avoid)
            order by q.class, q.weight limit 1;
            v_group := v_class::text;
          else
            select q.weight into v_next from sluice.queue q
            where q.run_id = p_run and q.lane = v_group and q.is_open and q.weight > v_weight and q.host <> all(p_avoid)
            order by q.weight limit 1;
          end if;`

const INT_MAX = 2 ** 31 - 1

const LEASES = `
        select 0, i.queue_id, i.seq, i.attempts, i.losses, i.depth, i.url_hash, i.url, i.route, i.data, i.session
        from sluice.inflight i where i.lease_id = p_op`

export const CLAIM = `
  ${PROMOTE}
  create function sluice.claim(
    p_run int, p_op bigint, p_repeat boolean, p_worker text, p_max int, p_lease_ms bigint, p_now bigint, p_due_after bigint,
    p_lanes text[], p_avoid text[], p_turn_groups text[], p_turn_weights float8[], p_turns int[],
    p_mark_queues int[], p_marks bigint[], p_fold boolean
  ) returns table (
    what int, queue int, seq bigint, attempts int, losses int, depth int, url_hash bytea, url text, route text, data text, session text
  ) language plpgsql ${BY_KEY} as $$
  #variable_conflict use_column
  declare
    v_now bigint := ${NOW};
    v_left int := p_max;
    v_is_paused boolean; v_is_due boolean; v_is_alone boolean; v_has_suspects boolean; v_is_busy boolean;
    v_due_queues int[]; v_due_seqs bigint[]; v_is_all_due boolean := true;
    v_groups text[] := coalesce(p_lanes, '{all}');
    v_group text; v_class smallint := 0; v_weight float8; v_next float8; v_turn int;
    v_after int; v_after_wrap int; v_has_more boolean;
    v_queues int[]; v_marks bigint[]; v_full int[]; v_full_marks bigint[];
    v_each int; v_more int; v_count int; v_given int := 0;
    v_short int[]; v_empty int[] := '{}'; v_look_from timestamptz; v_look_ms int;
  begin
    -- Nobody waits for the disk: a claim that a crash of the server undoes is a page fetched twice, and its lease is stale.
    perform pg_advisory_xact_lock(p_op), set_config('synchronous_commit', 'off', true);
    if p_repeat then
      return query ${LEASES};
      if found then return; end if;
    end if;
    select r.pause_reason is not null,
      exists (select 1 from sluice.delayed d where d.run_id = p_run and d.at_ms > p_due_after and d.at_ms <= v_now),
      exists (select 1 from sluice.inflight i where i.run_id = p_run and i.worker_id = p_worker and i.losses > 0),
      exists (select 1 from sluice.suspect s where s.run_id = p_run)
      into v_is_paused, v_is_due, v_is_alone, v_has_suspects
    from sluice.run r where r.run_id = p_run;
    if not found then raise exception 'the run is gone' using errcode = '${RUN_GONE}'; end if;
    if p_fold then perform sluice.fold(p_run); end if;
    if v_is_paused or v_is_alone then return; end if;

    if v_is_due then
      select p.queues, p.seqs, p.is_all into v_due_queues, v_due_seqs, v_is_all_due from sluice.promote(p_run, v_now, p_due_after) p;
      v_has_suspects := v_has_suspects or exists (select 1 from sluice.suspect s where s.run_id = p_run);
    end if;
    if v_has_suspects then
      v_is_busy := exists (select 1 from sluice.inflight i where i.run_id = p_run and i.worker_id = p_worker);
    end if;
    if v_has_suspects and not v_is_busy then
      with pick as materialized (
        select s.ctid as tid from sluice.suspect s
        cross join lateral (select q.class, q.lane, q.host from sluice.queue q where q.id = s.queue_id limit 1) q
        where s.run_id = p_run and (p_lanes is null and q.class < 3 or q.lane = any(p_lanes)) and q.host <> all(p_avoid)
        order by s.turn limit 1 for update of s skip locked
      ), gone as (
        delete from sluice.suspect s using pick where s.ctid = pick.tid returning s.*
      )
      insert into sluice.inflight (lease_id, claimed_ms, expires_ms, run_id, losses, worker_id, ${BODY})
        select p_op, v_now, v_now + p_lease_ms, p_run, losses, p_worker, ${BODY} from gone;
      get diagnostics v_given = row_count;
      if v_given > 0 then
        v_left := 0;
        return query ${LEASES};
      end if;
    end if;

    v_look_from := clock_timestamp();
    <<groups>>
    foreach v_group in array v_groups loop
      exit when v_left <= 0;
      v_weight := '-infinity';
      loop
          exit groups when v_left <= 0;${NEXT_LEVEL}
          exit when not found;
          v_weight := v_next;
          v_turn := 0;
          for i in 1 .. coalesce(cardinality(p_turns), 0) loop
            if p_turn_weights[i] = v_weight and p_turn_groups[i] = v_group then v_turn := p_turns[i]; end if;
          end loop;
          v_after := v_turn; v_after_wrap := 0; v_has_more := true;
          v_full := '{}'; v_full_marks := '{}';
          -- Each queue its share; then, when all of the level have been asked, what some do not have the others give.
          while v_left > 0 loop
            v_queues := null;
            if v_has_more then ${NEXT_QUEUES}
              v_has_more := cardinality(v_queues) = v_left;
            end if;
            if v_queues is null then
              v_has_more := false;
              v_queues := v_full; v_marks := v_full_marks;
              v_full := '{}'; v_full_marks := '{}';
              exit when cardinality(v_queues) = 0;
            elsif v_queues[cardinality(v_queues)] > v_turn then
              v_after := v_queues[cardinality(v_queues)];
            else
              v_after := ${INT_MAX}; v_after_wrap := v_queues[cardinality(v_queues)];
            end if;
            v_each := v_left / cardinality(v_queues);
            v_more := v_left % cardinality(v_queues);
            return query with pick as materialized (
              select r.tid from unnest(v_queues, v_marks) with ordinality u(queue, mark, n) cross join lateral (
                select y.ctid as tid from sluice.ready y where y.queue_id = u.queue and y.seq >= u.mark
                order by y.seq limit v_each + case when u.n <= v_more then 1 else 0 end for update skip locked
              ) r
            ), gone as (
              delete from sluice.ready y using pick where y.ctid = pick.tid returning y.*
            ), held as (
              insert into sluice.inflight (lease_id, claimed_ms, expires_ms, run_id, losses, worker_id, ${BODY})
                select p_op, v_now, v_now + p_lease_ms, p_run, 0, p_worker, ${BODY} from gone
            )
            select 0, g.queue_id, g.seq, g.attempts, 0, g.depth, g.url_hash, g.url, g.route, g.data, g.session from gone g;
            get diagnostics v_count = row_count;
            v_given := v_given + v_count;
            v_left := v_left - v_count;
            exit groups when v_left = 0;
            -- What others hold locked is there, but not for us: a round that gives nothing is the last.
            exit when v_count = 0 and not v_has_more;
            select v_full || coalesce(array_agg(u.queue) filter (where u.has_rest), '{}'),
                v_full_marks || coalesce(array_agg(u.mark) filter (where u.has_rest), '{}'),
                array_agg(u.queue) filter (where not u.has_rest),
                v_empty || coalesce(array_agg(u.queue) filter (where not u.has_rest and u.mark = 0), '{}')
              into v_full, v_full_marks, v_short, v_empty
            from (
              select u.queue, u.mark,
                (select 1 from sluice.ready y where y.queue_id = u.queue and y.seq >= u.mark limit 1) is not null as has_rest
              from unnest(v_queues, v_marks) with ordinality u(queue, mark, n) order by u.n
            ) u;
            return query select 2, s, null::bigint, null::int, null::int, null::int, null::bytea, null::text, null::text, null::text, null::text
              from unnest(v_short) s;
          end loop;
      end loop;
    end loop;

    v_look_ms := extract(epoch from clock_timestamp() - v_look_from) * 1000;
    if v_given > 0 then
      insert into sluice.tally (run_id, pending, claimed) values (p_run, -v_given, v_given);
    end if;
    if v_due_queues is not null then
      return query select 1, d.queue, d.seq, null::int, null::int, null::int, null::bytea, null::text, null::text, null::text, null::text
        from unnest(v_due_queues, v_due_seqs) d(queue, seq);
    end if;
    what := 3; queue := v_is_all_due::int; seq := v_now; attempts := v_look_ms;
    return next;
    -- Last: queues that were looked at from their beginning and were empty. Whoever has just put something in either holds the row
    -- (then we skip it) or will wait for us at \`open_queues\` and find it closed. What was committed before we got the row, the
    -- second statement sees.
    if cardinality(v_empty) > 0 then
      select array_agg(q.id) into v_short from (
        select id from sluice.queue where id = any(v_empty) and is_open for update skip locked
      ) q;
      update sluice.queue q set is_open = false
      where q.id = any(v_short) and (select 1 from sluice.ready y where y.queue_id = q.id limit 1) is null;
    end if;
  end $$;
`
