/**
 * How a run of a fleet ends. Every worker that leaves looks whether the run is over: the first to find it so writes it down, and
 * those that leave after it bring its figures up to date.
 */
import type { RunRecord, RunState } from '../../core/run.ts'
import type { CompiledScraper } from '../../crawl/compiled.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import type { Store, StoredRun } from '../../orchestrator/contract.ts'
import { countFiles } from '../look/file-records.ts'
import { judge, setFiles } from '../run/run-record.ts'
import { isFilled } from '../run/seed.ts'
import { updateFleetRecord } from './fleet-record.ts'

export interface LeavingParts {
  store: Store
  run: StoredRun
  frontier: Frontier
  compiled: CompiledScraper
  /** Where those of its files are. */
  records: string
}

export interface Leaving {
  end: CrawlEnd
  /** The run's own limit that ended this worker, in words. */
  limit: string | undefined
}

/** States a leaving worker may change: what a person stopped stays stopped. */
const OPEN: readonly RunState[] = ['running', 'finished']

export async function leaveRun(
  { store, run, frontier, compiled, records }: LeavingParts,
  leaving: Leaving,
): Promise<RunRecord> {
  const runId = run.record.id
  const current = (await store.findRun(runId))?.record ?? run.record
  const record = { ...current }
  const stats = await frontier.stats()
  const workers = await store.listWorkers({ runId })
  updateFleetRecord(record, stats, workers, Date.now())
  await countFleetFiles(record, stats, { frontier, records })
  const ending = OPEN.includes(current.state) ? endingOf(leaving, stats, await isFilled(frontier)) : undefined
  if (ending !== undefined) {
    judge(record, ending.end, compiled, ending.reason)
    record.finishedAt = current.finishedAt ?? new Date().toISOString()
    updateFleetRecord(record, stats, workers, Date.now())
    await countFleetFiles(record, stats, { frontier, records })
    // The others hear of it with their next sign of life.
    if (record.state !== 'finished') await frontier.setMeta('stop', record.reason ?? 'stopped')
  }
  await store.saveRun(record, [current.state])
  return record
}

/** By what is certain, where a worker may have died with what it had counted. */
async function countFleetFiles(
  record: RunRecord,
  stats: FrontierStats,
  { frontier, records }: Pick<LeavingParts, 'frontier' | 'records'>,
): Promise<void> {
  if (filesOf(record.files) === 0) return
  const certain = await countFiles(records, record.id, frontier).catch(() => undefined)
  if (certain !== undefined) setFiles(record, stats, { ...record.files, ...certain })
}

const filesOf = ({ stored, same, failed, retried }: RunRecord['files']) => stored + same + failed + retried

/** Undefined: the run goes on without this worker. */
function endingOf(
  { end, limit }: Leaving,
  stats: FrontierStats,
  isFull: boolean,
): { end: CrawlEnd; reason?: string } | undefined {
  if (end.how === 'halted') {
    // A scraper that said stop(), or cannot run anywhere; a lost database is this worker's own trouble.
    const { code, class: cls } = end.error
    return code === 'E_STOPPED' || cls === 'definition' || cls === 'usage' ? { end } : undefined
  }
  if (isFull && stats.remaining === 0) return { end: { how: 'finished' } }
  return limit === undefined ? undefined : { end: { how: 'stopped' }, reason: limit }
}
