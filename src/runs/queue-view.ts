/** The queue of a fleet run, for read access. For `amqp:` and `redis:` this is the ledger alone. */
import { parseEngineUrl } from '../core/engine-url.ts'
import type { RunRecord } from '../core/run.ts'
import type { Frontier } from '../frontier/contract.ts'
import type { Store } from '../store/contract.ts'
import { openFleetFrontier, withRedisNamed } from './fleet-places.ts'
import { openQueueOf } from './queue-of-run.ts'
import { type QueuePlace, queueUrlOf } from './run-identity.ts'
import { withStoredItems } from './stored-items.ts'

/** Where the engine looks for its ledger by default. */
const REDIS_HERE = 'redis://127.0.0.1:6379/0'

/** Throws `E_OTHER_QUEUE` or `E_QUEUE_LOST` if the run is not in this queue. */
export async function openQueueToLook(
  places: QueuePlace,
  run: Pick<RunRecord, 'id' | 'frontier'>,
  store: Store,
): Promise<Frontier> {
  return await openQueueOf(run, places.frontier, () => openToLook(places, run.id, store))
}

async function openToLook(places: QueuePlace, runId: string, store: Store): Promise<Frontier> {
  if (!parseEngineUrl(places.frontier).hasLedger)
    return await openFleetFrontier(places, runId, { store, mustExist: true })
  const { openLedgerToLook } = await import('./ledger-queue.ts')
  const ledger = await openLedgerToLook(ledgerUrlOf(places), runId).catch((error) => {
    throw withRedisNamed(error, places)
  })
  return withStoredItems(ledger, store, runId)
}

/** The URL by which the engine finds it. */
function ledgerUrlOf(places: QueuePlace): string {
  const { engine, url } = parseEngineUrl(places.frontier)
  if (engine !== 'amqp') return url
  return URL.parse(queueUrlOf(places))?.searchParams.get('redis') ?? REDIS_HERE
}
