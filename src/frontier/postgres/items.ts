/** Items: kept permanently in the database, read in order, with a mark up to which the sinks have them. */
import type { Pool } from 'pg'
import type { LoggedItem } from '../../core/item.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import type { ItemLog, SinkPositions } from '../contract.ts'
import { BY_KEY } from './functions.ts'

export const ITEMS = `
  create function sluice.backlog(p_run int) returns bigint language plpgsql ${BY_KEY} as $$
  begin
    return coalesce((select max(i.seq) from sluice.item i where i.run_id = p_run), 0)
      - coalesce((select m.seq from sluice.item_mark m where m.run_id = p_run), 0);
  end $$;
`

const READ = 'select seq, key, json from sluice.item where run_id = $1 and seq > $2 order by seq limit $3'
const UNCONFIRMED = `
  select seq, key, json from sluice.item
  where run_id = $1 and seq > greatest($2, (select m.seq from sluice.item_mark m where m.run_id = $1)) order by seq limit $3`
// A reader that was replaced must not move the sinks back.
const CONFIRM = `
  insert into sluice.item_mark (run_id, seq, positions)
  select $1, least($2::bigint, coalesce((select max(i.seq) from sluice.item i where i.run_id = $1), 0)), $3
  on conflict (run_id) do update set seq = excluded.seq, positions = excluded.positions where item_mark.seq <= excluded.seq`

type Row = [seq: string, key: string, json: string]

export function createItems(db: Database, runId: number): ItemLog {
  return {
    async read({ afterSeq, max }) {
      return (await db.rows<Row>(UNCONFIRMED, [runId, afterSeq, max])).map(logged)
    },

    async confirm(seq, positions) {
      await db.rows(CONFIRM, [runId, seq, JSON.stringify(positions)])
    },

    async confirmed() {
      const rows = await db.rows<[string, string]>('select seq, positions from sluice.item_mark where run_id = $1', [
        runId,
      ])
      const [row] = rows
      return row === undefined
        ? { seq: 0, positions: {} }
        : { seq: Number(row[0]), positions: JSON.parse(row[1]) as SinkPositions }
    },
  }
}

/** All items of a run, confirmed or not: the database is their store. Pass the last `seq` as `afterSeq` for the next page. */
export async function readItems(
  pool: Pool,
  run: string,
  { afterSeq = 0, max = 1000 }: { afterSeq?: number; max?: number } = {},
): Promise<LoggedItem[]> {
  const text = READ.replace('$1', '(select r.run_id from sluice.run r where r.name = $1)')
  const { rows } = await pool.query({ text, values: [run, afterSeq, max], rowMode: 'array' })
  return (rows as Row[]).map(logged)
}

function logged([seq, key, json]: Row): LoggedItem {
  return { seq: Number(seq), key, json }
}
