/** Where the results of the task protocol are stored. */

import type { ConfigValues } from '../../config/option-table.ts'
import { openStore, storeUrlOf } from '../../runs/fleet-places.ts'
import type { Store } from '../../store/contract.ts'

/** The store of a fleet; a Redis alongside another queue has one, too. */
export async function openResultStore({ frontier, store }: Pick<ConfigValues, 'frontier' | 'store'>): Promise<Store> {
  return await openStore({
    frontier,
    store: storeUrlOf({ frontier, store }) ?? storeUrlOf({ frontier: 'redis:', store }),
  })
}
