/** Dead letters, on the server: filtered, counted by cause, retried or dropped. */
import { GROUPS_MAX } from '../shared/dead-letters.ts'
import { BODY } from './schema.ts'

/** Dead letters moved per transaction, so that retrying a million does not lock out others. */
const REMOVE_MAX = 1000

const MATCHES = `
  d.run_id = p_run and d.turn > p_turn and d.turn <= p_last
  and (p_class is null or d.class = p_class) and (p_code is null or d.code = p_code) and (p_host is null or d.host = p_host)
  and (p_ids is null or d.url_hash = any(p_ids))`

export const DEAD = `
  create function sluice.find_dead(
    p_run int, p_turn bigint, p_last bigint, p_class text, p_code text, p_host text, p_ids bytea[], p_limit int
  ) returns setof sluice.dead language sql stable as $$
    select d.* from sluice.dead d where ${MATCHES} order by d.turn limit p_limit
  $$;

  create function sluice.remove_dead(
    p_run int, p_turn bigint, p_last bigint, p_class text, p_code text, p_host text, p_ids bytea[], p_is_revived boolean,
    out removed int, out turn bigint
  ) language plpgsql as $$
  declare
    v_queues int[];
  begin
    with pick as materialized (
      select d.ctid as tid from sluice.dead d where ${MATCHES} order by d.turn limit ${REMOVE_MAX} for update skip locked
    ), gone as (
      delete from sluice.dead d using pick where d.ctid = pick.tid returning d.*
    ), again as (
      insert into sluice.ready (${BODY})
        select queue_id, seq, created_ms, depth, 0, url_hash, url, route, data, session from gone where p_is_revived returning queue_id
    )
    select (select count(*) from gone), (select max(g.turn) from gone g), (select array_agg(distinct queue_id) from again)
      into removed, turn, v_queues;
    if v_queues is not null then perform sluice.open_queues(v_queues); end if;
    if removed > 0 then
      insert into sluice.tally (run_id, pending, failed, dead)
        values (p_run, case when p_is_revived then removed else 0 end, case when p_is_revived then -removed else 0 end, -removed);
    end if;
  end $$;

  create function sluice.dead_groups(p_run int) returns table (
    code text, class text, cause text, count bigint, example_url text, first_ms bigint, last_ms bigint
  ) language sql stable as $$
    select code, class, cause, count(*), (array_agg(url order by turn))[1], min(died_ms), max(died_ms)
    from sluice.dead where run_id = p_run group by code, class, cause order by 4 desc, min(turn) limit ${GROUPS_MAX}
  $$;
`
