/** Several worker processes on one machine: starts them, receives their events, replaces those that die, ends when they end. */
import { startChild } from '../../core/child.ts'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { EventBus, RunEvent } from '../../core/events.ts'
import type { Limits } from '../../core/options.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import { fileWorkerId } from './worker-files.ts'
import type { WorkerSpec } from './worker-spec.ts'

/** Parent → child, once. */
export interface WorkerOrders {
  spec: WorkerSpec
  scraperFile: string
  limits: Limits
  folder: string
  frontierUrl: string
}

/** Child → parent. Errors are sent as code and message. */
export type WorkerMessage =
  | { kind: 'ready' }
  | { kind: 'events'; events: RunEvent[] }
  | { kind: 'end'; end: { how: string; code?: string; message?: string } }

interface ProcessesParts {
  spec: WorkerSpec
  processes: number
  compiled: CompiledScraper
  limits: Limits
  frontier: Frontier
  frontierUrl: string
  bus: EventBus
  folder: RunFolder
  lossesMax: number
  /** What remains of the run's page limit: a replacement worker must not start its share from scratch. */
  pagesLeft: () => Promise<number>
}

/** After this many deaths without a settled page in between, workers are no longer replaced. */
export const DEATHS_IN_A_ROW_MAX = 10
/** A suspect lost this often while it ran alone is what kills the workers. */
export const LOSSES_MAX = 3
/** Extra time beyond the drain time to hand tasks back. */
const KILL_GRACE_MS = 5_000
const ENTRY = new URL('./worker-process.ts', import.meta.url)

export async function runProcesses(parts: ProcessesParts, stop: AbortSignal): Promise<CrawlEnd> {
  const { compiled, frontier, bus } = parts
  if (compiled.file === undefined) throw new ScrapeError('E_OPTION', 'several processes need a scraper that is a file')
  if (!frontier.can.shared)
    throw new ScrapeError('E_OPTION', `several processes cannot share a ${frontier.engine} frontier`)
  const ending = new AbortController()
  const ended = AbortSignal.any([stop, ending.signal])
  let settled = 0
  const unlisten = bus.on((event) => {
    if (event.type === 'committed') settled += event.outcomes
  })
  try {
    const specs = share(parts)
    if (specs.length < parts.processes) {
      const message = `${specs.length} processes in place of ${parts.processes}: no more may be in flight at once`
      bus.emit({ type: 'log', level: 'warn', message })
    }
    const ends = await Promise.all(
      specs.map(async (spec) => {
        const end = await keepRunning(spec, parts, ended, () => settled)
        if (end.how === 'halted') ending.abort() // an error that ends one worker ends the run
        return end
      }),
    )
    return ends.find((end) => end.how === 'halted') ?? ends.find((end) => end.how !== 'finished') ?? { how: 'finished' }
  } finally {
    unlisten()
  }
}

/**
 * Concurrency limits apply to the whole run, and per host across all processes, so there are never more processes than either.
 */
function share({ spec, processes }: ProcessesParts): WorkerSpec[] {
  const count = Math.min(processes, spec.concurrency, spec.perHostConcurrency)
  const part = (whole: number, i: number) => Math.floor(whole / count) + (i < whole % count ? 1 : 0)
  return Array.from({ length: count }, (_, i) => ({
    ...spec,
    workerId: `${spec.workerId}-${i + 1}`,
    concurrency: part(spec.concurrency, i),
    perHostConcurrency: part(spec.perHostConcurrency, i),
    pagesMax: part(spec.pagesMax, i),
    browsers: {
      ...spec.browsers,
      pages: Math.max(1, part(spec.browsers.pages, i)),
      pagesMax: Math.max(1, part(spec.browsers.pagesMax, i)),
    },
    files: { ...spec.files, workersMax: Math.max(1, part(spec.files.workersMax, i)) },
  })).filter((one) => one.pagesMax > 0)
}

/** Keeps one worker running: when its process dies, its tasks are handed back and another takes over. */
async function keepRunning(
  spec: WorkerSpec,
  parts: ProcessesParts,
  stop: AbortSignal,
  settled: () => number,
): Promise<CrawlEnd> {
  let deaths = 0
  let settledAtDeath = 0
  for (let life = 1; ; life++) {
    const workerId = `${spec.workerId}.${life}`
    const pagesMax = life === 1 ? spec.pagesMax : Math.min(spec.pagesMax, await parts.pagesLeft())
    const end = pagesMax > 0 ? await runOne({ ...spec, workerId, pagesMax }, parts, stop) : { how: 'limit' as const }
    if (typeof end === 'object') return end
    await sweep(parts, [workerId, fileWorkerId(workerId)])
    if (stop.aborted) return { how: 'stopped' }
    deaths = settled() > settledAtDeath ? 1 : deaths + 1
    settledAtDeath = settled()
    parts.bus.emit({
      type: 'log',
      level: 'error',
      message: `worker process ${workerId} died (${end}); starting another`,
    })
    if (deaths >= DEATHS_IN_A_ROW_MAX) {
      return {
        how: 'halted',
        error: new ScrapeError('E_WORKERS_DIE', `worker processes died ${deaths} times in a row (${end})`),
      }
    }
  }
}

/** How the worker ended, or what killed it. */
async function runOne(spec: WorkerSpec, parts: ProcessesParts, stop: AbortSignal): Promise<CrawlEnd | string> {
  const { compiled, limits, folder, frontierUrl, bus } = parts
  let end: CrawlEnd | undefined
  const child = startChild<WorkerOrders, WorkerMessage>(ENTRY, {
    onMessage(message) {
      if (message.kind === 'events') for (const event of message.events) bus.emit(event)
      if (message.kind === 'end') end = toCrawlEnd(message.end)
    },
  })
  const onStop = () => void child.stop(spec.drainMs + KILL_GRACE_MS)
  stop.addEventListener('abort', onStop, { once: true })
  child.send({ spec, scraperFile: compiled.file!, limits, folder: folder.path, frontierUrl })
  if (stop.aborted) onStop()
  const { how } = await child.ended
  stop.removeEventListener('abort', onStop)
  return end ?? how
}

function toCrawlEnd({ how, code, message }: Extract<WorkerMessage, { kind: 'end' }>['end']): CrawlEnd {
  if (how !== 'halted') return { how } as CrawlEnd
  return { how, error: new ScrapeError(code as ScrapeError['code'], message ?? 'unknown') }
}

/** Returns the tasks of dead workers to the queue. */
export async function sweep(
  { frontier, bus, lossesMax }: Pick<ProcessesParts, 'frontier' | 'bus' | 'lossesMax'>,
  workerIds: string[] = [],
): Promise<void> {
  try {
    const swept = await frontier.sweep({ lossesMax, workerIds })
    if (swept.returned + swept.dead > 0) bus.emit({ type: 'leases.expired', ...swept })
  } catch (error) {
    bus.emit({ type: 'log', level: 'warn', message: toScrapeError(error, 'E_SERVICE').message })
  }
}
