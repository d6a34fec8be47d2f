/** The time of a worker that stores files and fetches no pages: it waits for work until the run has none left, of either kind. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier } from '../../frontier/contract.ts'

const LOOK_MS = 500

/** Pages that are left may order more files. */
export async function untilNothingRemains(
  frontier: Frontier,
  stop: AbortSignal,
  isOpenEnded: () => Promise<boolean> = async () => false,
): Promise<CrawlEnd> {
  while (!stop.aborted) {
    const { remaining } = await frontier.stats()
    if (remaining === 0 && !(await isOpenEnded()) && (await frontier.stats()).remaining === 0)
      return { how: 'finished' }
    await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => {})
  }
  return { how: 'stopped' }
}
