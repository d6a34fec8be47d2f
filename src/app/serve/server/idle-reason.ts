/** Why a run makes no progress, as explained by a server that distributes its workers. */
import type { FrontierStats } from '../../../frontier/contract.ts'
import { NO_WORKERS, whyStill } from '../../../runs/run-list.ts'
import type { OpenRun } from '../../../runs/run-view.ts'

export async function idleReason(run: OpenRun, numbers: FrontierStats): Promise<string | null> {
  return servedWords(await whyStill(run, numbers))
}

export const servedWords = (why: string | undefined) => (why === NO_WORKERS ? 'waits for a worker' : (why ?? null))
