/** The messages an instance writes at the end of a try. */
import { type ErrorRecord, ScrapeError, toErrorRecord } from '../../core/errors.ts'
import { redactText } from '../../core/redact-text.ts'
import { MESSAGE_VERSION, type ResultMessage, type TaskMessage, type TaskParams } from '../../protocol/messages.ts'
import { resultTexts } from '../../protocol/parts.ts'
import type { Finish } from '../../protocol/redis-group-reader.ts'
import { errorMessageText } from '../../protocol/refusal.ts'
import { withoutSecrets } from '../../protocol/shown.ts'
import { isPosting, toWireJob } from '../../protocol/wire-job.ts'
import { paysWithin } from './task-args.ts'
import type { TaskOutcome } from './task-crawl.ts'
import { noMetadata } from './task-watch.ts'

const TURNED_AWAY_MAX = 100

interface ResultParts {
  task: TaskMessage
  outcome: TaskOutcome
  ms: number
  workerId: string
  memoryMb: number
}

function resultOf({ task, outcome, ms, workerId, memoryMb }: ResultParts): ResultMessage {
  const { status, items, metadata, error } = outcome
  const postings = items.flatMap(({ item }) => (isPosting(item) && paysWithin(task.params, item) ? [item] : []))
  const others = items.filter(({ item }) => !isPosting(item))
  return {
    version: MESSAGE_VERSION,
    task_id: task.task_id,
    status,
    scraper_type: task.scraper_type,
    attempt: task.retry_count + 1,
    execution_time: Math.round(ms) / 1000,
    jobs_found: postings.length + others.length,
    jobs_data: postings.map(toWireJob),
    items: others.map(({ item }) => item as Record<string, unknown>),
    item_keys: others.map(({ key }) => key),
    params: withoutSecrets(withoutProxy(task.params)) as Record<string, unknown>,
    metadata: { ...metadata, memory_usage_mb: memoryMb, worker_id: workerId },
    completed_at: new Date().toISOString(),
    error: error === null ? null : redactText(error.message),
    error_code: error?.code ?? null,
  }
}

/** The proxy URL may contain a password. */
function withoutProxy({ proxy: _, ...params }: TaskParams): TaskParams {
  return params
}

export function resultFinish(parts: ResultParts): Finish {
  const { task, outcome, workerId } = parts
  const error = outcome.error === null ? undefined : errorText({ task, workerId, error: outcome.error })
  return { results: resultTexts(resultOf(parts)), error }
}

interface RetryParts {
  task: TaskMessage
  outcome: TaskOutcome
  workerId: string
  waitMs: number
  /** The sorted set that the task waits in. */
  delayed: string
}

/** For a failed task. The next worker must not start with an egress that was already rejected, even if it has the same ones. */
export function retryFinish({ task, outcome, workerId, waitMs, delayed }: RetryParts): Finish {
  const turned_away = outcome.turnedAway.slice(-TURNED_AWAY_MAX)
  const again = JSON.stringify({ ...task, retry_count: task.retry_count + 1, turned_away })
  return {
    error: errorText({ task, workerId, error: outcome.error!, retryAtMs: Date.now() + waitMs }),
    retry: { delayed, waitMs, task: again },
  }
}

interface ErrorParts {
  task: TaskMessage
  workerId: string
  error: ErrorRecord
  retryAtMs?: number
}

function errorText({ task, workerId, error, retryAtMs }: ErrorParts): string {
  return errorMessageText({
    error_code: error.code,
    error_message: redactText(error.message),
    worker_id: workerId,
    task_id: task.task_id,
    scraper_type: task.scraper_type,
    retry_count: task.retry_count,
    will_retry: retryAtMs !== undefined,
    retry_at: retryAtMs === undefined ? null : new Date(retryAtMs).toISOString(),
  })
}

/** For a task that was lost with its workers too often. */
export function poisonFinish(task: TaskMessage, losses: number, workerId: string): Finish {
  const message = `${losses} workers were lost while they had this task; it is not given to another one`
  const error = toErrorRecord(new ScrapeError('E_LEASE_LOST', message))
  const outcome: TaskOutcome = {
    status: 'failed',
    items: [],
    metadata: noMetadata(),
    error,
    isWorthAnotherTry: false,
    turnedAway: [],
  }
  return resultFinish({ task, outcome, ms: 0, workerId, memoryMb: 0 })
}
