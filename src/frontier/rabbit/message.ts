/** A message: a hint that a task is ready, readable for people. Only the ledger knows whether the task really is ready. */

import { isFileLane, type NewTask, type Task } from '../../core/task.ts'
import { normaliseUrl } from '../../core/url.ts'

/** Set as the `type` property of the message, for other tools that read the queue. */
export const MESSAGE_TYPE = 'sluice.task'

export interface TaskMessage {
  /** The start of the run it belongs to: a run that is started from scratch numbers its tasks from 1 again. */
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
  /** From an earlier start of this run. */
  | { kind: 'old' }
  /** Another program put a URL with a route into our queue: treated like any task. */
  | { kind: 'foreign'; task: NewTask }
  | { kind: 'malformed'; why: string; text: string }

const TEXT_CHARS_MAX = 500
/** Becomes part of a queue name, which is limited to 255 bytes. */
const LANE = /^[\w-]{1,50}$/

/** `body` as the client library provides it: parsed if declared as JSON, otherwise text or bytes. `lane` is that of its queue. */
export function receive(body: unknown, { epoch, lane: foundIn }: { epoch: string; lane: string }): Received {
  const malformed = (why: string): Received => ({ kind: 'malformed', why, text: textOf(body).slice(0, TEXT_CHARS_MAX) })
  let value: unknown = body
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    try {
      value = JSON.parse(String(body))
    } catch {
      return malformed('is not JSON')
    }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return malformed('is no JSON object')
  const fields = value as Record<string, unknown>
  if ('epoch' in fields) return ours(fields, epoch) ?? malformed('lacks fields of ours')
  const { url, route } = fields
  if (typeof url !== 'string') return malformed('has no url')
  if (typeof route !== 'string') return malformed('has no route')
  const lane = fields['lane'] ?? foundIn
  if (lane !== foundIn && !(typeof lane === 'string' && LANE.test(lane)))
    return malformed('has a lane of no possible name')
  if (isFileLane(lane as string)) return malformed('is for the lane of files, whose tasks only we can make')
  const priority = fields['priority'] ?? 0
  if (typeof priority !== 'number' || !Number.isFinite(priority)) return malformed('has a priority that is no number')
  try {
    return { kind: 'foreign', task: { url: normaliseUrl(url), route, depth: 0, lane: lane as string, priority } }
  } catch (error) {
    return malformed(`has a bad url: ${(error as Error).message}`)
  }
}

/** For display only: objects nested thousands deep can be parsed but not stringified again (a RangeError that killed workers). */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (Buffer.isBuffer(body)) return body.toString('utf8', 0, TEXT_CHARS_MAX * 4)
  try {
    return JSON.stringify(body) ?? ''
  } catch {
    return '(JSON that is nested too deeply to be shown)'
  }
}

function ours(fields: Record<string, unknown>, epoch: string): Received | undefined {
  const { epoch: sent, seq, id, url, route, lane, priority } = fields
  const isWhole =
    Number.isSafeInteger(seq) &&
    [sent, id, url, route, lane].every((field) => typeof field === 'string') &&
    Number.isFinite(priority)
  if (!isWhole) return undefined
  return sent === epoch ? { kind: 'ours', message: fields as unknown as TaskMessage } : { kind: 'old' }
}
