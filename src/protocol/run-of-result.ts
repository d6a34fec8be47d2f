/** A task represented as a run, so that all commands for runs show it: it has the task's id. */
import { ERRORS } from '../core/error-table.ts'
import type { ItemRow } from '../core/item.ts'
import { contentKey } from '../core/item.ts'
import { NO_FILES, type RunRecord } from '../core/run.ts'
import type { Json } from '../core/task.ts'
import type { NewStoredRun } from '../store/contract.ts'
import type { ResultMessage } from './messages.ts'
import { withoutSecrets } from './shown.ts'
import { storedJob } from './wire-job.ts'

/** Identifies a result: of two results for one task, the first one stored counts. All parts of a result share it. */
function resultIdentity({ attempt, metadata }: ResultMessage): string {
  return `task:${attempt}:${metadata.worker_id ?? ''}`
}

/** The run as it is when its result is complete. `place` is where the streams are, without a password. */
export function runOfResult(result: ResultMessage, place: string): NewStoredRun {
  const { metadata } = result
  const { proxy: _, ...params } = result.params ?? {} // some workers include it, and it may contain a password
  const finishedMs = Date.parse(result.completed_at)
  const record: RunRecord = {
    id: result.task_id,
    scraper: result.scraper_type,
    ...endOf(result),
    args: withoutSecrets(params) as Json,
    source: result.scraper_type,
    startedAt: new Date(finishedMs - result.execution_time * 1000).toISOString(),
    finishedAt: new Date(finishedMs).toISOString(),
    durationMs: Math.round(result.execution_time * 1000),
    frontier: place,
    pages: {
      ok: metadata.pages_scraped,
      failed: metadata.pages_failed,
      retried: Math.max(0, metadata.requests_made - metadata.pages_scraped - metadata.pages_failed),
      postponed: 0,
      remaining: 0,
      dead: 0,
    },
    items: { new: result.jobs_found, same: 0, changed: 0, invalid: 0 },
    files: NO_FILES,
    notFetched: {},
    fieldFill: {},
    bytes: 0,
    latencyMs: { p50: Math.round(metadata.average_response_time * 1000), p95: 0 },
    rssBytesMax: metadata.memory_usage_mb * 1024 ** 2,
    cpuMs: 0,
    errors: errorsOf(result),
    outputs: [],
    warnings: metadata.warnings,
  }
  const options = { limits: {}, allowPrivate: false, allowAddress: [], userAgent: '' }
  return { record, definitionHash: resultIdentity(result), options }
}

function endOf({
  status,
  error,
  error_code,
}: ResultMessage): Pick<RunRecord, 'state' | 'reason' | 'exitCode' | 'isComplete'> {
  const why = error === null ? null : `${error_code === null ? '' : `${error_code}: `}${error}`
  if (status === 'success') return { state: 'finished', reason: null, exitCode: 0, isComplete: true }
  const reason = status === 'timeout' ? `its time was over${why === null ? '' : `; ${why}`}` : why
  return { state: 'failed', reason: reason ?? status, exitCode: 1, isComplete: true } // a task is never resumed
}

function errorsOf({ error, error_code, metadata }: ResultMessage): RunRecord['errors'] {
  if (error_code === null || !Object.hasOwn(ERRORS, error_code)) return []
  const code = error_code as keyof typeof ERRORS
  return [{ code, class: ERRORS[code].class, count: Math.max(1, metadata.pages_failed), example: error ?? '' }]
}

/** The items of the message, in the format of the store. */
export function itemsOf({ jobs_data, items, item_keys }: ResultMessage): ItemRow[] {
  const jobs = jobs_data.map(storedJob).map(({ key, item }) => ({ key, json: JSON.stringify(item) }))
  const others = items.map((item, i) => {
    const json = JSON.stringify(item)
    return { key: item_keys[i] ?? contentKey(json), json }
  })
  return [...jobs, ...others]
}
