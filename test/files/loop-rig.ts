/** A run's file side for tests: frontier, pool, records and loop, assembled like in the composition root. */
import { join } from 'node:path'
import type { FileOrders } from '../../src/app/run/file-process.ts'
import { createEventBus, type EventOf } from '../../src/core/events.ts'
import { FILES_LANE, type Json, type NewTask } from '../../src/core/task.ts'
import { decide } from '../../src/crawl/retry.ts'
import { createRateLimit } from '../../src/fetch/rate/rate-limit.ts'
import type { FileOrder } from '../../src/files/contract.ts'
import { type FileLoopParts, type FilesEnd, runFiles } from '../../src/files/loop.ts'
import { type OpenFilePool, openFilePool } from '../../src/files/pool.ts'
import { openSqliteRecords } from '../../src/files/records.ts'
import type { Frontier } from '../../src/frontier/contract.ts'
import { openFrontier } from '../../src/frontier/open.ts'
import { ENTRY, orders } from './rig.ts'

export interface RigOptions {
  folder: string
  frontier?: string
  orders?: Partial<FileOrders>
  env?: NodeJS.ProcessEnv
  parts?: Partial<FileLoopParts>
  perHost?: number
  workers?: number
  retries?: number
}

export interface LoopRig extends AsyncDisposable {
  frontier: Frontier
  pool: OpenFilePool
  records: ReturnType<typeof openSqliteRecords>
  events: EventOf<'file'>[]
  loop: ReturnType<typeof runFiles>
  /** Resolves with the next or an earlier event for which this is true. */
  event(isIt: (event: EventOf<'file'>) => boolean): Promise<EventOf<'file'>>
  /** Resolves when nothing is left in the frontier, or the loop has ended. */
  finished(): Promise<void>
  stop(): Promise<FilesEnd>
}

export function fileTask(url: string, order: FileOrder = { type: 'download' }, more: Partial<NewTask> = {}): NewTask {
  return { url, route: '(file)', data: order as unknown as Json, depth: 1, lane: FILES_LANE, ...more }
}

export async function startLoop(options: RigOptions): Promise<LoopRig> {
  const { folder, parts = {}, workers = 1, perHost = 8, retries = 3 } = options
  await using opening = new AsyncDisposableStack()
  const bus = createEventBus()
  const events: EventOf<'file'>[] = []
  const listeners = new Set<() => void>()
  bus.on((event) => {
    if (event.type === 'file') events.push(event)
    for (const listener of listeners) listener()
  })
  const frontier = parts.frontier ?? opening.use(await openFrontier(options.frontier ?? 'memory:'))
  const records = opening.use(openSqliteRecords(join(folder, 'files.db')))
  const pool = opening.use(
    openFilePool({
      entry: ENTRY,
      orders: orders(folder, options.orders),
      workers,
      findStored: records.findStored,
      ...(options.env === undefined ? {} : { env: options.env }),
    }),
  )
  const limits = { perHost: { concurrency: perHost, rps: 0, delayMs: 0 }, concurrency: 64, crawlDelayMsMax: 0 }
  const rateLimit = opening.use(createRateLimit(limits))
  const stop = new AbortController()
  const retryLimits = { retries, backoff: 10, backoffMax: 50, retryAfterMax: 60_000 }
  const loop = runFiles(
    {
      frontier,
      pool,
      records,
      rateLimit,
      decide: (error, attempt) => decide(error, { attempt }, retryLimits, Date.now()),
      bus,
      runId: 'run-1',
      scraper: 'shop',
      workerId: 'w1/files',
      leaseMs: 30_000,
      drainMs: 0,
      patience: { waitMsMin: 50, waitMsMax: 200, awayMsMax: 60_000 },
      ...parts,
    },
    stop.signal,
  )
  let hasEnded = false
  void loop.ended.then(() => {
    hasEnded = true
  })
  const held = opening.move()
  return {
    frontier,
    pool,
    records,
    events,
    loop,
    event: (isIt) =>
      new Promise((resolve) => {
        const look = () => {
          const found = events.find(isIt)
          if (found === undefined) return
          listeners.delete(look)
          resolve(found)
        }
        listeners.add(look)
        look()
      }),
    async finished() {
      while (!hasEnded && (await frontier.stats()).remaining > 0)
        await new Promise((resolve) => setTimeout(resolve, 10))
    },
    async stop() {
      stop.abort(new Error('stop'))
      return await loop.ended
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('stop'))
      await loop.ended
      await held.disposeAsync()
    },
  }
}
