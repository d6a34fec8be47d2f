/** The life of a worker that stores files and fetches no pages: it waits until the run has no work of either kind left. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFileLane } from '../../core/task.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'

const LOOK_MS = 500
const PAGES_OVER = 'pagesOver'

/** Remaining pages may request more files, unless the run may fetch no more pages. */
export async function untilNothingRemains(
  frontier: Frontier,
  stop: AbortSignal,
  isOpenEnded: () => Promise<boolean> = async () => false,
): Promise<CrawlEnd> {
  while (!stop.aborted) {
    const stats = await frontier.stats()
    if (stats.remaining === 0) {
      if (!(await isOpenEnded()) && (await frontier.stats()).remaining === 0) return { how: 'finished' }
    } else if (filesLeft(stats) === 0 && (await pagesOver(frontier)) !== undefined) return { how: 'limit' }
    await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => {})
  }
  return { how: 'stopped' }
}

/** Files that are waiting or being stored, on any machine. */
export function filesLeft({ lanes }: Pick<FrontierStats, 'lanes'>): number {
  return Object.entries(lanes)
    .filter(([lane]) => isFileLane(lane))
    .reduce((sum, [, { pending, claimed }]) => sum + pending + claimed, 0)
}

/** The run's page limit is reached, but some of their files are left: the worker that stores the last one ends the run. */
interface PagesOver {
  /** When the run was last resumed; a value from before that is ignored. */
  wokenAtMs: number
  reason: string
}

export async function pagesOver(frontier: Pick<Frontier, 'getMeta'>): Promise<PagesOver | undefined> {
  const text = await frontier.getMeta(PAGES_OVER)
  return text === undefined || text === '' ? undefined : (JSON.parse(text) as PagesOver)
}

/** `undefined` clears it. */
export async function setPagesOver(frontier: Pick<Frontier, 'setMeta'>, over: PagesOver | undefined): Promise<void> {
  await frontier.setMeta(PAGES_OVER, over === undefined ? '' : JSON.stringify(over))
}
