/** The places where a pending task waits (ready, delayed, suspect), and the moves between them. */
import type { Database } from './database.ts'
import type { Ledger, Queue } from './ledger.ts'

/** Maximum number of due tasks that one claim promotes, to bound its time. The rest follow with the next claim. */
const PROMOTE_MAX = 5000

export type Places = ReturnType<typeof createPlaces>

export function createPlaces({ db, ledger }: { db: Database; ledger: Ledger }) {
  const insertReady = db.prepare('insert into ready (queue, seq) values (?, ?)')
  const insertSuspect = db.prepare('insert into suspect (seq, queue) values (?, ?)')
  const insertDelayed = db.prepare('insert into delayed (seq, at_ms) values (?, ?)')
  const due = db.prepareRows<[number, number, number]>(`
    select d.seq, t.queue, t.losses from delayed d join task t on t.seq = d.seq
    where d.at_ms <= ? order by d.at_ms, d.seq limit ${PROMOTE_MAX}`)
  const deleteDelayed = db.prepare('delete from delayed where seq = ?')
  const nextDelayed = db.prepareRows<[number | null]>('select min(at_ms) from delayed')

  function makeReady(seq: number, queue: Queue, isSuspect: boolean): void {
    if (isSuspect) {
      insertSuspect.run(seq, queue.id)
      ledger.totals.suspects++
    } else {
      insertReady.run(queue.id, seq)
      ledger.moves(queue).ready++
    }
  }

  return {
    /** Moves it to pending: now, or when it is due. */
    put(waiting: { seq: number; queue: Queue; isSuspect: boolean; atMs: number; nowMs: number }): void {
      const { seq, queue, isSuspect, atMs, nowMs } = waiting
      ledger.moves(queue).pending++
      if (atMs > nowMs) insertDelayed.run(seq, Math.ceil(atMs))
      else makeReady(seq, queue, isSuspect)
    },

    promote(nowMs: number): void {
      if ((this.nextDueMs() ?? Number.POSITIVE_INFINITY) > nowMs) return
      for (const [seq, queueId, losses] of due.all(nowMs)) {
        deleteDelayed.run(seq)
        makeReady(seq, ledger.queue(queueId), losses > 0)
      }
    },

    nextDueMs(): number | undefined {
      const [atMs] = nextDelayed.get()!
      return atMs ?? undefined
    },
  }
}
