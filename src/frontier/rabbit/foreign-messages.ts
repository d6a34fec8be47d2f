/** Messages that are not simply tasks to do: expired ones, those of other programs, and malformed ones. */
import { hash } from 'node:crypto'
import { ScrapeError, toErrorRecord } from '../../core/errors.ts'
import type { NewTask, Task } from '../../core/task.ts'
import { bodyOf, queueName } from '../redis/lease.ts'
import type { Feeder } from './feeder.ts'
import type { InBroker } from './in-broker.ts'
import type { Stray } from './intake.ts'

/** What happens to a task whose message expired: it waits again, or becomes a dead letter. */
export type ExpiredPolicy = 'requeue' | 'dead'

/** Only expired messages may become dead letters: those that twenty workers received without settling arrive the same way. */
export function createExpired(belt: InBroker, feeder: Feeder, policy: ExpiredPolicy) {
  return async function expired(seq: string, { hasExpired }: { hasExpired: boolean }): Promise<void> {
    if (policy === 'requeue' || !hasExpired) {
      await belt.unstage([seq])
      return
    }
    const why = 'the task waited in the queue for longer than its message lives'
    const error = toErrorRecord(new ScrapeError('E_MESSAGE_EXPIRED', why))
    const buried = await belt.bury(seq, error)
    if (buried !== undefined) feeder.tell([{ ...buried, error }])
  }
}

/** `add` takes a task that another program has put into our queues. */
export function createStray(belt: InBroker, feeder: Feeder, add: (task: NewTask) => Promise<unknown>) {
  return async function stray({ received, queue, lane }: Stray): Promise<void> {
    if (received.kind === 'foreign') {
      await add(received.task)
      return
    }
    const { why, text } = received
    const id = hash('sha256', `${queue} ${text}`)
    const error = toErrorRecord(new ScrapeError('E_MESSAGE_FOREIGN', `a message in ${queue} ${why}`))
    const task: Task = {
      id,
      url: `amqp:${queue}/${id.slice(0, 12)}`,
      route: '',
      data: { message: text },
      depth: 0,
      priority: 0,
      lane,
      session: undefined,
    }
    await belt.buryMessage({ id, queue: queueName(task, queue), body: bodyOf(task), error })
    feeder.tell([{ message: text, error }])
  }
}
