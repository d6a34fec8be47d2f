/** Dead letters of a `sqlite:` frontier: whole rows, with their cause, until they are retried or dropped. */
import type { ErrorRecord } from '../../core/errors.ts'
import { rowsOf } from '../../drivers/sqlite/rows.ts'
import type { DeadFilter, DeadGroup, DeadLetter } from '../contract.ts'
import { GROUPS_MAX } from '../shared/dead-letters.ts'
import { unpackData } from '../shared/intake.ts'
import type { Database } from './database.ts'
import type { Ledger } from './ledger.ts'
import type { Places } from './places.ts'

/** Dead letters moved per transaction, so that retrying a million does not lock out others. */
const REMOVE_MAX = 1000

const MATCHES = `
  (:class is null or class = :class) and (:code is null or code = :code) and (:host is null or host = :host)
  and (:ids is null or id in (select unhex(value) from json_each(:ids)))`

interface Row {
  turn: number
  seq: number
  id: Uint8Array
  queue: number
  url: string
  route: string
  data: string | null
  depth: number
  session: string | null
  attempts: number
  losses: number
  error: string
  died_ms: number
  snapshot: string | null
}

export function createDead({ db, ledger, places }: { db: Database; ledger: Ledger; places: Places }) {
  const select = rowsOf<Row>(
    db.prepare(`select * from dead where turn > :turn and turn <= :last and ${MATCHES} order by turn limit :limit`),
  )
  const turnOf = db.prepareRows<[number]>('select turn from dead where id = ?')
  const lastTurn = db.prepareRows<[number]>('select coalesce(max(turn), 0) from dead')
  const groups = rowsOf<DeadGroup>(
    db.prepare(`
    select code, class, cause, count(*) as count, url as exampleUrl, min(turn), min(died_ms) as firstAtMs, max(died_ms) as lastAtMs
    from dead group by code, class, cause order by count desc limit ${GROUPS_MAX}`),
  )
  const remove = db.prepare('delete from dead where turn = ?')
  const revive = db.prepare(`
    insert into task (seq, id, queue, url, route, data, depth, session)
    select seq, id, queue, url, route, data, depth, session from dead where turn = ?`)

  function find(filter: DeadFilter, range: { turn: number; last: number; limit: number }): Row[] {
    const ids = filter.ids === undefined ? null : JSON.stringify(filter.ids)
    const { class: cls = null, code = null, host = null } = filter
    return select.all({ ...range, class: cls, code, host, ids })
  }

  function letterOf(row: Row): DeadLetter {
    const { lane, priority } = ledger.queue(row.queue)
    const { url, route, depth, attempts, losses } = row
    const id = Buffer.from(row.id).toString('hex')
    return {
      task: { id, url, route, ...unpackData(row.data), depth, priority, lane, session: row.session ?? undefined },
      error: JSON.parse(row.error) as ErrorRecord,
      attempts,
      losses,
      diedAtMs: row.died_ms,
      snapshot: row.snapshot ?? undefined,
    }
  }

  return {
    list({ limit = 100, after, ...filter }: DeadFilter & { limit?: number; after?: string } = {}): DeadLetter[] {
      const found = after === undefined ? undefined : turnOf.get(Buffer.from(after, 'hex'))
      // If that letter has been retried or dropped since, start from the beginning, so that none is skipped.
      const [turn] = found ?? [0]
      return find(filter, { turn, last: Number.MAX_SAFE_INTEGER, limit }).map(letterOf)
    },

    groups(): DeadGroup[] {
      return groups.all().map(({ code, class: cls, cause, count, ...rest }) => {
        const { exampleUrl, firstAtMs, lastAtMs } = rest
        return { code, class: cls, cause, count, exampleUrl, firstAtMs, lastAtMs }
      })
    },

    lastTurn(): number {
      return lastTurn.get()![0]
    },

    /** Removes some letters after `turn` up to `last`, to pending if `nowMs` is given. Returns the last turn to continue from. */
    removeSome(filter: DeadFilter, { turn, last, nowMs }: { turn: number; last: number; nowMs: number | undefined }) {
      const rows = find(filter, { turn, last, limit: REMOVE_MAX })
      for (const row of rows) {
        if (nowMs !== undefined) {
          revive.run(row.turn)
          places.put({ seq: row.seq, queue: ledger.queue(row.queue), isSuspect: false, atMs: 0, nowMs })
          ledger.totals.failed--
        }
        remove.run(row.turn)
        ledger.totals.dead--
      }
      return { count: rows.length, turn: rows.at(-1)?.turn ?? turn }
    },
  }
}
