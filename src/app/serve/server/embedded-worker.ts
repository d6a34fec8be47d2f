/** A worker in its own process, for a server on a fleet's queue: joins one run and leaves when nothing is left. */

import { resolveConfig } from '../../../config/config.ts'
import { loadScraper } from '../../../config/load-scraper.ts'
import { SERVER_GONE, SERVER_STOPPED } from '../../../runs/run-record.ts'
import { joinRun } from '../../fleet/join-run.ts'

export interface WorkerOrders {
  scraper: string
  runId: string
  /** The server's options, which override the environment. */
  flags: Record<string, unknown>
}

const BATCH_SIZE = 50
/** A usage or configuration error, or a scraper that differs: another process would fail the same way. */
export const HOPELESS = 2

process.once('message', async ({ scraper, runId, flags }: WorkerOrders) => {
  try {
    const worker = await joinRun({
      loaded: await loadScraper(scraper),
      config: await resolveConfig({ flags }),
      runId,
      batchSize: BATCH_SIZE,
      isForever: false,
      useTor: false,
      isServed: true,
    })
    process.on('SIGTERM', () => worker.stop(SERVER_STOPPED))
    process.on('disconnect', () => worker.stop(SERVER_GONE))
    process.send?.({ workerId: worker.id })
    await worker.result
    process.exit(0)
  } catch (error) {
    console.error(`worker of run ${runId}: ${(error as Error).message}`)
    process.exit(HOPELESS)
  }
})
