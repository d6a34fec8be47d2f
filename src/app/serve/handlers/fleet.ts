/** Workers and scrapers. */
import type { fleetEndpoints } from '../../../server/api/routes/fleet.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { StoredWorker } from '../../../store/contract.ts'
import type { Server } from '../server/server.ts'

export function fleetHandlers(server: Server): HandlersOf<typeof fleetEndpoints> {
  return {
    async listWorkers({ query: { run, alive } }) {
      return { data: (await server.store.listWorkers({ runId: run, isAlive: alive })).map(toWorker) }
    },
    async drainWorker({ params: { id } }) {
      await server.drainWorker(id)
      return undefined
    },
    listScrapers: async () => ({ data: await server.listScrapers() }),
  }
}

function toWorker({ startedAtMs, report, region, only, ...worker }: StoredWorker) {
  return {
    ...worker,
    region: region ?? null,
    only: only ?? null,
    startedAt: new Date(startedAtMs).toISOString(),
    inFlight: report?.inFlight ?? null,
    rssBytes: report?.rssBytes ?? null,
    loopLagMs: report?.loopLagMs ?? null,
  }
}
