/** Dead letters of a `postgres:` frontier. */
import type { ErrorRecord } from '../../core/errors.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import type { DeadFilter, DeadGroup, DeadLetter, DeadLetters } from '../contract.ts'
import { unpackData } from '../shared/intake.ts'
import { textsText } from './array-text.ts'
import type { QueueMarks } from './queue-marks.ts'
import type { Queues } from './queues.ts'

const FIND = `
  select url_hash, queue_id, url, route, data, depth, session, error, attempts, losses, died_ms, snapshot
  from sluice.find_dead($1, $2, $3, $4, $5, $6, $7, $8)`
const TURN = 'select turn from sluice.dead where run_id = $1 and url_hash = $2'
const REMOVE = 'select removed, turn from sluice.remove_dead($1, $2, $3, $4, $5, $6, $7, $8)'
const LAST = 'select coalesce(max(turn), 0) from sluice.dead where run_id = $1'
const LAST_TURN = '9223372036854775807'

type Row = [
  ...[
    hash: string,
    queue: string,
    url: string,
    route: string,
    data: string | null,
    depth: string,
    session: string | null,
  ],
  ...[error: string, attempts: string, losses: string, diedMs: string, snapshot: string | null],
]

export function createDead(parts: { db: Database; runId: number; queues: Queues; turns: QueueMarks }): DeadLetters {
  const { db, runId, queues, turns } = parts

  async function remove(filter: DeadFilter, isRevived: boolean): Promise<number> {
    // Letters that die in the meantime are left for the next call: otherwise a poison task would be retried for ever.
    const [last] = await db.rows<[string]>(LAST, [runId])
    let removed = 0
    for (let turn = '0'; ; ) {
      const values = [runId, turn, last![0], ...filterValues(filter), isRevived]
      const [row] = await db.rows<[string, string | null]>(REMOVE, values)
      if (row![1] === null) break
      removed += Number(row![0])
      turn = row![1]
    }
    turns.forgetMarks()
    return removed
  }

  return {
    async list({ limit = 100, after, ...filter } = {}) {
      const found = after === undefined ? [] : await db.rows<[string]>(TURN, [runId, bytesOf(after)])
      // If that letter has been retried or dropped since, start from the beginning, so that none is skipped.
      const turn = found[0]?.[0] ?? '0'
      const rows = await db.rows<Row>(FIND, [runId, turn, LAST_TURN, ...filterValues(filter), limit])
      const named = await queues.byId(new Set(rows.map(([, queue]) => Number(queue))))
      return rows.map((row): DeadLetter => {
        const [hash, queue, url, route, data, depth, session, error, attempts, losses, diedMs, snapshot] = row
        const { lane, priority } = named.get(Number(queue))!
        const body = { url, route, ...unpackData(data), depth: Number(depth) }
        return {
          task: { id: hash.slice(2), ...body, priority, lane, session: session ?? undefined },
          error: JSON.parse(error) as ErrorRecord,
          attempts: Number(attempts),
          losses: Number(losses),
          diedAtMs: Number(diedMs),
          snapshot: snapshot ?? undefined,
        }
      })
    },

    async groups() {
      type Group = [code: string, cls: string, cause: string, count: string, url: string, first: string, last: string]
      const rows = await db.rows<Group>('select * from sluice.dead_groups($1)', [runId])
      return rows.map(([code, cls, cause, count, exampleUrl, first, last]): DeadGroup => {
        const times = { firstAtMs: Number(first), lastAtMs: Number(last) }
        return { code, class: cls, cause, count: Number(count), exampleUrl, ...times }
      })
    },

    retry: (filter = {}) => remove(filter, true),
    drop: (filter = {}) => remove(filter, false),
  }
}

function filterValues({
  class: cls = null,
  code = null,
  host = null,
  ids,
}: { [K in keyof DeadFilter]: DeadFilter[K] | null }) {
  return [cls, code, host, ids === undefined || ids === null ? null : (textsText(ids.map(bytesOf)) ?? '{}')]
}

/** A text that is not a task id matches nothing. */
function bytesOf(id: string): string {
  return /^(?:[0-9a-f]{2})+$/.test(id) ? `\\x${id}` : '\\x'
}
