/** Settling leases: outcomes, and the sweep of leases of lost workers. */
import type { ErrorRecord } from '../../core/errors.ts'
import type { Lease, Outcome, SweepOptions } from '../contract.ts'
import { causeOf, leaseLost } from '../shared/dead-letters.ts'
import type { Database } from './database.ts'
import type { Ledger, Queue } from './ledger.ts'
import type { Places } from './places.ts'

interface Held {
  seq: number
  queue: Queue
  isSuspect: boolean
}

export function createSettle({ db, ledger, places }: { db: Database; ledger: Ledger; places: Places }) {
  const release = db.prepareRows<[number, number]>(
    'delete from inflight where seq = ? and lease = ? returning queue, alone',
  )
  const extend = db.prepare('update inflight set expires_ms = ? where seq = ? and lease = ?')
  const nextExpiry = db.prepareRows<[number | null]>('select min(expires_ms) from inflight')
  const expired = db.prepareRows<[number, number, number]>(`
    select i.seq, i.lease, t.losses from inflight i join task t on t.seq = i.seq
    where i.expires_ms <= ? or ? or i.worker in (select value from json_each(?)) order by i.seq`)
  const deleteTask = db.prepare('delete from task where seq = ?')
  const countTry = db.prepare('update task set attempts = attempts + 1 where seq = ?')
  const countLoss = db.prepare('update task set losses = losses + 1 where seq = ?')
  const bury = db.prepare(`
    insert into dead (seq, id, queue, url, route, data, depth, session, attempts, losses, host, code, class, cause, error, died_ms, snapshot)
    select seq, id, queue, url, route, data, depth, session, attempts, losses, ?, ?, ?, ?, ?, ?, ? from task where seq = ?`)

  function take(seq: number, lease: number): Held | undefined {
    const row = release.get(seq, lease)
    if (row === undefined) return undefined
    const queue = ledger.queue(row[0])
    const isSuspect = row[1] === 1
    ledger.moves(queue).claimed--
    if (isSuspect) ledger.totals.suspects--
    return { seq, queue, isSuspect }
  }

  function toDead(
    { seq, queue }: Held,
    death: { error: ErrorRecord; snapshot?: string | undefined; nowMs: number },
  ): void {
    const { error, snapshot, nowMs } = death
    const cause = causeOf(error.message)
    bury.run(queue.host, error.code, error.class, cause, JSON.stringify(error), nowMs, snapshot ?? null, seq)
    deleteTask.run(seq)
    ledger.totals.dead++
    ledger.totals.failed++
  }

  return {
    /** False if the lease is stale: then nothing has changed. */
    settle(outcome: Outcome, nowMs: number): boolean {
      const held = take(...numbersOf(outcome.lease))
      if (held === undefined) return false
      switch (outcome.kind) {
        case 'done':
          deleteTask.run(held.seq)
          ledger.totals.completed++
          break
        case 'retry':
          countTry.run(held.seq)
          places.put({ ...held, atMs: outcome.atMs, nowMs })
          break
        case 'postpone':
          places.put({ ...held, atMs: outcome.atMs, nowMs })
          break
        case 'dead':
          countTry.run(held.seq)
          toDead(held, { error: outcome.error, snapshot: outcome.snapshot, nowMs })
          break
        default:
          outcome satisfies never
      }
      return true
    },

    extend(leases: readonly Lease[], expiresMs: number): Lease[] {
      return leases.filter((lease) => extend.run(expiresMs, ...numbersOf(lease)).changes === 0)
    },

    sweep({ lossesMax, workerIds = [] }: SweepOptions, nowMs: number): { returned: number; dead: number } {
      const result = { returned: 0, dead: 0 }
      const isAll = workerIds === 'all'
      const rows = expired.all(nowMs, Number(isAll), JSON.stringify(isAll ? [] : workerIds))
      for (const [seq, lease, lossesBefore] of rows) {
        const held = take(seq, lease)!
        const losses = lossesBefore + 1
        countLoss.run(seq)
        // The first loss only makes it a suspect; after that it runs alone.
        if (losses > lossesMax) {
          toDead(held, { error: leaseLost(losses), nowMs })
          result.dead++
        } else {
          places.put({ ...held, isSuspect: true, atMs: 0, nowMs })
          result.returned++
        }
      }
      return result
    },

    nextExpiryMs(): number | undefined {
      const [expiresMs] = nextExpiry.get()!
      return expiresMs ?? undefined
    },
  }
}

/** A token consists of the numbers of the claim and the task: `17.4711`. Anything else matches no lease. */
function numbersOf(lease: Lease): [seq: number, lease: number] {
  const [claim, seq] = lease.token.split('.')
  return [Number(seq), Number(claim)]
}
