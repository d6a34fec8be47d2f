/** A message: a hint that a task is ready, with what a person wants to see. The ledger alone says whether it is so. */

import type { NewTask, Task } from '../../core/task.ts'
import { normaliseUrl } from '../../core/url.ts'

/** Its type as a property of the message, for whoever reads the queue with other tools. */
export const MESSAGE_TYPE = 'sluice.task'

export interface TaskMessage {
  /** Which beginning of the run it belongs to: a run that is begun afresh numbers its tasks from 1 again. */
  epoch: string
  seq: number
  id: string
  url: string
  route: string
  lane: string
  priority: number
}

export function messageOf(epoch: string, seq: string, { id, url, route, lane, priority }: Task): TaskMessage {
  return { epoch, seq: Number(seq), id, url, route, lane, priority }
}

export type Received =
  | { kind: 'ours'; message: TaskMessage }
  /** Of an earlier beginning of this run. */
  | { kind: 'old' }
  /** Somebody else put a URL with a route into our queue: a task like any other. */
  | { kind: 'foreign'; task: NewTask }
  | { kind: 'malformed'; why: string; text: string }

const TEXT_CHARS_MAX = 500

/** `body` as the client gives it: parsed when it says it is JSON, otherwise text or bytes. */
export function receive(body: unknown, epoch: string): Received {
  const text = Buffer.isBuffer(body) ? body.toString('utf8') : typeof body === 'string' ? body : JSON.stringify(body)
  const malformed = (why: string): Received => ({ kind: 'malformed', why, text: text.slice(0, TEXT_CHARS_MAX) })
  let value: unknown = body
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    try {
      value = JSON.parse(text)
    } catch {
      return malformed('is not JSON')
    }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return malformed('is no JSON object')
  const fields = value as Record<string, unknown>
  if ('epoch' in fields) return ours(fields, epoch) ?? malformed('lacks fields of ours')
  const { url, route, lane, priority } = fields
  if (typeof url !== 'string') return malformed('has no url')
  if (typeof route !== 'string') return malformed('has no route')
  const task: NewTask = { url: '', route, depth: 0 }
  try {
    task.url = normaliseUrl(url)
  } catch (error) {
    return malformed(`has a bad url: ${(error as Error).message}`)
  }
  if (typeof lane === 'string') task.lane = lane
  if (typeof priority === 'number') task.priority = priority
  return { kind: 'foreign', task }
}

function ours(fields: Record<string, unknown>, epoch: string): Received | undefined {
  const { epoch: sent, seq, id, url, route, lane, priority } = fields
  const isWhole =
    Number.isSafeInteger(seq) &&
    [sent, id, url, route, lane].every((field) => typeof field === 'string') &&
    typeof priority === 'number'
  if (!isWhole) return undefined
  return sent === epoch ? { kind: 'ours', message: fields as unknown as TaskMessage } : { kind: 'old' }
}
