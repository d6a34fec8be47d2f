/** One worker: opens what a crawl needs and runs it, in this process or in one of its own (`worker-process.ts`). */
import { ERRORS } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { contentKey, type ItemRow } from '../../core/item.ts'
import { LruSet } from '../../core/lru-set.ts'
import type { Emitted } from '../../core/scraper.ts'
import { FILES_LANE } from '../../core/task.ts'
import type { CompiledScraper } from '../../crawl/compiled.ts'
import type { CrawlEnd, CrawlParts } from '../../crawl/contract.ts'
import { crawl } from '../../crawl/crawl.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import type { Settled } from '../../crawl/settle.ts'
import { openSqliteSlots } from '../../fetch/shared-slots.ts'
import { pageOf } from '../../fetch/status.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { writeBatches } from '../../pipeline/batch.ts'
import { Channel } from '../../pipeline/channel.ts'
import { createRecorder } from '../author/record.ts'
import { type Fetching, openFetching, type RateSharing } from './fetching.ts'
import type { RunFolder } from './run-folder.ts'
import { openSessions } from './sessions.ts'

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
  proxy: string | undefined
  /** True when several processes share the hosts' rate. */
  isOneOfMany: boolean
  /** Where to keep pages as fixtures, if anywhere. */
  recordTo: string | undefined
}

/** Settled pages that may wait for their commit. */
const CHANNEL_CAPACITY = 512
/** Items the sinks may be behind before the crawl waits for them. */
const BACKLOG_MAX = 5_000
/** Item keys a worker remembers, to tell a handler at once that it emitted one before. */
const RECALL_MAX = 4096
/** Answers to what was sent the old way come for a while yet and are no news; nor does Tor make new circuits more often. */
const ROTATE_MS_MIN = 10_000

export interface WorkerParts {
  compiled: CompiledScraper
  frontier: Frontier
  bus: EventBus
  place: WorkerPlace
  /** True while more may come although nothing remains: the worker waits in place of ending. */
  isOpenEnded?: () => Promise<boolean>
  /** Other ways out, for when a site turns us away. Without it there is only `spec.proxy`, or the direct way. */
  rotation?: Rotation
}

export interface Rotation {
  /** The proxy URL to go on with: another proxy, or another user of the same one. Must not block. */
  next(): string
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
  spec: WorkerSpec,
  { compiled, frontier, bus, place, isOpenEnded, rotation }: WorkerParts,
  stop: AbortSignal,
): Promise<CrawlEnd> {
  if (spec.proxy !== undefined) await reachProxy(spec.proxy)
  const startHosts = JSON.parse((await frontier.getMeta('startHosts')) ?? '[]') as string[]
  await using parts = new AsyncDisposableStack()
  await using fetching = await openFetching({
    limits: compiled.limits,
    concurrency: spec.concurrency,
    perHostConcurrency: spec.perHostConcurrency,
    userAgent: spec.userAgent,
    allowPrivate: spec.allowPrivate,
    allowAddresses: [...spec.allowAddresses, ...startHosts],
    cacheStore: spec.cacheStore,
    sharing: await place.shareRates(parts),
    proxy: spec.proxy,
    bus,
  })
  using _ = rotation === undefined ? undefined : rotateWhenRefused({ bus, fetching, rotation })
  const recorder = spec.recordTo === undefined ? undefined : createRecorder(spec.recordTo)
  return await crawl(
    {
      compiled,
      frontier,
      bus,
      fetcher: fetching.fetcher,
      rateLimit: fetching.rateLimit,
      channel: new Channel<Settled>(CHANNEL_CAPACITY),
      writeBatches,
      runId: place.runId,
      workerId: spec.workerId,
      args: spec.args,
      policy: enqueuePolicy(compiled.limits, startHosts),
      concurrency: spec.concurrency,
      pagesMax: spec.pagesMax,
      leaseMs: spec.leaseMs,
      drainMs: spec.drainMs,
      backlogMax: BACKLOG_MAX,
      claimMax: () => spec.claimMax ?? 2 * spec.concurrency,
      sessions: openSessions(frontier),
      keepDownload: async ({ path }) => ({ path, lane: FILES_LANE }),
      ...(isOpenEnded === undefined ? {} : { isOpenEnded }),
      keepSnapshot: place.keepSnapshot,
      failedPage: pageOf,
      save: place.save,
      recall: createRecall(),
      ...(recorder === undefined ? {} : { onRead: recorder }),
      now: Date.now,
      random: Math.random,
    },
    stop,
  )
}

const monotonicMs = () => performance.now()

export interface RefusalParts {
  bus: EventBus
  fetching: Pick<Fetching, 'rotate'>
  rotation: Rotation
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number
}

/** Listens until disposed of: an error whose verdict is 'rotate' makes the pages that follow take the next way out. */
export function rotateWhenRefused({ bus, fetching, rotation, now = monotonicMs }: RefusalParts): Disposable {
  let rotatedAtMs = Number.NEGATIVE_INFINITY
  const unlisten = bus.on((event) => {
    if (event.type !== 'page' || event.error === undefined || ERRORS[event.error.code].verdict !== 'rotate') return
    const nowMs = now()
    if (nowMs - rotatedAtMs < ROTATE_MS_MIN) return
    rotatedAtMs = nowMs
    try {
      fetching.rotate(rotation.next())
      const message = `${event.host}: ${event.error.code}; the next pages take another way out`
      bus.emit({ type: 'log', level: 'info', message })
    } catch (error) {
      // A listener must not throw, and the old way is still there.
      bus.emit({ type: 'log', level: 'warn', message: `no other way out: ${(error as Error).message}` })
    }
  })
  return { [Symbol.dispose]: unlisten }
}

function createRecall(): (row: ItemRow) => Emitted {
  const keys = new LruSet(RECALL_MAX)
  const contents = new LruSet(RECALL_MAX)
  return ({ key, json, content = contentKey(json) }) => {
    const isNewContent = contents.add(content)
    if (keys.add(key)) return 'new'
    return isNewContent ? 'changed' : 'same'
  }
}

const PROXY_MS_MAX = 5_000

/** A proxy that is not there would cost every page its tries: better to say so before the first one is claimed. */
async function reachProxy(proxy: string): Promise<void> {
  const { hostname, port, protocol } = new URL(proxy)
  const { connect } = process.getBuiltinModule('node:net')
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'http:' ? 80 : 1080),
  })
  socket.setTimeout(PROXY_MS_MAX, () => socket.destroy(new Error(`no answer in ${PROXY_MS_MAX} ms`)))
  try {
    await process.getBuiltinModule('node:events').once(socket, 'connect')
  } catch (cause) {
    throw new ScrapeError('E_PROXY', `the proxy ${hostname}:${port} cannot be reached: ${(cause as Error).message}`, {
      cause,
    })
  } finally {
    socket.destroy()
  }
}
