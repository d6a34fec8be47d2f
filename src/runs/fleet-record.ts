/** The record of a run that many workers share: counts from its queue, measurements from the reports of each worker. */
import type { RunRecord, WorkTally } from '../core/run.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import type { Store, StoredWorker } from '../store/contract.ts'
import { type Measured, type RecordBase, updateRecord } from './run-record.ts'

const NOTHING: RecordBase = { fieldFill: {}, cpuMs: 0, durationMs: 0, rssBytesMax: 0, errors: [] }

/** Updates `record`. The duration of a fleet run is the time since it was started. */
export function updateFleetRecord(
  record: RunRecord,
  stats: FrontierStats,
  workers: readonly StoredWorker[],
  nowMs: number,
): void {
  const tallies = workers.flatMap(({ report }) => (report === undefined ? [] : [report.tally]))
  const endMs = record.finishedAt === null ? nowMs : Date.parse(record.finishedAt)
  updateRecord(record, NOTHING, stats, mergeTallies(tallies), Math.max(0, endMs - Date.parse(record.startedAt)))
}

/** Figures of a run whose queue is not available: what its workers last reported, or those from its start. */
export async function lastReported(
  record: RunRecord,
  workers: readonly StoredWorker[],
  store: Pick<Store, 'countItems'>,
): Promise<FrontierStats> {
  const [latest] = workers.filter(({ report }) => report?.queue !== undefined).sort((a, b) => a.silentMs - b.silentMs)
  const { remaining } = record.pages
  const begun = { completed: 0, failed: 0, dead: 0, remaining, seen: remaining, counts: {} }
  const seen = latest?.report?.queue ?? begun
  // A worker looks at the queue every few seconds; it has counted what it did since then.
  const done = workers.reduce((sum, { report }) => sum + (report?.tally.pages.ok ?? 0), 0)
  return {
    ...seen,
    completed: Math.max(seen.completed, done),
    pending: seen.remaining,
    claimed: 0,
    items: await store.countItems(record.id),
    isPaused: false,
    pauseReason: undefined,
    lanes: {},
    hosts: [],
  }
}

/** Percentiles are averaged, weighted by the number of pages. */
function mergeTallies(tallies: readonly WorkTally[]): Measured {
  const sum = (of: (tally: WorkTally) => number) => tallies.reduce((total, tally) => total + of(tally), 0)
  const pagesOf = ({ pages }: WorkTally) => pages.ok + pages.failed
  const pages = sum(pagesOf)
  const mean = (of: (tally: WorkTally) => number) =>
    pages === 0 ? 0 : Math.round(sum((tally) => of(tally) * pagesOf(tally)) / pages)
  return {
    fieldFill: Object.assign({}, ...tallies.map(({ fieldFill }) => fieldFill)),
    latencyMs: { p50: mean(({ latencyMs }) => latencyMs.p50), p95: mean(({ latencyMs }) => latencyMs.p95) },
    rssBytesMax: Math.max(0, ...tallies.map(({ rssBytesMax }) => rssBytesMax)),
    cpuMs: sum(({ cpuMs }) => cpuMs),
    errors: tallies.flatMap(({ errors }) => errors),
  }
}
