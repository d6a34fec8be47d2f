/** Publishes with confirms, a bounded number in flight, and learns which messages found no queue. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Channel, Envelope, ReturnedMessage } from 'rabbitmq-client'

/** Unconfirmed at once. */
export const IN_FLIGHT_MAX = 1000

export interface Outgoing {
  /** Names it in the answer. */
  key: string
  envelope: Envelope
  body: object | string | Buffer
}

interface Published {
  /** Durable at the broker. */
  confirmed: string[]
  /** There is no queue for them. */
  unroutable: string[]
  /** Not taken, or unknown: to be published again. */
  failed: string[]
  error: Error | undefined
}

const returnedOf = new WeakMap<Channel, Set<string>>()

/** Never throws: what has become of each message is the answer. */
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
    await nextTurn() // a return comes before its confirm, but is told a turn later
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

/** Rejects when the channel closes: a message that was just being written then would otherwise be waited for without end. */
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
