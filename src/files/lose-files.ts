/** Gives up files that exist only on a machine that does not come back: they become dead letters that say where they were. */
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import { isOneOf } from '../core/held-leases.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import type { UploadOrder } from './contract.ts'
import { countedOutcome, settleFailure } from './settle-file.ts'

const BATCH_MAX = 100
const LEASE_MS = 30_000

interface LostLane {
  lane: string
  /** Ends a sentence that begins with the file's name. */
  why: string
  /** Called before each batch: the machine may come back at any time. */
  isStillSilent: () => Promise<boolean>
}

/** Returns how many. Tasks that are not due yet stay for the next time. */
export async function loseFiles(
  { frontier, bus, workerId }: { frontier: Frontier; bus: EventBus; workerId: string },
  { lane, why, isStillSilent }: LostLane,
): Promise<number> {
  let count = 0
  while (await isStillSilent()) {
    // A separate worker id, because suspects are only given to workers that hold nothing else.
    const claim = { max: BATCH_MAX, workerId: `${workerId}/lost`, leaseMs: LEASE_MS, lanes: [lane] }
    const leases = await frontier.claim(claim)
    if (leases.length === 0) break
    const settled = leases.map((lease) => lost(lease, why))
    const { stale } = await frontier.commit(settled.map(countedOutcome))
    const isStale = isOneOf(stale)
    for (const { outcome, event } of settled) if (event !== undefined && !isStale(outcome.lease)) bus.emit(event)
    count += leases.length - stale.length
  }
  return count
}

function lost(lease: Lease, why: string) {
  const { url, data } = lease.task
  const { name, path } = (data ?? {}) as Partial<UploadOrder>
  const error = new ScrapeError('E_FILE_LOST', `the file ${JSON.stringify(name)} (${path}) ${why}`, { url })
  return settleFailure(lease, 'upload', error, { decide: () => ({ kind: 'dead' }), startedMs: performance.now() })
}
