/** Adding tasks: any number, a chunk at a time, with every default filled in. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ScrapeError } from '../../core/errors.ts'
import { DEFAULT_LANE, type Json, type NewTask, type Task } from '../../core/task.ts'
import { taskId } from '../../core/url.ts'

/** Tasks that `add` holds at once. One chunk is one transaction, and other writers wait that long. */
const CHUNK_TASKS_MAX = 2000

/** A slow source must not keep its first tasks from the workers until the chunk is full. */
const CHUNK_AGE_MS_MAX = 500

/** Chunks of at most `CHUNK_TASKS_MAX`; the event loop runs between two, so that a long add does not delay heartbeats. */
export async function* chunksOf(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): AsyncGenerator<NewTask[]> {
  const chunks = Symbol.asyncIterator in tasks ? asyncChunks(tasks) : syncChunks(tasks)
  for await (const chunk of chunks) {
    yield chunk
    await nextTurn()
  }
}

function* syncChunks(tasks: Iterable<NewTask>): Generator<NewTask[]> {
  let chunk: NewTask[] = []
  for (const task of tasks) {
    if (chunk.push(task) < CHUNK_TASKS_MAX) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}

async function* asyncChunks(tasks: AsyncIterable<NewTask>): AsyncGenerator<NewTask[]> {
  let chunk: NewTask[] = []
  let startedMs = performance.now()
  for await (const task of tasks) {
    if (chunk.push(task) < CHUNK_TASKS_MAX && performance.now() - startedMs < CHUNK_AGE_MS_MAX) continue
    yield chunk
    chunk = []
    startedMs = performance.now()
  }
  if (chunk.length > 0) yield chunk
}

/** The text whose hash is the task's id: equal texts are one task. */
export function identityOf(task: NewTask): string {
  return task.key ?? task.url
}

/** Throws `E_OPTION` for a priority that cannot be ordered: no engine could give out such a task. */
export function taskOf(task: NewTask): Task {
  const { priority = 0 } = task
  if (!Number.isFinite(priority))
    throw new ScrapeError('E_OPTION', `the priority of a task is ${priority}`, {
      notes: [task.url],
      fix: 'A priority is a finite number; higher ones are claimed first.',
    })
  return {
    id: taskId(task),
    url: task.url,
    route: task.route,
    data: task.data ?? null,
    depth: task.depth,
    priority,
    lane: task.lane ?? DEFAULT_LANE,
    session: task.session,
    ...(task.trace === undefined ? {} : { trace: task.trace }),
  }
}

const TRACED = '{"$trace":'

/** A task's data as text, with its trace around it: a separate column would be empty in nearly every run. */
export function packData({ data, trace }: Pick<NewTask, 'data' | 'trace'>): string | null {
  const json = data === undefined || data === null ? null : JSON.stringify(data)
  if (trace === undefined && json?.startsWith(TRACED) !== true) return json
  return `${TRACED}${JSON.stringify(trace ?? null)},"data":${json}}`
}

export function unpackData(text: string | null): { data: Json; trace?: string } {
  if (text === null) return { data: null }
  const value = JSON.parse(text)
  if (!text.startsWith(TRACED)) return { data: value }
  return value.$trace === null ? { data: value.data } : { data: value.data, trace: value.$trace }
}
