/**
 * URLs that could not be queued, as tasks on their way to the dead letters: the worker that claims one buries it with its cause.
 */
import type { ErrorRecord } from './errors.ts'
import type { Json, NewTask, Task } from './task.ts'

export const REFUSED_LANE = 'refused'
const REFUSED_ROUTE = '(refused)'
/** More of an invalid URL is of no use. */
const TEXT_CHARS_MAX = 1000

export function refusedTask(text: string, error: ErrorRecord): NewTask {
  // They share one host, and the original text stays readable.
  const url = `invalid://refused/${encodeURIComponent(text.slice(0, TEXT_CHARS_MAX).toWellFormed())}`
  return { url, route: REFUSED_ROUTE, lane: REFUSED_LANE, depth: 0, data: { ...error } as unknown as Json }
}

/** Why this task was refused; undefined for other tasks. */
export function refusalOf({ route, data }: Task): ErrorRecord | undefined {
  return route === REFUSED_ROUTE ? (data as unknown as ErrorRecord) : undefined
}
