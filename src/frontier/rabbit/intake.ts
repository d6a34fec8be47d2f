/** The consumers of this process: one per lane it serves and one for expired messages, recreated after a lost connection. */
import { DEFAULT_LANE } from '../../core/task.ts'
import { Acks } from './acks.ts'
import type { Broker, Session } from './broker.ts'
import { Deliveries, type Delivery } from './deliveries.ts'
import { type Received, receive, type TaskMessage } from './message.ts'
import type { Names } from './names.ts'

export type AckMode = 'manual' | 'auto'

export interface Stray {
  received: Extract<Received, { kind: 'foreign' | 'malformed' }>
  /** The queue where it was found. */
  queue: string
  lane: string
}

type Reply = Pick<Delivery, 'ack' | 'nack'>
/** The broker does not expect an acknowledgement. */
const NO_REPLY: Reply = { ack: undefined, nack: undefined }

interface IntakeParts {
  broker: Broker
  names: Names
  epoch: string
  ackOf: (lane: string) => AckMode
  /**
   * A task that was not processed in time, or (`hasExpired` false) was delivered to one worker after another without being
   * settled. Acknowledged when this resolves.
   */
  onExpired: (seq: string, how: { hasExpired: boolean }) => Promise<void>
  /** A message that is not ours. Acknowledged when this resolves. */
  onStray: (stray: Stray) => Promise<void>
}

const EXPIRED_PREFETCH = 100
/** The initial window; it grows with the size of claims. */
const WINDOW_MIN = 16

export class Intake {
  readonly deliveries = new Deliveries()
  readonly #parts: IntakeParts
  /** Consumers of the current session, by queue name. */
  #consumers = new Map<string, Promise<string>>()
  #session: Session | undefined
  #acks: Acks | undefined
  #window: number
  readonly #isFixed: boolean
  /** Unfinished work on expired and foreign messages. */
  readonly #working = new Set<Promise<void>>()

  constructor(parts: IntakeParts, prefetch: number | undefined) {
    this.#parts = parts
    this.#window = prefetch ?? WINDOW_MIN
    this.#isFixed = prefetch !== undefined
    parts.broker.onLost(() => {
      this.#consumers = new Map()
      this.#session = undefined
      this.deliveries.forget()
    })
  }

  /** How many messages may be unacknowledged at once, per lane. */
  get window(): number {
    return this.#window
  }

  /** Receives messages of these lanes from now on, up to `wanted` in addition to those in progress. */
  async consume(lanes: readonly string[], wanted: number): Promise<void> {
    const session = await this.#parts.broker.session()
    if (this.#session !== session) {
      this.#session = session
      this.#acks = new Acks(session.consumer)
      this.#consumers = new Map()
    }
    // Twice what a claim takes: the next ones are here when it comes back (7,400/s instead of 5,400 with once).
    const needed = this.deliveries.held + 2 * wanted
    if (this.#window < needed && !this.#isFixed) {
      await this.#cancel(session)
      this.#window = 2 ** Math.ceil(Math.log2(needed))
    }
    const acks = this.#acks!
    const { expired, work } = this.#parts.names
    await Promise.all([
      this.#once(expired.queue, () => this.#consumeExpired(session, acks)),
      ...lanes.map((lane) => this.#once(work(lane).queue, () => this.#consumeLane(lane, acks))),
    ])
  }

  /** No one claims here for now: lets others have the waiting messages. Returns those the broker cannot redeliver (auto mode). */
  async rest(): Promise<Delivery[]> {
    if (this.#session !== undefined) await this.#cancel(this.#session).catch(() => {})
    const waiting = this.deliveries.takeAll()
    for (const { nack } of waiting) nack?.()
    this.#acks?.flush()
    return waiting.filter(({ nack }) => nack === undefined)
  }

  /** Resolves when no message is being processed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#working)
    this.#acks?.flush()
  }

  #once(queue: string, consume: () => Promise<string>): Promise<string> {
    let consumer = this.#consumers.get(queue)
    if (consumer === undefined) {
      consumer = consume()
      this.#consumers.set(queue, consumer)
      consumer.catch(() => this.#consumers.delete(queue))
    }
    return consumer
  }

  async #consumeLane(lane: string, acks: Acks): Promise<string> {
    const { broker, names, ackOf } = this.#parts
    const { consumer: channel } = await broker.declareLane(lane)
    const { queue } = names.work(lane)
    const noAck = ackOf(lane) === 'auto'
    await channel.basicQos({ prefetchCount: this.#window })
    const { consumerTag } = await channel.basicConsume({ queue, noAck }, ({ body, deliveryTag }) => {
      const reply = noAck ? NO_REPLY : acks.of(deliveryTag)
      this.#receive(body, { queue, lane, reply }, (message) => {
        this.deliveries.put({ message, seq: String(message.seq), lane, ...reply, receivedMs: performance.now() })
      })
    })
    return consumerTag
  }

  async #consumeExpired({ consumer: channel }: Session, acks: Acks): Promise<string> {
    const { names, onExpired } = this.#parts
    const { queue } = names.expired
    await channel.basicQos({ prefetchCount: EXPIRED_PREFETCH })
    const { consumerTag } = await channel.basicConsume({ queue }, ({ body, deliveryTag, headers }) => {
      const reply = acks.of(deliveryTag)
      const hasExpired = headers?.['x-first-death-reason'] === 'expired'
      this.#receive(body, { queue, lane: DEFAULT_LANE, reply }, ({ seq }) => {
        this.#work(onExpired(String(seq), { hasExpired }), reply)
      })
    })
    return consumerTag
  }

  /** Must not throw: the library would let an error end this process, and then the next one that receives the message. */
  #receive(body: unknown, at: { queue: string; lane: string; reply: Reply }, onOurs: (message: TaskMessage) => void) {
    const { queue, lane, reply } = at
    let received: Received
    try {
      received = receive(body, { epoch: this.#parts.epoch, lane })
      if (received.kind === 'ours') return onOurs(received.message)
    } catch (error) {
      received = { kind: 'malformed', why: `cannot be read: ${(error as Error).message}`, text: '' }
    }
    if (received.kind === 'old') reply.ack?.()
    else this.#work(this.#parts.onStray({ received, queue, lane }), reply)
  }

  /** Acknowledged when the work is done; left to be delivered again if it failed. */
  #work(work: Promise<void>, { ack, nack }: Reply): void {
    const working: Promise<void> = work
      .then(
        () => ack?.(),
        () => nack?.(),
      )
      .catch(() => {}) // the channel is closed: the broker delivers the message again
      .finally(() => this.#working.delete(working))
    this.#working.add(working)
  }

  async #cancel({ consumer: channel }: Session): Promise<void> {
    const consumers = [...this.#consumers.values()]
    this.#consumers = new Map()
    for (const consumer of consumers) {
      const consumerTag = await consumer.catch(() => undefined)
      if (consumerTag !== undefined && channel.active) await channel.basicCancel({ consumerTag })
    }
  }
}
