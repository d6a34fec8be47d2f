/** Publishes with confirms, a bounded number in flight, and reports messages that no queue accepted. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Channel, Envelope, ReturnedMessage } from 'rabbitmq-client'

/** Maximum number of unconfirmed messages. */
export const IN_FLIGHT_MAX = 1000

export interface Outgoing {
  /** Identifies it in the result. */
  key: string
  envelope: Envelope
  body: object | string | Buffer
}

interface Published {
  /** Durable in the broker. */
  confirmed: string[]
  /** No queue is bound for them. */
  unroutable: string[]
  /** Rejected, or unknown: to be published again. */
  failed: string[]
  error: Error | undefined
}

const returnedOf = new WeakMap<Channel, Set<string>>()

/** Never throws: the result says what became of each message. */
export async function publishAll(channel: Channel, messages: readonly Outgoing[]): Promise<Published> {
  const returned = watch(channel)
  const result: Published = { confirmed: [], unroutable: [], failed: [], error: undefined }
  for (let from = 0; from < messages.length; from += IN_FLIGHT_MAX) {
    const batch = messages.slice(from, from + IN_FLIGHT_MAX)
    const closed = closing(channel)
    const outcomes = await Promise.allSettled(
      batch.map(({ key, envelope, body }) => {
        const sent = channel.basicPublish({ durable: true, mandatory: true, correlationId: key, ...envelope }, body)
        return Promise.race([sent, closed.promise])
      }),
    )
    closed.stop()
    await nextTurn() // a return arrives before its confirm, but is reported one tick later
    for (const [i, outcome] of outcomes.entries()) {
      const { key } = batch[i]!
      if (outcome.status === 'rejected') {
        result.failed.push(key)
        result.error = outcome.reason as Error
      } else if (returned.delete(key)) result.unroutable.push(key)
      else result.confirmed.push(key)
    }
  }
  return result
}

/** Rejects when the channel closes: otherwise a message that was just being written would be awaited forever. */
function closing(channel: Channel): { promise: Promise<never>; stop: () => void } {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const listener = () => reject(new Error('the channel was closed before the broker confirmed'))
  channel.once('close', listener)
  return { promise, stop: () => channel.removeListener('close', listener) }
}

function watch(channel: Channel): Set<string> {
  let returned = returnedOf.get(channel)
  if (returned === undefined) {
    returned = new Set()
    returnedOf.set(channel, returned)
    const set = returned
    channel.on('basic.return', (message: ReturnedMessage) => {
      if (message.correlationId !== undefined) set.add(message.correlationId)
    })
  }
  return returned
}
