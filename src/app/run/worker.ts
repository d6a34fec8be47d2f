/** One worker: opens what a crawl needs and runs it, in this process or in one of its own (`worker-process.ts`). */

import type { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd, CrawlParts } from '../../crawl/contract.ts'
import { crawl } from '../../crawl/crawl.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import { typedAddresses } from '../../fetch/net/address.ts'
import { checkProxy } from '../../fetch/net/proxy-check.ts'
import { openSqliteSlots } from '../../fetch/rate/sqlite-slots.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import type { WorkPart } from '../../store/contract.ts'
import type { EgressSpec } from './egress-options.ts'
import { type Fetching, openFetching, type RateSharing } from './fetching.ts'
import { untilNothingRemains } from './only-files.ts'
import { canUseBrowsers, openBrowsers } from './open-browsers.ts'
import { createRecorder } from './recorder.ts'
import { type Rotation, rotateWhenRefused } from './rotation.ts'
import { startsFromList } from './seed.ts'
import { openSessions } from './sessions.ts'
import { withinOpenFiles } from './within-open-files.ts'
import { type FileSpec, WorkerFiles } from './worker-files.ts'
import { openWorkerResources, type WorkerResources } from './worker-resources.ts'

/** What a worker is told; plain data, so that it can be sent to another process. */
export interface WorkerSpec {
  workerId: string
  args: unknown
  /** Its share of the run's concurrency, overall and per host. */
  concurrency: number
  perHostConcurrency: number
  pagesMax: number
  leaseMs: number
  drainMs: number
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  cacheStore: string
  /** Tasks asked for at once. Default: twice the concurrency. */
  claimMax?: number
  /** Of a Tor of its own. */
  proxy?: string | undefined
  /** Proxies and identities; left out: none. */
  ways?: EgressSpec
  browsers: BrowserSpec
  files: FileSpec
  /** Left out: pages and files. */
  only?: WorkPart
  /** Memory that stays free for others. */
  memoryReserve: number
  /** True when several processes share the hosts' rate. */
  isOneOfMany: boolean
  /** Share of traces that are kept; left out: nothing is traced. */
  traceRatio?: number | undefined
  /** Where to keep pages as fixtures, if anywhere. */
  recordTo: string | undefined
}

/** Pages in browsers. */
export interface BrowserSpec {
  /** At first, and at most. */
  pages: number
  pagesMax: number
  executable: string | undefined
}

/** Items the sinks may be behind before the crawl waits for them. */
const BACKLOG_MAX = 5_000
const PROXY_MS_MAX = 5_000

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

export async function work(
  given: WorkerSpec,
  { compiled, frontier, bus, place, isOpenEnded, pagesOver, rotation }: WorkerParts,
  stop: AbortSignal,
): Promise<CrawlEnd> {
  const spec = { ...given, concurrency: withinOpenFiles(given.concurrency, bus) }
  if (spec.proxy !== undefined) await checkProxy(spec.proxy, PROXY_MS_MAX)
  // One way out or the other: what is to leave through Tor must not leave through a proxy somewhere.
  const ways = spec.ways === undefined || spec.proxy === undefined ? spec.ways : { ...spec.ways, proxies: [] }
  const startHosts = JSON.parse((await frontier.getMeta('startHosts')) ?? '[]') as string[]
  const namedHosts = JSON.parse((await frontier.getMeta('namedHosts')) ?? '[]') as string[]
  const allowAddresses = [...spec.allowAddresses, ...typedAddresses(namedHosts)]
  const sessions = openSessions(frontier)
  await using parts = new AsyncDisposableStack()
  const { userAgent, allowPrivate, proxy } = spec
  const isReader = spec.only !== 'files'
  const browsers =
    isReader && (await canUseBrowsers(compiled, spec.browsers.executable, bus))
      ? parts.use(
          await openBrowsers({
            limits: compiled.limits,
            pages: spec.browsers.pages,
            executable: spec.browsers.executable,
            spool: spec.files.spool,
            downloadBytesMax: spec.files.bytesMax,
            ...{ userAgent, allowPrivate, allowAddresses, proxy, bus },
          }),
        )
      : undefined
  const fetching = parts.use(
    await openFetching({
      limits: compiled.limits,
      concurrency: spec.concurrency,
      perHostConcurrency: spec.perHostConcurrency,
      userAgent,
      allowPrivate,
      allowAddresses,
      cacheStore: spec.cacheStore,
      sharing: await place.shareRates(parts),
      proxy,
      ways,
      waitsForProxies: true,
      browsers,
      bus,
    }),
  )
  const fileProxy = proxy ?? (await fileDoor(fetching, parts))
  using _ = rotation === undefined ? undefined : rotateWhenRefused({ bus, fetching, rotation })
  const recorder = spec.recordTo === undefined ? undefined : createRecorder(spec.recordTo)
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
        http: { userAgent, allowPrivate, allowAddresses, proxy: fileProxy },
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
  if (!isReader) {
    const end = await untilNothingRemains(frontier, ended, isOpenEnded)
    return fileFailure === undefined ? end : { how: 'halted', error: fileFailure }
  }
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
      concurrency: spec.concurrency,
      pagesMax: spec.pagesMax,
      leaseMs: spec.leaseMs,
      drainMs: spec.drainMs,
      backlogMax: BACKLOG_MAX,
      claimMax: machine.claimMax,
      isOpenEnded,
      keepSnapshot: place.keepSnapshot,
      save: place.save,
      onRead: recorder,
      traceRatio: spec.traceRatio,
      now: Date.now,
      random: Math.random,
    },
    pagesOver === undefined ? ended : AbortSignal.any([ended, pagesOver]),
  )
  const isLimit = end.how === 'limit' || (end.how === 'stopped' && !ended.aborted)
  if (isLimit) await files.drained() // the files of those pages belong to them
  if (fileFailure !== undefined) return { how: 'halted', error: fileFailure }
  // Who is stopped before they are stored leaves them, and the end of the run, to the next.
  return isLimit ? { how: ended.aborted ? 'stopped' : 'limit' } : end
}

/** Files are fetched by other processes: where there are proxies, through a door of ours that leads to one that works. */
async function fileDoor({ proxies }: Fetching, parts: AsyncDisposableStack): Promise<string | undefined> {
  if (proxies === undefined) return undefined
  const { openEgressProxy } = await import('../../fetch/net/egress.ts')
  const options = { guard: proxies.guard, bytesMax: Number.POSITIVE_INFINITY, onFlood: () => {} }
  return parts.use(await openEgressProxy(options)).proxyServer
}
