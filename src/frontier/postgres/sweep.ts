/** Heartbeats and sweeps, on the client. */

import { ScrapeError } from '../../core/errors.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import type { Lease, SweepOptions } from '../contract.ts'
import { causeOf, leaseLost } from '../shared/dead-letters.ts'
import { numbersOf, numbersText, textsText } from './array-text.ts'
import { readToken } from './claim.ts'
import { SWEEP_MAX } from './sweep-sql.ts'

const SWEEP = 'select returned, died from sluice.sweep($1, $2, $3, $4, $5, $6, $7, $8, $9)'

interface SweepParts {
  db: Database
  runId: number
  /** Simulated time in tests; null: the server's clock. */
  serverNow: () => number | null
}

/** Returns the lost leases. */
export async function extend(
  { db, serverNow }: SweepParts,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<Lease[]> {
  const held = new Set<string>()
  // A task has one lease at a time; two leases on the same task need two calls.
  for (let left = [...new Set(leases.map(({ token }) => token))]; left.length > 0; ) {
    const bySeq = new Map(left.map((token) => [readToken(token).seq, token]))
    const seqs = [...bySeq.keys()].sort((a, b) => a - b)
    const values = [
      serverNow(),
      Math.ceil(leaseMs),
      numbersText(seqs.map((seq) => readToken(bySeq.get(seq)!).lease)),
      numbersText(seqs),
    ]
    const [row] = await db.rows<[string | null]>('select sluice.extend($1, $2, $3, $4)', values)
    for (const seq of numbersOf(row![0])) held.add(bySeq.get(seq)!)
    left = left.filter((token) => bySeq.get(readToken(token).seq) !== token)
  }
  return leases.filter(({ token }) => !held.has(token))
}

export async function sweep({ db, runId, serverNow }: SweepParts, options: SweepOptions) {
  const { lossesMax, workerIds = [] } = options
  const isAll = workerIds === 'all'
  const { code, class: cls, message, ...rest } = leaseLost(0)
  const error = JSON.stringify({ code, class: cls, message, ...rest })
  const workers = isAll ? '{}' : (textsText(workerIds) ?? '{}')
  const total = { returned: 0, dead: 0 }
  for (;;) {
    const values = [runId, serverNow(), isAll, workers, lossesMax, code, cls, causeOf(message), error]
    // A sweep that started before an outage must not run right after it: see the engine.
    const [row] = await db.rows<[string, string]>(SWEEP, (isRepeat) => {
      if (isRepeat && workerIds.length === 0) throw new ScrapeError('E_SERVICE', 'swept during an outage: next time')
      return values
    })
    total.returned += Number(row![0])
    total.dead += Number(row![1])
    if (Number(row![0]) + Number(row![1]) < SWEEP_MAX) return total
  }
}
