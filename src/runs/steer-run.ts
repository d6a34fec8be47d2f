/** Controls a run from outside, whether or not it is being worked on: pause, resume, cancel. */
import { hostname, userInfo } from 'node:os'
import { isComplete, type RunRecord } from '../core/run.ts'
import { isLeftByServer } from './run-record.ts'
import { frontierOf, type OpenRun } from './run-view.ts'

export interface Steered {
  /** False if the run was already in this state, or has ended. */
  isChanged: boolean
  /** The reason now recorded in the run. */
  reason: string | null
}

/** Stops claiming; tasks in flight are finished. Persists across restarts, until `resumeRun`. */
export async function pauseRun(run: OpenRun, reason = `paused by hand (${whoAmI()})`): Promise<Steered> {
  const frontier = frontierOf(run)
  const { isPaused, pauseReason } = await frontier.stats()
  if (isFinished(run) || isPaused) return { isChanged: false, reason: pauseReason ?? run.record.reason }
  await frontier.pause(reason)
  return { isChanged: true, reason }
}

export async function resumeRun(run: OpenRun): Promise<Steered> {
  const frontier = frontierOf(run)
  const { isPaused } = await frontier.stats()
  if (isPaused) await frontier.resume()
  return { isChanged: isPaused, reason: run.record.reason }
}

/** The run's workers see the meta value with their next heartbeat, hand back their tasks and end; the run can be resumed. */
export async function cancelRun(run: OpenRun, reason = `cancelled by hand (${whoAmI()})`): Promise<Steered> {
  const { record } = run
  if (run.isOver && record.finishedAt !== null && !isLeftByServer(record))
    return { isChanged: false, reason: record.reason }
  if (run.trouble?.code !== 'E_QUEUE_LOST') await frontierOf(run).setMeta('stop', reason)
  const stopped: RunRecord = {
    ...record,
    state: 'stopped',
    reason,
    exitCode: 4,
    finishedAt: new Date().toISOString(),
  }
  if (await run.saveRecord(stopped)) return { isChanged: true, reason }
  // A local run in progress writes its own record; any other has just ended by itself.
  await run.refresh()
  return isFinished(run) ? { isChanged: false, reason: run.record.reason } : { isChanged: true, reason }
}

const isFinished = ({ record }: OpenRun) => isComplete(record)

function whoAmI(): string {
  let user: string
  try {
    user = userInfo().username
  } catch {
    user = String(process.getuid?.() ?? 'somebody') // a container's user may have no name
  }
  return `${user}@${hostname()}`
}
