/** The orchestrator as a library: starts fleet runs by scraper name, and reports on them. */
import { ScrapeError } from '../../core/errors.ts'
import type { FrontierStats } from '../../frontier/contract.ts'
import type { FoundUrl } from '../../sources/contract.ts'

/** Where the queue and the store are. */
interface OrchestratorOptions {
  /** `postgres://…`. Default: SLUICE_FRONTIER. */
  frontier?: string
  store?: string
}

/** Arguments and start URLs of a run. */
interface StartScraperOptions {
  args?: Record<string, unknown>
  /** Used instead of the scraper's own start tasks. May be of any length. */
  urls?: Iterable<string> | AsyncIterable<string>
  /** Resume this run; true: the newest unfinished one. */
  resume?: string | true
}

/** A run that waits for workers. */
interface QueuedRun {
  status: 'queued' | 'resumed'
  run_id: string
  enqueued: number
  worker_command: string
}

/** How many tasks are in which state. */
type QueueCounts = Pick<FrontierStats, 'pending' | 'claimed' | 'completed' | 'failed' | 'remaining'>

/** The result of `createOrchestrator`. */
export interface Orchestrator {
  /** Creates a run, or resumes one, and fills its queue. The scraper is named as on the command line. */
  startScraper(scraper: string, options?: StartScraperOptions): Promise<QueuedRun>
  getStats(runId: string): Promise<QueueCounts>
}

/** Starts fleet runs and reports on them, like `sluice start` and `sluice stats`. */
export function createOrchestrator(places: OrchestratorOptions = {}): Orchestrator {
  return {
    async startScraper(name, { args = {}, urls, resume } = {}) {
      const [{ resolveConfig }, { loadScraper }, { startDistributed, workerCommand }, { createEventBus }] =
        await Promise.all([
          import('../../config/config.ts'),
          import('../../config/load-scraper.ts'),
          import('./start-distributed.ts'),
          import('../../core/events.ts'),
        ])
      const started = await startDistributed({
        loaded: await loadScraper(name),
        source: name,
        args,
        config: await resolveConfig({ flags: places }),
        bus: createEventBus(),
        stop: new AbortController().signal,
        urls: urls === undefined ? undefined : numbered(urls),
        resume,
      })
      return {
        status: started.status,
        run_id: started.runId,
        enqueued: started.enqueued,
        worker_command: ['sluice', ...workerCommand(name, started)].join(' '),
      }
    },

    async getStats(runId) {
      const [{ resolveConfig }, { openStore }, { openQueueToLook }] = await Promise.all([
        import('../../config/config.ts'),
        import('../../runs/fleet-places.ts'),
        import('../../runs/queue-view.ts'),
      ])
      const { values } = await resolveConfig({ flags: places })
      await using store = await openStore(values)
      const run = await store.findRun(runId)
      if (run === undefined) throw new ScrapeError('E_RUN_NOT_FOUND', `no run ${runId} in ${store.place}`)
      await using frontier = await openQueueToLook(values, run.record, store)
      const { pending, claimed, completed, failed, remaining } = await frontier.stats()
      return { pending, claimed, completed, failed, remaining }
    },
  }
}

async function* numbered(urls: Iterable<string> | AsyncIterable<string>): AsyncGenerator<FoundUrl> {
  let line = 0
  for await (const text of urls) yield { text, from: `URL ${++line}`, isNamed: false }
}
