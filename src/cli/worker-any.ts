/** A worker on the runs of several scrapers, or of all: one run at a time, the neediest first. */

import type { FleetWorker, FleetWorkerEnd } from '../app/fleet/fleet-worker.ts'
import type { RunChooser } from '../app/fleet/run-chooser.ts'
import { ScrapeError } from '../core/errors.ts'
import { exitCodeOf, NEXT_RUN_MS, type WorkerProcess, workOnRun } from './worker-run.ts'

const STOPPED = 4
const LOOK_MS = 2_000

export async function workOnAny(scrapers: readonly string[], place: WorkerProcess): Promise<number> {
  const [{ openStoreDatabase }, { RunChooser }] = await Promise.all([
    import('../app/fleet/fleet.ts'),
    import('../app/fleet/run-chooser.ts'),
  ])
  const { flags, config, only, signals, vitals } = place
  const say = (line: string) => void (flags.quiet || process.stderr.write(`${line}\n`))
  const { store } = await openStoreDatabase(config.values, { connectionsMax: 1 })
  await using _ = store
  const chooser = new RunChooser({ store, config, scrapers, only, say })
  await chooser.open()
  let exitCode = 0
  while (!signals.isStopped()) {
    const chosen = await chooser.next().catch((error) => outage(error, flags.forever === true, say))
    if (chosen !== 'away') vitals.heardOf('store')
    if (chosen === undefined && !flags.forever) {
      say('no run has work for this worker')
      return exitCode
    }
    if (chosen === undefined || chosen === 'away') {
      await signals.sleep(NEXT_RUN_MS)
      continue
    }
    const { id } = chosen.run.record
    let end: FleetWorkerEnd
    try {
      end = await workOnRun(chosen.loaded, id, place, (worker) => giveWay(worker, chooser))
    } catch (error) {
      chooser.rest(id, error as Error) // it could not be joined
      continue
    }
    if (end.isDrained) return STOPPED
    if (end.end.how === 'finished') exitCode = Math.max(exitCode, exitCodeOf(end))
    else chooser.rest(id, end.end.how === 'halted' ? end.end.error : undefined)
  }
  return STOPPED
}

/** A worker that stays outlives its store's restart; whoever watches it hears of it at /healthz. */
function outage(error: unknown, isForever: boolean, say: (line: string) => void): 'away' {
  if (!isForever || !(error instanceof ScrapeError) || error.class !== 'service') throw error
  say(`${error.message}: waiting for it`)
  return 'away'
}

/** While it works, it looks now and then whether others need it more. */
function giveWay(worker: FleetWorker, chooser: RunChooser): Disposable {
  const sinceMs = performance.now()
  let isLooking = false
  const looking = setInterval(async () => {
    if (isLooking) return
    isLooking = true
    // A store that is away is the worker's own trouble, which it tells of.
    const isTime = await chooser.mustGiveWay(worker.runId, sinceMs).catch(() => false)
    if (isTime) worker.stop('there is more to do elsewhere')
    isLooking = false
  }, LOOK_MS)
  return { [Symbol.dispose]: () => clearInterval(looking) }
}
