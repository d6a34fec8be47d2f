/** Figures: totals are kept and exact; per lane and host they are counted, at once while the queue is small. */

import type { Database } from '../../postgres/database.ts'
import type { FrontierStats } from '../contract.ts'

/** Up to this many tasks are counted each time (1 ms): idle workers ask often. */
const COUNTED_TASKS_MAX = 2000
const COUNT_MS = 5000
/** Counting may take this share of the time. */
const COUNT_SHARE_MAX = 1 / 50

const TOTALS = 'select pending, claimed, completed, failed, dead, items, is_paused, pause_reason from sluice.totals($1)'
const BREAKDOWN = 'select what, name, pending, claimed from sluice.breakdown($1)'

type Breakdown = Pick<FrontierStats, 'lanes' | 'hosts'>
type Totals = [
  ...counts: [string, string, string, string, string, string],
  isPaused: string,
  pauseReason: string | null,
]

export function createStats(db: Database, runId: number): () => Promise<FrontierStats> {
  let last: { breakdown: Breakdown; atMs: number; costMs: number } | undefined

  async function breakdownOf(tasks: number): Promise<Breakdown> {
    const startMs = performance.now()
    const isFresh = last !== undefined && startMs - last.atMs < Math.max(COUNT_MS, last.costMs / COUNT_SHARE_MAX)
    if (isFresh && tasks > COUNTED_TASKS_MAX) return last!.breakdown
    const breakdown: Breakdown = { lanes: {}, hosts: [] }
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
      ...paused,
      ...(await breakdownOf(remaining)),
    }
  }
}
