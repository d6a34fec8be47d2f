/** The consumers of this process: one per lane it serves and one for what has expired, made again after a lost connection. */
import type { AsyncMessage } from 'rabbitmq-client'
import { Acks } from './acks.ts'
import type { Broker, Session } from './broker.ts'
import { Deliveries, type Delivery } from './deliveries.ts'
import { type Received, receive } from './message.ts'
import type { Names } from './names.ts'

export type AckMode = 'manual' | 'auto'

export interface Stray {
  received: Extract<Received, { kind: 'foreign' | 'malformed' }>
  /** Where it was found. */
  queue: string
  lane: string
}

export interface IntakeParts {
  broker: Broker
  names: Names
  epoch: string
  ackOf: (lane: string) => AckMode
  /** Tasks that were not worked on in time. Acknowledged when this resolves. */
  onExpired: (seqs: readonly string[]) => Promise<void>
  /** A message that is not one of ours. Acknowledged when this resolves. */
  onStray: (stray: Stray) => Promise<void>
}

const EXPIRED_PREFETCH = 100
/** The first window; it grows with what is claimed at once. */
const WINDOW_MIN = 16

export class Intake {
  readonly deliveries = new Deliveries()
  readonly #parts: IntakeParts
  /** Of the session they were made on. Lane → tag; '' is the one for expired messages. */
  #consumers = new Map<string, Promise<string>>()
  #session: Session | undefined
  #acks: Acks | undefined
  #window: number
  readonly #isFixed: boolean
  /** Work on expired and stray messages that is not finished. */
  readonly #working = new Set<Promise<void>>()

  constructor(parts: IntakeParts, prefetch: number | undefined) {
    this.#parts = parts
    this.#window = prefetch ?? WINDOW_MIN
    this.#isFixed = prefetch !== undefined
    parts.broker.onLost(() => {
      this.#consumers = new Map()
      this.#session = undefined
      this.deliveries.forget({ keepAuto: true })
    })
  }

  /** How many may be unacknowledged at once, per lane. */
  get window(): number {
    return this.#window
  }

  /** Messages of these lanes come in from now on, up to `wanted` of them beside those in work. */
  async consume(lanes: readonly string[], wanted: number): Promise<void> {
    const session = await this.#parts.broker.session()
    if (this.#session !== session) {
      this.#session = session
      this.#acks = new Acks(session.consumer)
      this.#consumers = new Map()
    }
    // Twice what a claim takes: the next ones are here when it comes back (7,400/s in place of 5,400 with once).
    const needed = this.deliveries.held + 2 * wanted
    if (this.#window < needed && !this.#isFixed) {
      await this.#cancel(session)
      this.#window = 2 ** Math.ceil(Math.log2(needed))
    }
    await Promise.all(['', ...lanes].map((lane) => this.#consumer(session, lane)))
  }

  /** Nobody claims here for now: others may have what waits. Answers with what the broker cannot give them, in auto mode. */
  async rest(): Promise<Delivery[]> {
    if (this.#session !== undefined) await this.#cancel(this.#session).catch(() => {})
    const waiting = this.deliveries.takeAll()
    for (const { nack } of waiting) nack?.()
    this.#acks?.flush()
    return waiting.filter(({ nack }) => nack === undefined)
  }

  /** When this resolves no message is in work. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#working)
    this.#acks?.flush()
  }

  #consumer(session: Session, lane: string): Promise<string> {
    let consumer = this.#consumers.get(lane)
    if (consumer === undefined) {
      consumer = lane === '' ? this.#consumeExpired(session, this.#acks!) : this.#consumeLane(lane, this.#acks!)
      this.#consumers.set(lane, consumer)
      consumer.catch(() => this.#consumers.delete(lane))
    }
    return consumer
  }

  async #consumeLane(lane: string, acks: Acks): Promise<string> {
    const { broker, names, ackOf } = this.#parts
    const { consumer: channel } = await broker.declareLane(lane)
    const { queue } = names.work(lane)
    const noAck = ackOf(lane) === 'auto'
    await channel.basicQos({ prefetchCount: this.#window })
    const { consumerTag } = await channel.basicConsume({ queue, noAck }, (message) => {
      const reply = noAck ? { ack: undefined, nack: undefined } : acks.of(message.deliveryTag)
      const received = receive(message.body, this.#parts.epoch)
      if (received.kind === 'ours') {
        const seq = String(received.message.seq)
        this.deliveries.put({ message: received.message, seq, lane, ...reply, receivedMs: performance.now() })
      } else if (received.kind === 'old') reply.ack?.()
      else this.#work(this.#parts.onStray({ received, queue, lane }), reply)
    })
    return consumerTag
  }

  async #consumeExpired({ consumer: channel }: Session, acks: Acks): Promise<string> {
    const { names, epoch, onExpired, onStray } = this.#parts
    const { queue } = names.expired
    await channel.basicQos({ prefetchCount: EXPIRED_PREFETCH })
    const { consumerTag } = await channel.basicConsume({ queue }, (message: AsyncMessage) => {
      const reply = acks.of(message.deliveryTag)
      const received = receive(message.body, epoch)
      if (received.kind === 'ours') this.#work(onExpired([String(received.message.seq)]), reply)
      else if (received.kind === 'old') reply.ack()
      else this.#work(onStray({ received, queue, lane: 'bulk' }), reply)
    })
    return consumerTag
  }

  /** Acknowledged when it is done; left to be delivered again when that failed. */
  #work(work: Promise<void>, { ack, nack }: { ack: (() => void) | undefined; nack: (() => void) | undefined }): void {
    const working = work.then(
      () => ack?.(),
      () => nack?.(),
    )
    this.#working.add(working)
    working.finally(() => this.#working.delete(working))
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
