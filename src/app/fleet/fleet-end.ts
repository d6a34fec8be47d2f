/**
 * How a fleet run ends. Every worker that leaves checks whether the run is over: the first to find it so records the end, and
 * workers that leave later update its figures.
 */
import { exitCodeOfClass, type ScrapeError } from '../../core/errors.ts'
import { isComplete, type RunRecord } from '../../core/run.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import { countFiles, countPages } from '../../runs/file-records.ts'
import { lastReported, updateFleetRecord } from '../../runs/fleet-record.ts'
import { judge, setFiles } from '../../runs/run-record.ts'
import type { Store, StoredRun, StoredWorker, WorkPart } from '../../store/contract.ts'
import { findExamples } from '../run/error-examples.ts'
import { filesLeft, pagesOver, setPagesOver } from '../run/only-files.ts'
import { isFilled } from '../run/seed.ts'

interface LeavingParts {
  store: Store
  run: StoredRun
  frontier: Frontier
  compiled: CompiledScraper
  /** Where the records of the run's files are. */
  records: string
  /** What the worker was asked to do. */
  request: { only?: WorkPart | undefined }
}

interface Leaving {
  end: CrawlEnd
  /** Description of the run limit that ended this worker. */
  limit: string | undefined
}

/** A run that a user stopped stays stopped. */
const mayEnd = (record: RunRecord) => record.state === 'running' || isComplete(record)

export async function leaveRun(parts: LeavingParts, leaving: Leaving): Promise<RunRecord> {
  const { store, run, frontier, compiled, records } = parts
  const runId = run.record.id
  const current = (await store.findRun(runId))?.record ?? run.record
  const record = { ...current }
  const stats = await frontier.stats()
  const workers = await store.listWorkers({ runId })
  updateFleetRecord(record, stats, workers, Date.now())
  await countFleetFiles(record, stats, { frontier, records })
  const limit = await limitNow(parts, leaving, { stats, workers })
  const ending = mayEnd(current) ? endingOf({ ...leaving, limit }, stats, await isFilled(frontier)) : undefined
  if (ending !== undefined) {
    judge(record, ending.end, compiled, ending.reason)
    record.finishedAt = current.finishedAt ?? new Date().toISOString()
    updateFleetRecord(record, stats, workers, Date.now())
    await findExamples(record, frontier)
    await countFleetFiles(record, stats, { frontier, records })
    // The other workers learn of it with their next heartbeat.
    if (!isComplete(record)) await frontier.setMeta('stop', record.reason ?? 'stopped')
  }
  await store.saveRun(record, [current.state])
  return record
}

/** The run's queue is gone: no worker can continue the run, and an empty queue must not count as its end. */
export async function loseRun(
  { store, run }: Pick<LeavingParts, 'store' | 'run'>,
  error: ScrapeError,
): Promise<RunRecord> {
  const { id } = run.record
  const current = (await store.findRun(id))?.record ?? run.record
  if (current.state !== 'running') return current
  const workers = await store.listWorkers({ runId: id })
  const record: RunRecord = {
    ...current,
    state: 'failed',
    finishedAt: new Date().toISOString(),
    reason: error.message,
    exitCode: exitCodeOfClass(error.class),
    isComplete: false,
  }
  updateFleetRecord(record, await lastReported(current, workers, store), workers, Date.now())
  await store.saveRun(record, ['running'])
  return record
}

/** The limit that ends the run now. With a page limit, the files of those pages that other workers still store come first. */
async function limitNow(
  { run, frontier, compiled, records, request }: LeavingParts,
  { end, limit }: Leaving,
  { stats, workers }: { stats: FrontierStats; workers: readonly StoredWorker[] },
): Promise<string | undefined> {
  const { wokenAtMs } = run
  if (request.only === 'files') {
    if (end.how !== 'limit') return limit
    const over = await pagesOver(frontier)
    await setPagesOver(frontier, undefined)
    return over?.wokenAtMs === wokenAtMs ? over.reason : undefined
  }
  const areStored =
    request.only === 'pages' || workers.some(({ only, state }) => only === 'files' && state === 'working')
  if (limit === undefined || !areStored || filesLeft(stats) === 0) return limit
  const pagesMax = compiled.limits.pages ?? Number.POSITIVE_INFINITY
  const isOfPages = end.how === 'limit' || (await countPages(records, run.record.id, frontier)) >= pagesMax
  if (!isOfPages) return limit // the time limit applies to files, too
  await setPagesOver(frontier, { wokenAtMs, reason: limit })
  return undefined
}

/** Uses only confirmed figures, because a worker may have died with its counts. */
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

/** Undefined: the run continues without this worker. */
function endingOf(
  { end, limit }: Leaving,
  stats: FrontierStats,
  isFull: boolean,
): { end: CrawlEnd; reason?: string } | undefined {
  if (end.how === 'halted') {
    // The scraper called stop() or cannot run anywhere, or the hosts reject every worker; a lost database affects only this
    // worker.
    const { class: cls, code } = end.error
    if (code === 'E_PROXIES_LOST') return undefined // affects only this worker; others may have working proxies
    return cls === 'stopped' || cls === 'definition' || cls === 'usage' ? { end } : undefined
  }
  if (isFull && stats.remaining === 0) return { end: { how: 'finished' } }
  return limit === undefined ? undefined : { end: { how: 'stopped' }, reason: limit }
}
