/** Why a run does not move, in the words of a server that shares its workers out. */
import type { FrontierStats } from '../../../frontier/contract.ts'
import { NO_WORKERS, whyStill } from '../../../runs/run-list.ts'
import type { OpenRun } from '../../../runs/run-view.ts'

export async function idleReason(run: OpenRun, numbers: FrontierStats): Promise<string | null> {
  return servedWords(await whyStill(run, numbers))
}

export const servedWords = (why: string | undefined) => (why === NO_WORKERS ? 'waits for a worker' : (why ?? null))
