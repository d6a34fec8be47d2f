/** What a store keeps for how long. Runs in folders are not here: nobody deletes them but their owner. */
import { parseDurationMs } from '../core/options.ts'
import type { SqlDatabase } from '../drivers/sql.ts'
import type { Store } from './contract.ts'

/** What a person decides on, each in milliseconds; 0 keeps it for ever. */
export interface KeepMs {
  /** Log lines of stored runs, events and their deliveries. */
  readonly logs: number
  /** What happened to items, items that are gone, and who did what. */
  readonly history: number
  /** Stored runs with their items. */
  readonly runs: number
}

/** `'30d'`, `'2y'`, or `'forever'` → milliseconds, 0 for ever. NaN for anything else. */
export function parseKeepMs(text: string): number {
  if (text === 'forever') return 0
  const years = /^(\d+(?:\.\d+)?)\s*y$/.exec(text.trim())?.[1]
  const ms = years === undefined ? parseDurationMs(text) : Number(years) * 365 * 86_400_000
  return ms >= 3_600_000 ? ms : Number.NaN // a slip of the pen must not empty a table
}

interface Rule {
  table: string
  /** Epoch milliseconds. */
  column: string
  keep: keyof KeepMs
  /** Only these rows. */
  where?: string
}

const RULES: readonly Rule[] = [
  { table: 'entity_change', column: 'at_ms', keep: 'history' },
  {
    table: 'delivery',
    column: 'created_ms',
    keep: 'logs',
    where: `state not in ('pending', 'failed')`,
  },
  {
    table: 'event',
    column: 'created_ms',
    keep: 'logs',
    // What is still to be delivered, now or in a digest, is not over.
    where: `not exists (select 1 from PREFIXdelivery d where d.event_id = its.id)
      and not exists (select 1 from PREFIXdigest_event d where d.event_id = its.id)`,
  },
  { table: 'audit', column: 'at_ms', keep: 'history' },
]

const ROWS_AT_ONCE = 1_000
const RUNS_AT_ONCE = 100

/** Deletes what is too old, a little at a time, and says how much of each table. Stops early when it should. */
export async function purge(
  db: SqlDatabase,
  store: Store,
  { keep, nowMs, mayGoOn = () => true }: { keep: KeepMs; nowMs: number; mayGoOn?: () => boolean },
): Promise<Record<string, number>> {
  const purged: Record<string, number> = {}
  const count = (table: string, rows: number) => {
    if (rows > 0) purged[table] = (purged[table] ?? 0) + rows
    return rows
  }
  for (const rule of RULES) {
    if (keep[rule.keep] === 0) continue
    while (mayGoOn() && count(rule.table, await purgeSome(db, rule, nowMs - keep[rule.keep])) === ROWS_AT_ONCE);
  }
  if (keep.history > 0)
    while (mayGoOn() && count('entity', await purgeGone(db, nowMs - keep.history)) === ROWS_AT_ONCE);
  if (keep.logs > 0) while (mayGoOn() && count('run_log', await purgeLogs(db, nowMs - keep.logs)) === ROWS_AT_ONCE);
  if (keep.runs > 0) count('run_record', await purgeRuns(db, store, { untilMs: nowMs - keep.runs, mayGoOn }))
  return purged
}

async function purgeSome({ rows, dialect: { prefix } }: SqlDatabase, rule: Rule, untilMs: number): Promise<number> {
  const { table, column, where } = rule
  const more = where === undefined ? '' : `and ${where.replaceAll('PREFIX', prefix)}`
  const gone = await rows(
    `delete from ${prefix}${table} where id in
       (select its.id from ${prefix}${table} its where its.${column} < $1 ${more} order by its.${column} limit ${ROWS_AT_ONCE})
     returning id`,
    [untilMs],
  )
  return gone.length
}

/** An item that is still there stays, however old. */
async function purgeGone({ rows, dialect: { prefix } }: SqlDatabase, untilMs: number): Promise<number> {
  const gone = await rows(
    `delete from ${prefix}entity where (scraper, key) in
       (select scraper, key from ${prefix}entity where status = 'gone' and last_seen_ms < $1
        order by last_seen_ms limit ${ROWS_AT_ONCE})
     returning key`,
    [untilMs],
  )
  return gone.length
}

/** Lines have no time of their own here: they are as old as their run. */
async function purgeLogs({ rows, dialect: { prefix } }: SqlDatabase, untilMs: number): Promise<number> {
  const gone = await rows(
    `delete from ${prefix}run_log where id in
       (select l.id from ${prefix}run_log l join ${prefix}run_record r on r.id = l.run_id
        where r.state <> 'running' and r.woken_ms < $1 limit ${ROWS_AT_ONCE})
     returning id`,
    [untilMs],
  )
  return gone.length
}

async function purgeRuns(
  { rows, dialect: { prefix } }: SqlDatabase,
  store: Store,
  { untilMs, mayGoOn }: { untilMs: number; mayGoOn: () => boolean },
): Promise<number> {
  let purged = 0
  for (;;) {
    const old = await rows(
      `select id from ${prefix}run_record where state <> 'running' and woken_ms < $1 order by woken_ms limit ${RUNS_AT_ONCE}`,
      [untilMs],
    )
    if (old.length === 0 || !mayGoOn()) return purged
    for (const { id } of old) {
      await store.dropRun(String(id))
      await rows(`delete from ${prefix}ingest_run where run_id = $1`, [String(id)])
      purged++
    }
  }
}
