/** The server's own database: the fleet's, or a local file. */

import type { ConfigValues } from '../../../config/option-table.ts'
import { parseEngineUrl } from '../../../core/engine-url.ts'
import { openStoreDatabase, STORE_HERE, type StoreDatabase } from '../../../runs/fleet-places.ts'

/** Maximum number of connections if the database is not a file. */
const CONNECTIONS_MAX = 6

type Places = Pick<ConfigValues, 'frontier'> & Partial<Pick<ConfigValues, 'store'>>

export function storeOfServer({ frontier, store }: Places): string | undefined {
  return store ?? (parseEngineUrl(frontier).isShared ? undefined : STORE_HERE)
}

export async function openServeDatabase(places: Places): Promise<StoreDatabase> {
  const { frontier } = places
  return await openStoreDatabase({ frontier, store: storeOfServer(places) }, { connectionsMax: CONNECTIONS_MAX })
}
