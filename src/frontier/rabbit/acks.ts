/**
 * Acknowledgements of one channel, sent together: one frame acknowledges everything up to a tag. The messages of a claim are
 * mostly consecutive, so a batch of fifty costs one frame instead of fifty.
 */
import type { Channel } from 'rabbitmq-client'

export class Acks {
  readonly #channel: Channel
  /** Delivered and not yet acknowledged, in order: the tag, and whether we have acknowledged it (it may not be sent yet). */
  readonly #open = new Map<number, boolean>()
  #said: number[] = []

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** How to answer one message. On a closed channel neither has an effect: the broker delivers again. */
  of(tag: number): { ack: () => void; nack: () => void } {
    this.#open.set(tag, false)
    return { ack: () => this.#ack(tag), nack: () => this.#nack(tag) }
  }

  /** Sends the pending acknowledgements. */
  flush(): void {
    const said = this.#said
    this.#said = []
    if (!this.#channel.active) return
    let last: number | undefined
    for (const [tag, isDone] of this.#open) {
      if (!isDone) break
      this.#open.delete(tag)
      last = tag
    }
    if (last !== undefined) this.#channel.basicAck({ deliveryTag: last, multiple: true })
    for (const tag of said) if (this.#open.delete(tag)) this.#channel.basicAck({ deliveryTag: tag })
  }

  #ack(tag: number): void {
    if (!this.#open.has(tag)) return
    this.#open.set(tag, true)
    if (this.#said.push(tag) === 1) setImmediate(() => this.flush())
  }

  #nack(tag: number): void {
    if (this.#open.delete(tag) && this.#channel.active) this.#channel.basicNack({ deliveryTag: tag, requeue: true })
  }
}
