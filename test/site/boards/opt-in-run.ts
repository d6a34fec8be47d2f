/** Enables a board that is off by default, and runs it against a loopback board. */
import type { Scraper } from '../../../src/index.ts'
import { type BoardRun, runBoard } from './ats-run.ts'

export async function runOptIn(
  scraper: Scraper,
  site: { url: string },
  args: Record<string, unknown> = {},
  more: { chrome?: string; retries?: number } = {},
): Promise<BoardRun> {
  return await runBoard(scraper, site, args, { retries: 2, boards: [scraper.name], ...more })
}
