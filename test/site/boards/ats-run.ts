/** Runs a board's scraper in this process, the whole crawl, and returns the results. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunRecord, Scraper } from '../../../src/index.ts'
import { start } from '../../../src/index.ts'
import type { Posting } from '../../../src/jobs/read/posting.ts'
import { temporaryFolder } from '../../sluice.ts'

export interface BoardRun {
  record: RunRecord
  postings: Posting[]
  /** Pages given up on, and rejected items. */
  errors: { code: string; message: string; url?: string }[]
  warnings: string[]
}

/** Waits after an error, in milliseconds. */
const HURRY = { backoff: 5, backoffMax: 20, retryAfterMax: 20 }

/** Without the board's pauses and waits after errors, which are for the real one. */
export async function runBoard(
  scraper: Scraper,
  site: { url: string },
  args: Record<string, unknown>,
  options: { retries?: number; boards?: string[]; chrome?: string } = {},
): Promise<BoardRun> {
  using folder = temporaryFolder()
  const hurried = { ...scraper, limits: { ...scraper.limits, ...HURRY } }
  const run = await start(hurried, {
    args: { site: site.url, ...args },
    frontier: 'memory:', // the queue is not under test, and a file for each run was a quarter of the CPU
    rps: 0,
    delay: 0,
    ...options,
    out: folder.path,
    format: 'jsonl',
    allowAddress: [new URL(site.url).host],
  })
  const warnings: string[] = []
  for await (const event of run.events) {
    if (event.type === 'log' && event.level === 'warn') warnings.push(event.message)
  }
  const record = await run.result
  return {
    record,
    postings: readLines(join(run.folder, 'items.jsonl')) as Posting[],
    errors: readLines(join(run.folder, 'errors.jsonl')) as BoardRun['errors'],
    warnings,
  }
}

function readLines(path: string): unknown[] {
  const lines = readFileSync(path, { encoding: 'utf8', flag: 'a+' }).split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

export const idsOf = (postings: readonly Posting[]) => postings.map(({ source_job_id }) => source_job_id).sort()
