/** Where a fleet worker stores everything but items: snapshots go to the store, where every machine can read them. */
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { parseEngineUrl } from '../../core/engine-url.ts'
import type { EventBus } from '../../core/events.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import type { Page } from '../../core/page.ts'
import type { Task } from '../../core/task.ts'
import { openSqliteSlots } from '../../fetch/rate/sqlite-slots.ts'
import { storeUrlOf } from '../../runs/fleet-places.ts'
import { RunFolder, snapshotsOf } from '../../runs/run-folder.ts'
import { redisUrlOf } from '../../runs/run-identity.ts'
import type { Store, StoredRun } from '../../store/contract.ts'
import type { RateSharing } from '../run/fetching.ts'
import type { WorkerPlace } from '../run/worker.ts'

const SNAPSHOT_BYTES_MAX = 256 * 1024
/** Maximum number of snapshots in flight; a store that is slow or down costs snapshots, not memory. */
const WRITES_MAX = 32

export function fleetPlace({
  store,
  run,
  config,
  bus,
  limits,
}: {
  store: Store
  run: StoredRun
  config: Config
  bus: EventBus
  limits: ResolvedLimits
}): WorkerPlace {
  const { id: runId, scraper } = run.record
  const folder = new RunFolder(join(config.values.out, scraper, runId)) // on this machine; created when something is saved
  let writes = 0
  const keepSnapshot = (task: Task, page: Page | undefined, screenshot = page?.screenshot): string | undefined => {
    const kept = writes >= WRITES_MAX ? [] : snapshotsOf(task, page, screenshot, SNAPSHOT_BYTES_MAX)
    for (const { name, bytes } of kept) {
      writes++
      store
        .putSnapshot(runId, name, Uint8Array.from(bytes))
        .catch((error: Error) =>
          bus.emit({ type: 'log', level: 'warn', message: `a snapshot is lost: ${error.message}` }),
        )
        .finally(() => writes--)
    }
    return kept[0]?.name
  }
  return {
    runId,
    keepSnapshot,
    save: folder.save,
    shareRates: (parts) => shareRates({ config, bus, limits }, parts),
  }
}

/**
 * Rate limits per host, shared by all workers: through the database if there is one, else through Redis, else through a local
 * file.
 */
async function shareRates(
  { config: { values }, bus, limits }: { config: Config; bus: EventBus; limits: ResolvedLimits },
  parts: AsyncDisposableStack,
): Promise<RateSharing> {
  const say = (level: 'info' | 'warn', message: string) => bus.emit({ type: 'log', level, message })
  const options = {
    onAway: (error: Error) => say('warn', error.message),
    onBack: () => say('info', 'rates are shared with the fleet again'),
  }
  const { engine, path, url } = parseEngineUrl(storeUrlOf(values)!)
  if (engine === 'postgres') {
    const { openPostgresSlots } = await import('../../fetch/rate/postgres-slots.ts')
    return { fleet: parts.use(await openPostgresSlots({ url, ...options })) }
  }
  const redis = redisUrlOf(values)
  if (redis !== undefined) {
    const { openRedisSlots } = await import('../../fetch/rate/redis-slots.ts')
    return { fleet: parts.use(await openRedisSlots({ url: redis, perMinute: limits.perHost.perMinute, ...options })) }
  }
  const folder = dirname(resolve(path ?? url))
  return { slots: parts.use(openSqliteSlots(join(folder, 'rates.db'))) }
}
