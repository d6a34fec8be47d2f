/** One worker: opens what a crawl needs and runs it, in this process or in one of its own (`worker-process.ts`). */

import type { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd, CrawlParts, Sessions } from '../../crawl/contract.ts'
import { crawl } from '../../crawl/crawl.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import { openSqliteSlots } from '../../fetch/rate/sqlite-slots.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import type { Fetching, RateSharing } from './fetching.ts'
import { untilNothingRemains } from './only-files.ts'
import { createRecorder } from './recorder.ts'
import { type Rotation, rotateWhenRefused } from './rotation.ts'
import { startsFromList } from './seed.ts'
import { openSessions } from './sessions.ts'
import { withinOpenFiles } from './within-open-files.ts'
import { openWorkerFetching } from './worker-fetching.ts'
import { WorkerFiles } from './worker-files.ts'
import { openWorkerResources, type WorkerResources } from './worker-resources.ts'
import type { WorkerSpec } from './worker-spec.ts'

/** Items the sinks may be behind before the crawl waits for them. */
const BACKLOG_MAX = 5_000

interface WorkerParts {
  compiled: CompiledScraper
  frontier: Frontier
  bus: EventBus
  place: WorkerPlace
  /** True while more may come although nothing remains: the worker waits in place of ending. */
  isOpenEnded?: () => Promise<boolean>
  /** Others have fetched what the run may fetch: what is left are files. */
  pagesOver?: AbortSignal
  /** Other ways out, for when a site turns us away. Without it there is only `spec.proxy`, or the direct way. */
  rotation?: Rotation
}

/** Where a worker leaves what is no item, and with whom it shares the hosts. */
export interface WorkerPlace extends Pick<CrawlParts, 'runId' | 'keepSnapshot' | 'save'> {
  /** Rates and pauses shared with other workers; whatever is opened is given to `parts`, to be closed with the worker. */
  shareRates(parts: AsyncDisposableStack): Promise<RateSharing>
}

/** A worker of a run on this machine: everything is in the run's folder. */
export function placeIn(folder: RunFolder, isOneOfMany: boolean): WorkerPlace {
  return {
    runId: folder.runId,
    keepSnapshot: folder.keepSnapshot,
    save: folder.save,
    shareRates: async (parts) => (isOneOfMany ? { slots: parts.use(openSqliteSlots(folder.file('rates.db'))) } : {}),
  }
}

export async function work(given: WorkerSpec, worker: WorkerParts, stop: AbortSignal): Promise<CrawlEnd> {
  const { compiled, frontier, bus, place, rotation } = worker
  const spec = { ...given, concurrency: withinOpenFiles(given.concurrency, bus) }
  const sessions = openSessions(frontier)
  await using parts = new AsyncDisposableStack()
  const { fetching, browsers, fileHttp } = await openWorkerFetching(spec, worker, parts)
  using _ = rotation === undefined ? undefined : rotateWhenRefused({ bus, fetching, rotation })
  const halted = new AbortController()
  const ended = AbortSignal.any([stop, halted.signal])
  const waiting = { pages: 0 }
  const machine: WorkerResources = parts.use(
    openWorkerResources({
      workerId: spec.workerId,
      browsers,
      pagesMax: spec.browsers.pagesMax,
      pagesWaiting: () => waiting.pages,
      files: () => files,
      fileWorkersMax: spec.files.workersMax,
      batch: spec.claimMax ?? 2 * spec.concurrency,
      memoryReserveBytes: spec.memoryReserve,
      folder: spec.files.spool,
      bus,
    }),
  )
  const files: WorkerFiles = parts.use(
    new WorkerFiles(
      {
        spec: spec.files,
        frontier,
        limits: compiled.limits,
        rateLimit: fetching.rateLimit,
        sessions,
        mayFetch: async (url, signal) => await fetching.fetcher.robots?.check(url, signal),
        http: fileHttp,
        bus,
        runId: place.runId,
        scraper: compiled.scraper.name,
        workerId: spec.workerId,
        leaseMs: spec.leaseMs,
        drainMs: spec.drainMs,
        onBegin: machine.begin,
        takesShared: spec.only !== 'pages',
      },
      ended,
    ),
  )
  if (browsers !== undefined) machine.begin()
  let fileFailure: ScrapeError | undefined
  void files.failed.then((error) => {
    fileFailure = error
    halted.abort(error)
  })
  const end =
    spec.only === 'files'
      ? await untilNothingRemains(frontier, ended, worker.isOpenEnded)
      : await crawlPages(spec, worker, { fetching, browsers, sessions, files, machine, waiting }, ended)
  return fileFailure === undefined ? end : { how: 'halted', error: fileFailure }
}

interface OpenedParts {
  fetching: Fetching
  browsers: BrowserPool | undefined
  sessions: Sessions
  files: WorkerFiles
  machine: WorkerResources
  /** Kept up to date: pages that wait for a browser. */
  waiting: { pages: number }
}

async function crawlPages(
  spec: WorkerSpec,
  { compiled, frontier, bus, place, isOpenEnded, pagesOver }: WorkerParts,
  { fetching, browsers, sessions, files, machine, waiting }: OpenedParts,
  ended: AbortSignal,
): Promise<CrawlEnd> {
  const startHosts = JSON.parse((await frontier.getMeta('startHosts')) ?? '[]') as string[]
  const end = await crawl(
    {
      compiled,
      frontier,
      bus,
      fetcher: fetching.fetcher,
      rateLimit: fetching.rateLimit,
      browsers,
      sessions,
      keepDownload: files.keep,
      onFiles: files.ordered,
      onWaiting: (pages) => {
        waiting.pages = pages
      },
      runId: place.runId,
      workerId: spec.workerId,
      args: spec.args,
      policy: enqueuePolicy(compiled.limits, startHosts),
      startsFromList: await startsFromList(frontier),
      isFirstStart: spec.isFirstStart ?? false,
      concurrency: spec.concurrency,
      pagesMax: spec.pagesMax,
      leaseMs: spec.leaseMs,
      drainMs: spec.drainMs,
      backlogMax: BACKLOG_MAX,
      claimMax: machine.claimMax,
      isOpenEnded,
      keepSnapshot: place.keepSnapshot,
      save: place.save,
      onRead: spec.recordTo === undefined ? undefined : createRecorder(spec.recordTo),
      traceRatio: spec.traceRatio,
      now: Date.now,
      random: Math.random,
    },
    pagesOver === undefined ? ended : AbortSignal.any([ended, pagesOver]),
  )
  const isLimit = end.how === 'limit' || (end.how === 'stopped' && !ended.aborted)
  if (!isLimit) return end
  await files.drained() // the files of those pages belong to them
  // Who is stopped before they are stored leaves them, and the end of the run, to the next.
  return { how: ended.aborted ? 'stopped' : 'limit' }
}
