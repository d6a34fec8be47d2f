/**
 * Bytes that a task and an item take in a queue: PostgreSQL and SQLite on disk, waiting and done. The constants of
 * capacity-model.ts come from here; those for Redis come from frontier-redis.ts.
 *
 *   node bench/capacity-bytes.ts [--tasks 200000] [--item-bytes 400]
 */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Client } from 'pg'
import type { Frontier } from '../src/frontier/contract.ts'
import { openMemoryFrontier } from '../src/frontier/memory/engine.ts'
import { openPostgresFrontier } from '../src/frontier/postgres/engine.ts'
import { openSqliteFrontier } from '../src/frontier/sqlite/engine.ts'
import { startPostgres } from '../test/services/postgres.ts'
import { pages } from './frontier-postgres/process.ts'

const HOSTS = 1000
const BATCH = 500
const LEASE_MS = 600_000

const { values } = parseArgs({
  options: { tasks: { type: 'string', default: '200000' }, 'item-bytes': { type: 'string', default: '400' } },
})
const tasks = Number(values.tasks)
const itemBytes = Number(values['item-bytes'])

/** One item for each task, or none. Items that would be drained to files are confirmed, as the sink writer does. */
async function workOff(frontier: Frontier, has: { items: boolean }): Promise<void> {
  for (let afterSeq = 0; ; ) {
    const leases = await frontier.claim({ max: BATCH, workerId: 'bytes', leaseMs: LEASE_MS })
    if (leases.length === 0) return
    await frontier.commit(
      leases.map((lease) => ({ kind: 'done', lease, items: has.items ? [itemOf(lease.task.url)] : [] })),
    )
    const last = frontier.can.keepsItems ? undefined : (await frontier.items.read({ afterSeq, max: BATCH })).at(-1)
    if (last !== undefined) await frontier.items.confirm(last.seq, {})
    afterSeq = last?.seq ?? afterSeq
  }
}

/** Realistic text: a repeated letter would be compressed away. */
function itemOf(url: string): { key: string; json: string } {
  let text = ''
  while (text.length < itemBytes - url.length - 22) text += `${Math.random().toString(36).slice(2, 9)} `
  return { key: url, json: JSON.stringify({ url, text }) }
}

interface Bytes {
  perTaskPending: number
  perTaskDone: number
  /** What remains of it besides its task: the whole item if the engine keeps items, else only its key. */
  perItem: number
}

async function measure(open: (runId: string) => Promise<Frontier>, size: () => Promise<number>): Promise<Bytes> {
  const opened = async (runId: string, body: (frontier: Frontier) => Promise<unknown>) => {
    await using frontier = await open(runId)
    await body(frontier)
  }
  const empty = await size()
  await opened('bare', (frontier) => frontier.add(pages({ from: 0, to: tasks, hosts: HOSTS })))
  const pending = await size()
  await opened('bare', (frontier) => workOff(frontier, { items: false }))
  const done = await size()
  await opened('rich', (frontier) => frontier.add(pages({ from: 0, to: tasks, hosts: HOSTS })))
  await opened('rich', (frontier) => workOff(frontier, { items: true }))
  const withItems = await size()
  const per = (bytes: number) => Math.round(bytes / tasks)
  const perTaskDone = per(done - empty)
  return { perTaskPending: per(pending - empty), perTaskDone, perItem: per(withItems - done) - perTaskDone }
}

async function postgres(): Promise<Bytes & { seenIndexPerUrl: number }> {
  await using server = await startPostgres({ fsync: true, settings: ['max_wal_size=8GB'] })
  await using database = await server.createDatabase()
  const client = new Client({ connectionString: database.url })
  await client.connect()
  // After a vacuum: freed space does not count, but the gaps it leaves for later rows do.
  const size = async () => {
    await client.query('vacuum')
    const { rows } = await client.query(
      `select coalesce(sum(pg_total_relation_size(c.oid)), 0) as bytes from pg_class c join pg_namespace n on n.oid = relnamespace
       where nspname = 'sluice' and relkind in ('r', 'm')`,
    )
    return Number(rows[0].bytes)
  }
  const indexBytes = `select sum(pg_indexes_size(c.oid)) as bytes from pg_class c join pg_inherits on inhrelid = c.oid
    where inhparent = 'sluice.seen'::regclass`
  try {
    const open = (runId: string) => openPostgresFrontier(database.url, { runId, keepsItems: true })
    const bytes = await measure(open, size)
    const { rows } = await client.query(indexBytes)
    return { ...bytes, seenIndexPerUrl: Math.round(Number(rows[0].bytes) / tasks / 2) } // two runs
  } finally {
    await client.end()
  }
}

async function sqlite(): Promise<Bytes> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bytes-'))
  try {
    // Each run has its own file, as in run folders. Free pages do not count, although the file keeps them.
    const size = async () =>
      ['bare.db', 'rich.db'].map((name) => join(folder, name)).reduce((sum, path) => sum + usedBytes(path), 0)
    return await measure((runId) => openSqliteFrontier(join(folder, `${runId}.db`)), size)
  } finally {
    await rm(folder, { recursive: true })
  }
}

function usedBytes(path: string): number {
  if (!existsSync(path)) return 0
  using database = new DatabaseSync(path)
  const pragma = (name: string) => Number(Object.values(database.prepare(`pragma ${name}`).get()!)[0])
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
}

async function memory(): Promise<Bytes> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const frontiers = new Map<string, Frontier>()
  const size = async () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  // Closing it would end it, so it stays open.
  const open = async (runId: string) => {
    if (!frontiers.has(runId))
      frontiers.set(runId, Object.assign(openMemoryFrontier(), { async [Symbol.asyncDispose]() {} }))
    return frontiers.get(runId)!
  }
  return measure(open, size)
}

console.log(
  JSON.stringify(
    { tasks, itemBytes, memory: await memory(), sqlite: await sqlite(), postgres: await postgres() },
    null,
    2,
  ),
)
