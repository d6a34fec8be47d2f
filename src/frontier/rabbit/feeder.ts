/** The sending side: puts ready tasks on the belt and publishes them, and tells people what has failed. */
import { randomUUID } from 'node:crypto'
import type { Task } from '../../core/task.ts'
import type { ClaimRequest } from '../contract.ts'
import type { Broker } from './broker.ts'
import type { InBroker, Staged } from './in-broker.ts'
import { MESSAGE_TYPE } from './message.ts'
import { FAILED_EXCHANGE, type Names, WORK_EXCHANGE } from './names.ts'
import { type Outgoing, publishAll } from './publisher.ts'

export type MessageTtl = (task: Pick<Task, 'url' | 'lane' | 'route' | 'priority'>) => number | undefined

interface FeederParts {
  belt: InBroker
  broker: Broker
  names: Names
  messageTtlMs?: MessageTtl | undefined
}

/** Claims nothing: only puts tasks on the belt. */
const FEED: ClaimRequest = { max: 0, workerId: '', leaseMs: 0 }

export class Feeder {
  readonly #parts: FeederParts
  /** What goes on beside the claims. */
  readonly #working = new Set<Promise<unknown>>()
  #feeding: Promise<void> | undefined
  #isFedAgain = false
  #isClosed = false

  constructor(parts: FeederParts) {
    this.#parts = parts
  }

  /** Puts what is ready on the belt until it is full. One at a time; failures are left to the next claim. */
  fed(): void {
    this.#isFedAgain = true
    this.#feeding ??= this.#feed().finally(() => {
      this.#feeding = undefined
    })
  }

  /** Work that nobody waits for. When a server is away, what is unconfirmed stays noted in the ledger, and is published again. */
  aside(work: Promise<unknown>): void {
    const working = work.catch(() => {}).finally(() => this.#working.delete(working))
    this.#working.add(working)
  }

  /** A claim need not wait for the confirms. */
  publishAside(staged: readonly Staged[]): void {
    if (staged.length > 0) this.aside(this.#publish(staged))
  }

  /** A copy for people in `failed_urls`; the letter itself is in the ledger. Without a broker that takes it there is none. */
  tell(failures: readonly object[]): void {
    const { broker } = this.#parts
    if (failures.length === 0 || !broker.isOpen || broker.isBlocked) return
    const notices = failures.map((body) => this.#notice(body))
    this.aside(broker.session().then(({ publisher }) => publishAll(publisher, notices)))
  }

  /** All that was begun has ended. */
  async settled(): Promise<void> {
    await this.#feeding
    await Promise.allSettled(this.#working)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.settled()
  }

  async #feed(): Promise<void> {
    const { belt, broker } = this.#parts
    try {
      while (this.#isFedAgain && !this.#isClosed && !broker.isBlocked) {
        this.#isFedAgain = false
        await broker.session()
        const { staged } = await belt.tend(FEED, { isBlocked: broker.isBlocked })
        await this.#publish(staged)
        if (staged.length > 0) this.#isFedAgain = true
      }
    } catch {
      // The broker or Redis is away; whoever claims next goes on here.
    }
  }

  async #publish(staged: readonly Staged[]): Promise<void> {
    if (staged.length === 0) return
    const { belt, broker } = this.#parts
    for (const lane of new Set(staged.map((entry) => entry.lane))) await broker.declareLane(lane)
    const session = await broker.session()
    const outgoing = staged.map((entry) => this.#outgoing(entry))
    const { confirmed, unroutable, failed } = await publishAll(session.publisher, outgoing)
    if (confirmed.length > 0) await belt.sent(confirmed)
    const back = [...unroutable, ...failed]
    if (back.length > 0) await belt.unstage(back)
    if (unroutable.length > 0) broker.drop(session) // somebody deleted a queue: a new session declares it again
  }

  #outgoing({ seq, lane, message }: Staged): Outgoing {
    const { names, messageTtlMs } = this.#parts
    const ttlMs = messageTtlMs?.(message)
    return {
      key: seq,
      body: message,
      envelope: {
        exchange: WORK_EXCHANGE,
        routingKey: names.workKey(lane),
        type: MESSAGE_TYPE,
        messageId: message.id,
        appId: 'sluice',
        ...(ttlMs === undefined ? {} : { expiration: String(Math.max(0, Math.floor(ttlMs))) }),
      },
    }
  }

  #notice(body: object): Outgoing {
    const routingKey = this.#parts.names.failedKey
    return {
      key: randomUUID(),
      body,
      envelope: { exchange: FAILED_EXCHANGE, routingKey, type: MESSAGE_TYPE, appId: 'sluice' },
    }
  }
}
