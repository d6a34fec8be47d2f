/** Adds a task to its stream, and optionally waits for the result. */
import * as z from 'zod'
import { ScrapeError } from '../../core/errors.ts'
import type { ResultMessage, TaskMessage } from '../../protocol/messages.ts'
import { type NewTaskMessage, TaskProducer } from '../../protocol/redis-producer.ts'
import { streamNames } from '../../protocol/streams.ts'

interface SubmitRequest {
  redisUrl: string
  prefix: string
  task: NewTaskMessage
  /** If given, waits for the result until this signal is aborted. */
  wait?: AbortSignal
}

interface Submitted {
  task: TaskMessage
  /** All parts merged; undefined if the caller did not wait, or not long enough. */
  result: ResultMessage | undefined
}

export async function submitTask({ redisUrl, prefix, task: asked, wait }: SubmitRequest): Promise<Submitted> {
  const task = checked(asked)
  using producer = new TaskProducer({ url: redisUrl, names: streamNames(prefix) })
  const since = wait === undefined ? '' : await producer.resultsSoFar()
  await producer.submit(task)
  if (wait === undefined) return { task, result: undefined }
  let whole: ResultMessage | undefined
  for await (const part of producer.resultOf(task.task_id, since, wait)) {
    whole ??= { ...part, jobs_data: [], items: [], item_keys: [], part: undefined }
    whole.jobs_data.push(...part.jobs_data)
    whole.items.push(...part.items)
    whole.item_keys.push(...part.item_keys)
  }
  return { task, result: whole }
}

function checked(task: NewTaskMessage): TaskMessage {
  try {
    return TaskProducer.taskOf(task)
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error
    throw new ScrapeError('E_USAGE', 'the task is not one', {
      notes: error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`),
      fix: 'See docs/reference/messages.md for what a task may say.',
    })
  }
}
