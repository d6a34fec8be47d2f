/** Runs a board that is off by default, turned on, against a loopback board, without the pauses that the real one is owed. */
import type { Scraper } from '../../../src/index.ts'
import { type BoardRun, runBoard } from './ats-run.ts'

export async function runOptIn(
  scraper: Scraper,
  site: { url: string },
  args: Record<string, unknown> = {},
  more: { chrome?: string; retries?: number } = {},
): Promise<BoardRun> {
  const hurried = { ...scraper, limits: { ...scraper.limits, backoff: 5, backoffMax: 20 } }
  const options = { retries: 2, boards: [scraper.name], ...more }
  return await runBoard(hurried, site, args, options)
}
