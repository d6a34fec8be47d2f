/** The sending side: stages ready tasks, publishes them to the broker, and publishes copies of dead letters for people. */
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

/** Claims nothing: only stages tasks for the broker. */
const FEED: ClaimRequest = { max: 0, workerId: '', leaseMs: 0 }

export class Feeder {
  readonly #parts: FeederParts
  /** Work in the background of claims. */
  readonly #working = new Set<Promise<unknown>>()
  #feeding: Promise<void> | undefined
  #isFedAgain = false
  #isClosed = false

  constructor(parts: FeederParts) {
    this.#parts = parts
  }

  /** Stages ready tasks until the broker has enough. One at a time; failures are left to the next claim. */
  fed(): void {
    this.#isFedAgain = true
    this.#feeding ??= this.#feed().finally(() => {
      this.#feeding = undefined
    })
  }

  /** Work that no caller waits for. If a server is down, the ledger remembers unconfirmed messages, and they are sent again. */
  aside(work: Promise<unknown>): void {
    const working = work.catch(() => {}).finally(() => this.#working.delete(working))
    this.#working.add(working)
  }

  /** A claim need not wait for the confirms. */
  publishAside(staged: readonly Staged[]): void {
    if (staged.length > 0) this.aside(this.#publish(staged))
  }

  /** Publishes copies to `failed_urls` for people; the letters are in the ledger. Skipped if the broker accepts nothing. */
  tell(failures: readonly object[]): void {
    const { broker } = this.#parts
    if (failures.length === 0 || !broker.isOpen || broker.isBlocked) return
    const notices = failures.map((body) => this.#notice(body))
    this.aside(broker.session().then(({ publisher }) => publishAll(publisher, notices)))
  }

  /** Resolves when all started work has ended. */
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
      // The broker or Redis is down; the next claim continues here.
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
    if (unroutable.length > 0) broker.drop(session) // a queue was deleted: a new session declares it again
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
