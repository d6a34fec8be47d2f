/** Stats: totals are maintained and exact; numbers per lane and host are counted, on every call while the queue is small. */
import type { Counts } from '../../core/counts.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import type { FrontierStats } from '../contract.ts'
import { NOW } from './functions.ts'

/** Up to this many tasks are counted each time (1 ms): idle workers call often. */
const COUNTED_TASKS_MAX = 2000
const COUNT_MS = 5000
/** Counting may take up to this share of the time. */
const COUNT_SHARE_MAX = 1 / 50

const TOTALS =
  'select pending, claimed, completed, failed, dead, items, is_paused, pause_reason, counts from sluice.totals($1)'
const BREAKDOWN = 'select what, name, pending, claimed from sluice.breakdown($1)'

/** In milliseconds. Considers the head of each open queue, the delayed tasks that are due (by time) and the few suspects. */
const OLDEST = `
  with given(p_run, p_now) as (values ($1::int, $2::bigint)), clock as (select p_run, ${NOW} as now_ms from given)
  select now_ms - least(
    (select min(r.created_ms) from sluice.queue q cross join lateral (
      select y.created_ms from sluice.ready y where y.queue_id = q.id order by y.seq limit 1
    ) r where q.run_id = p_run and q.is_open),
    (select min(d.created_ms) from sluice.delayed d where d.run_id = p_run and d.at_ms <= now_ms),
    (select min(s.created_ms) from sluice.suspect s where s.run_id = p_run)
  ) from clock`

type Breakdown = Pick<FrontierStats, 'lanes' | 'hosts' | 'oldestAgeMs'>
type Totals = [
  ...counts: [string, string, string, string, string, string],
  isPaused: string,
  pauseReason: string | null,
  sums: string | null,
]

export function createStats(db: Database, runId: number, serverNow: () => number | null): () => Promise<FrontierStats> {
  let last: { breakdown: Breakdown; atMs: number; costMs: number } | undefined

  async function breakdownOf(tasks: number): Promise<Breakdown> {
    const startMs = performance.now()
    const isFresh = last !== undefined && startMs - last.atMs < Math.max(COUNT_MS, last.costMs / COUNT_SHARE_MAX)
    if (isFresh && tasks > COUNTED_TASKS_MAX) return last!.breakdown
    const [oldest] = await db.rows<[string | null]>(OLDEST, [runId, serverNow()])
    const oldestAgeMs = oldest![0] === null ? undefined : Math.max(0, Number(oldest![0]))
    const breakdown: Breakdown = { lanes: {}, hosts: [], oldestAgeMs }
    for (const [what, name, pending, claimed] of await db.rows<[string, string, string, string]>(BREAKDOWN, [runId])) {
      const figures = { pending: Number(pending), claimed: Number(claimed) }
      if (what === 'lane') breakdown.lanes[name] = figures
      else breakdown.hosts.push({ host: name, ...figures })
    }
    const atMs = performance.now()
    last = { breakdown, atMs, costMs: atMs - startMs }
    return breakdown
  }

  return async function stats() {
    const [row] = await db.rows<Totals>(TOTALS, [runId])
    const [pending, claimed, completed, failed, dead, items] = row!.slice(0, 6).map(Number) as [
      ...[number, number, number, number, number, number],
    ]
    const remaining = pending + claimed
    const seen = remaining + completed + failed
    const paused = { isPaused: row![6] === 't', pauseReason: row![7] ?? undefined }
    return {
      pending,
      claimed,
      completed,
      failed,
      dead,
      remaining,
      seen,
      items,
      counts: row![8] === null ? {} : (JSON.parse(row![8]) as Counts),
      ...paused,
      ...(await breakdownOf(remaining)),
    }
  }
}
