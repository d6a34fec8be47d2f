/** The last run of the same scraper with the same arguments that found something: the benchmark for an empty run. */
import { isDeepStrictEqual } from 'node:util'
import { redactAll } from '../core/redact.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import { listRuns } from './run-folder.ts'

export interface FullRun {
  id: string
  items: number
  /** No other finished run was in between. */
  isLast: boolean
}

/** A folder may hold thousands of runs; a scraper that has found nothing for this long needs no warning. */
const RUNS_LOOKED_AT_MAX = 50

export function fullRunBefore(
  out: string,
  { id, scraper, args }: Pick<RunRecord, 'id' | 'scraper' | 'args'>,
): FullRun | undefined {
  const earlier = listRuns(out, scraper).filter(({ runId }) => runId < id)
  const shownArgs = redactAll(args) // as in run.json
  let isLast = true
  for (const folder of earlier.slice(0, RUNS_LOOKED_AT_MAX)) {
    const record = folder.tryReadRecord()
    if (record === undefined || !isComplete(record) || !isDeepStrictEqual(redactAll(record.args), shownArgs)) continue
    if (record.items.new > 0) return { id: record.id, items: record.items.new, isLast }
    isLast = false
  }
  return undefined
}

/** `the run before had 23`. */
export function fullRunWords({ id, items, isLast }: FullRun): string {
  return `${isLast ? 'the run before' : `run ${id}, the last that found any,`} had ${items}`
}
