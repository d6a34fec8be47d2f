/** What the machines of a fleet share: where it is, and how to open it. */

import type { ConfigValues } from '../config/option-table.ts'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import type { Json } from '../core/task.ts'
import type { Outage } from '../drivers/outage.ts'
import type { SqlDatabase } from '../drivers/sql.ts'
import type { Frontier } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import type { Store } from '../store/contract.ts'
import { type QueuePlace, queueUrlOf, redisUrlOf } from './run-identity.ts'
import { withStoredItems } from './stored-items.ts'

type Places = Pick<ConfigValues, 'frontier' | 'store' | 'redis'>

/** On a single machine, a fleet needs nothing but its queue. */
export const STORE_HERE = 'sqlite:.sluice/sluice.db'

/** Where the fleet's runs are stored; undefined if no shared queue is configured. */
export function storeUrlOf({ frontier, store }: Pick<Places, 'frontier' | 'store'>): string | undefined {
  if (store !== undefined) return store
  const { engine, isShared } = parseEngineUrl(frontier)
  if (engine === 'postgres') return frontier
  return isShared ? STORE_HERE : undefined
}

export async function openStore(places: Pick<Places, 'frontier' | 'store'>): Promise<Store> {
  return (await openStoreDatabase(places)).store
}

export interface StoreDatabase {
  /** Disposing of it closes the database. */
  store: Store
  /** For other data kept alongside runs and workers. */
  db: SqlDatabase
}

export async function openStoreDatabase(
  places: Pick<Places, 'frontier' | 'store'>,
  options: { connectionsMax?: number } = {},
): Promise<StoreDatabase> {
  const given = storeUrlOf(places)
  if (given === undefined)
    throw new ScrapeError('E_OPTION', 'a fleet needs a queue that all its workers can reach', {
      notes: [`the frontier is ${places.frontier}`],
      fix: 'Name it with --frontier postgres://HOST/DATABASE (or amqp://…, redis://…), or SLUICE_FRONTIER.',
    })
  const [{ sqlStore }, { runWatch }] = await Promise.all([import('../store/sql-store.ts'), import('./run-watch.ts')])
  const { engine, scheme, path, url } = parseEngineUrl(given)
  if (path !== undefined) {
    const db = (await import('../store/sqlite.ts')).openSqliteDatabase(path)
    return { db, store: sqlStore(db, undefined, runWatch(db.dialect)) }
  }
  if (engine !== 'postgres')
    throw new ScrapeError('E_OPTION', `unknown kind of store: ${scheme ?? given}:`, {
      fix: 'Use postgres://HOST/DATABASE, or sqlite:FILE for one machine.',
    })
  const [{ openPostgresDatabase }, { dropRun }] = await Promise.all([
    import('../store/postgres.ts'),
    import('../frontier/postgres/runs.ts'),
  ])
  const db = await openPostgresDatabase(url, options)
  const dropQueue = async (runId: string) => void (await dropRun(db.database.pool, runId))
  return { db, store: sqlStore(db, dropQueue, runWatch(db.dialect)) }
}

interface FleetFrontierOptions {
  /** Stores the items if the queue does not. */
  store: Store
  /** Routing rules: how long a message is worth delivering. */
  rules?: Json | undefined
  onOutage?: (message: string) => void
  /** How long to wait for a queue that went down. Default 60,000. */
  outageMs?: number
  /** Throws `E_RUN_NOT_FOUND` instead of creating a run. */
  mustExist?: boolean
}

/** The queue of a fleet run. Its items stay there instead of being drained into files. */
export async function openFleetFrontier(
  places: QueuePlace,
  runId: string,
  { store, rules, onOutage, outageMs, mustExist = false }: FleetFrontierOptions,
): Promise<Frontier> {
  const say = ({ attempt, error }: Outage) =>
    onOutage?.(`the queue is away (${error.message}): waiting for it, try ${attempt}`)
  const frontier = await openFrontier(queueUrlOf(places), {
    runId,
    mustExist,
    keepsItems: true,
    ...(rules === undefined ? {} : { messageTtlMs: await messageTtlOf(rules) }),
    onWarning: (message) => onOutage?.(message),
    onOutage: parseEngineUrl(places.frontier).engine === 'postgres' ? sparingly(say) : say,
    ...(outageMs === undefined ? {} : { outageMs }),
  }).catch((error) => {
    throw withRedisNamed(error, places)
  })
  return frontier.can.keepsItems === true ? frontier : withStoredItems(frontier, store, runId)
}

/** A user who configured no Redis may not know that one is needed. */
export function withRedisNamed(error: unknown, places: QueuePlace): unknown {
  const isMeant =
    error instanceof ScrapeError && error.code === 'E_SERVICE' && error.message.startsWith('127.0.0.1:6379')
  if (!isMeant || redisUrlOf(places) !== undefined) return error
  return new ScrapeError('E_SERVICE', `Redis at ${error.message}`, {
    ...error.details,
    notes: ['an amqp:// queue keeps its ledger in Redis; this is the default, because --redis is not set'],
    fix: 'Name it with --redis redis://HOST:PORT/NUMBER or SLUICE_REDIS, or start one here.',
    cause: error,
  })
}

const SAY_EVERY_MS = 5_000

/**
 * Every operation that waits for PostgreSQL reports it; users need one line now and then. The connections to a broker and its
 * Redis report each attempt once, however many operations wait.
 */
function sparingly(say: (outage: Outage) => void): (outage: Outage) => void {
  let saidAtMs = Number.NEGATIVE_INFINITY
  return (outage) => {
    if (performance.now() - saidAtMs < SAY_EVERY_MS) return
    saidAtMs = performance.now()
    say(outage)
  }
}

async function messageTtlOf(rules: Json): Promise<(message: { url: string }) => number | undefined> {
  const { compileRules } = await import('../sources/routing.ts')
  const route = compileRules(rules, 'the run')
  return ({ url }) => route(url)?.ttlMs
}
