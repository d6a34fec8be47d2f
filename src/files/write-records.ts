/** Writes the records of a batch of db_update tasks. One bad record does not affect the others. */
import { ScrapeError } from '../core/errors.ts'
import type { Lease } from '../frontier/contract.ts'
import type { FileRecords, RecordOrder } from './contract.ts'
import { orderOf } from './orders.ts'

/** After this many failures in a row, the database is to blame, not the record. */
const REFUSED_MAX = 3

/** Returns the leases whose records could not be written, and why. */
export async function writeRecords(records: FileRecords, leases: readonly Lease[]): Promise<Map<Lease, ScrapeError>> {
  const refused = new Map<Lease, ScrapeError>()
  const recordsOf = (some: readonly Lease[]) => some.map(({ task }) => (orderOf(task) as RecordOrder).record)
  try {
    await records.put(recordsOf(leases))
    return refused
  } catch (error) {
    if (leases.length === 1) return refused.set(leases[0]!, recordError(error))
  }
  let inARow = 0
  let last: ScrapeError | undefined
  for (const lease of leases) {
    try {
      if (inARow >= REFUSED_MAX) throw last
      await records.put(recordsOf([lease]))
      inARow = 0
    } catch (error) {
      inARow++
      last = recordError(error)
      refused.set(lease, last)
    }
  }
  return refused
}

/** Whatever the database's error, the record waits and the run continues, except when the disk is full. */
function recordError(error: unknown): ScrapeError {
  if (error instanceof ScrapeError && (error.code === 'E_FILE_RECORD' || error.code === 'E_OUTPUT')) return error
  return new ScrapeError('E_FILE_RECORD', (error as Error).message ?? String(error), { cause: error })
}
