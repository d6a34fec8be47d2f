/** A worker on the runs of some scrapers, or of all: one run at a time, the neediest first. */

import type { FleetWorker, FleetWorkerEnd } from '../app/fleet/fleet-worker.ts'
import type { ChosenRun, RunChooser } from '../app/fleet/run-chooser.ts'
import { ScrapeError } from '../core/errors.ts'
import { every } from '../core/every.ts'
import { note } from './output.ts'
import { exitCodeOf, type WorkerProcess, workOnRun } from './worker-run.ts'

const STOPPED = 4
const NEXT_RUN_MS = 2_000
const LOOK_MS = 2_000

export async function workOnAny(scrapers: readonly string[], place: WorkerProcess): Promise<number> {
  const [{ openStoreDatabase }, { RunChooser }] = await Promise.all([
    import('../runs/fleet-places.ts'),
    import('../app/fleet/run-chooser.ts'),
  ])
  const { flags, config, only, signals, vitals } = place
  const say = (line: string) => void (flags.quiet || note(`${line}`))
  const { store } = await openStoreDatabase(config.values, { connectionsMax: 1 })
  await using _ = store
  await using chooser = new RunChooser({ store, config, scrapers, only, say })
  await chooser.open()
  let exitCode = 0
  while (!signals.isStopped()) {
    const chosen = await chooser.next().catch((error) => outage(error, flags.forever === true, say))
    if (chosen !== 'away') vitals.heardOf('store')
    if (chosen === 'more') continue
    if (chosen === 'none' && !flags.forever) {
      say('no run has work for this worker')
      return exitCode
    }
    if (chosen === 'none' || chosen === 'away') {
      await signals.sleep(NEXT_RUN_MS)
      continue
    }
    const ended = await workUntilOthersWait(chosen, chooser, place)
    if (ended?.isDrained) return STOPPED
    if (ended?.end.how === 'finished') exitCode = Math.max(exitCode, exitCodeOf(ended))
  }
  return STOPPED
}

/** Undefined: it could not be joined. */
async function workUntilOthersWait(
  { run, loaded }: ChosenRun,
  chooser: RunChooser,
  place: WorkerProcess,
): Promise<FleetWorkerEnd | undefined> {
  const { id } = run.record
  try {
    const ended = await workOnRun(loaded, id, place, (worker) => giveWay(worker, chooser))
    chooser.left(id, ended.end)
    return ended
  } catch (error) {
    chooser.rest(id, error as Error)
    return undefined
  }
}

/** A persistent worker outlives a restart of its store; /healthz reports the outage. */
function outage(error: unknown, isForever: boolean, say: (line: string) => void): 'away' {
  if (!isForever || !(error instanceof ScrapeError) || error.class !== 'service') throw error
  say(`${error.message}: waiting for it`)
  return 'away'
}

/** While working, checks now and then whether other runs need it more. */
function giveWay(worker: FleetWorker, chooser: RunChooser): Disposable {
  const sinceMs = performance.now()
  let isLooking = false
  const looking = every(async () => {
    if (isLooking) return
    isLooking = true
    // If the store is down, the worker itself reports it.
    const isTime = await chooser.mustGiveWay(worker, sinceMs).catch(() => false)
    if (isTime) worker.stop('there is more to do elsewhere')
    isLooking = false
  }, LOOK_MS)
  return { [Symbol.dispose]: () => clearInterval(looking) }
}
