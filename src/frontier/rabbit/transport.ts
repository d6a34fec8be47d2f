/**
 * Delivers ready tasks to workers over RabbitMQ. The ledger stages them, we publish them with confirms, a worker that receives a
 * message requests the lease from the ledger, and acknowledges when the lease is over. A message is only a hint: a lost one is
 * noticed and sent again, a superfluous one is discarded.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { every } from '../../core/every.ts'
import type { NewTask } from '../../core/task.ts'
import type { ClaimRequest, Lease, Outcome } from '../contract.ts'
import type { ReadyTransport } from '../redis/transport.ts'
import type { Broker } from './broker.ts'
import type { Delivery } from './deliveries.ts'
import { Feeder } from './feeder.ts'
import { createExpired, createStray } from './foreign-messages.ts'
import type { InBroker } from './in-broker.ts'
import { Intake } from './intake.ts'
import { DEFAULT_RUN, type Names } from './names.ts'
import type { TransportOptions } from './options.ts'
import { isConnectionLoss, unreachable } from './outage.ts'

interface TransportParts {
  belt: InBroker
  broker: Broker
  names: Names
  epoch: string
  /** Adds a task that another program has put into our queues. */
  add: (task: NewTask) => Promise<unknown>
}

/** A message for a host that is avoided here is given back after this long, for other workers. */
const UNUSABLE_MS_MAX = 1000
/** Lanes whose queues other programs may publish to. */
const OPEN_LANES = ['bulk', 'priority']
/** For reading leftover messages from the queues of a run that has nothing left to do. */
const READ_AT_ONCE = 256
const READ_POLL_MS = 20
const READ_MS_MAX = 5_000
/** A broker that is short of memory confirms nothing; unconfirmed messages stay recorded in the ledger. */
const CLOSE_MS_MAX = 5000
/** A claim that loses its connection this often in a row gives up. */
const LOSSES_MAX = 5

export function rabbitTransport(parts: TransportParts, options: TransportOptions = {}): ReadyTransport {
  return new RabbitTransport(parts, options)
}

class RabbitTransport implements ReadyTransport {
  readonly #parts: TransportParts
  readonly #options: TransportOptions
  readonly #feeder: Feeder
  readonly #intake: Intake
  readonly #idle: NodeJS.Timeout
  #lastClaimMs = performance.now()
  /** By lanes: pages and files are claimed through one engine, and neither gives back the messages of the other. */
  readonly #asked = new Map<string, { request: ClaimRequest; atMs: number }>()
  #lastAuditMs = performance.now()
  #claiming = 0

  constructor(parts: TransportParts, options: TransportOptions) {
    const { ack = 'manual', idleMs = 5000, prefetch } = options
    this.#parts = parts
    this.#options = options
    const { belt, broker, names, epoch, add } = parts
    this.#feeder = new Feeder({ belt, broker, names, messageTtlMs: options.messageTtlMs })
    this.#intake = new Intake(
      {
        broker,
        names,
        epoch,
        ackOf: (lane) => (typeof ack === 'string' ? ack : (ack[lane] ?? 'manual')),
        onExpired: createExpired(belt, this.#feeder, options.expired ?? 'requeue'),
        onStray: createStray(belt, this.#feeder, add),
      },
      prefetch,
    )
    this.#idle = every(() => {
      if (this.#claiming === 0 && performance.now() - this.#lastClaimMs > idleMs) this.#feeder.aside(this.#rest())
    }, idleMs)
    this.#idle.unref()
  }

  async claim(request: ClaimRequest): Promise<Lease[]> {
    if (request.max < 1) return []
    this.#asked.set(String(request.lanes), { request, atMs: performance.now() })
    this.#claiming++
    try {
      return await this.#claim(request)
    } finally {
      this.#claiming--
      this.#lastClaimMs = performance.now()
    }
  }

  async #claim(request: ClaimRequest): Promise<Lease[]> {
    const leases: Lease[] = []
    for (let losses = 0; ; ) {
      try {
        const wanted = request.max - leases.length
        const isMore = await this.#claimSome({ ...request, max: wanted }, leases)
        if (!isMore || leases.length >= request.max) break
      } catch (error) {
        if (leases.length > 0) break // they are ours, whatever happened afterwards
        if (!isConnectionLoss(error)) throw error
        if (++losses > LOSSES_MAX) throw unreachable(this.#parts.broker.place, error as Error)
      }
    }
    if (request.avoidHosts !== undefined || request.lanes !== undefined) this.#feeder.aside(this.#giveBack(request))
    return leases
  }

  /** Stages ready tasks and claims some from the broker. False if it is not worth trying again at once. */
  async #claimSome(request: ClaimRequest, leases: Lease[]): Promise<boolean> {
    const { belt, broker } = this.#parts
    const isExact = (this.#options.chooseMs ?? 0) > 0
    await broker.session() // without a broker nothing is staged
    if (isExact) await this.#feeder.settled()
    const { alone, staged, counts } = await belt.tend(request, { isBlocked: broker.isBlocked })
    if (alone !== undefined) {
      leases.push(...alone)
      return false
    }
    this.#feeder.publishAside(staged)
    if (isExact) await this.#feeder.settled()
    const lanes = [...counts].filter(([, count]) => count > 0).map(([lane]) => lane)
    const onBelt = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const taken = await this.#takeFromBelt(request, { lanes, onBelt, leases })
    if (taken === 0 && onBelt > 0) await this.#audit(lanes)
    // One call stages only so many; a larger claim continues.
    return taken > 0 && staged.length > 0
  }

  async #takeFromBelt(
    request: ClaimRequest,
    on: { lanes: string[]; onBelt: number; leases: Lease[] },
  ): Promise<number> {
    const { deliveries } = this.#intake
    let taken = 0
    while (taken < request.max && taken < on.onBelt) {
      const wanted = request.max - taken
      await this.#intake.consume(on.lanes, wanted)
      await this.#settle(on.lanes, { onBelt: on.onBelt - taken, wanted })
      const chosen = deliveries.choose(request, wanted)
      if (chosen.length === 0) break
      const { given, gone, isRefused } = await this.#lease(request, chosen)
      const bySeq = new Map(chosen.map((delivery) => [delivery.seq, delivery]))
      for (const { seq, lease } of given) {
        deliveries.hold(lease.token, bySeq.get(seq)!)
        on.leases.push(lease)
      }
      for (const seq of gone) bySeq.get(seq)!.ack?.()
      taken += given.length
      if (!isRefused) continue
      for (const delivery of chosen) deliveries.put(delivery)
      break
    }
    return taken
  }

  async #lease(request: ClaimRequest, chosen: readonly Delivery[]): ReturnType<InBroker['lease']> {
    try {
      return await this.#parts.belt.lease(request, chosen)
    } catch (error) {
      for (const delivery of chosen) this.#intake.deliveries.put(delivery)
      throw error
    }
  }

  /** Waits for messages that must be on their way, as long as they keep coming. */
  async #settle(lanes: readonly string[], { onBelt, wanted }: { onBelt: number; wanted: number }): Promise<void> {
    const { waitMs = 25, chooseMs = 0 } = this.#options
    const { deliveries, window } = this.#intake
    const hasAll = () => {
      const here = deliveries.waiting(lanes)
      return here >= onBelt || here + deliveries.held >= window * lanes.length
    }
    await deliveries.until(() => deliveries.waiting(lanes) >= wanted || hasAll(), waitMs)
    await deliveries.until(hasAll, chooseMs)
  }

  /** Tasks this worker cannot use for now go back to the ledger, so that they neither fill the window nor are held up here. */
  async #giveBack(request: ClaimRequest): Promise<void> {
    const { deliveries, window } = this.#intake
    const isFull = deliveries.waiting() + deliveries.held >= window
    const sinceMs = performance.now() - UNUSABLE_MS_MAX
    const others = [...this.#asked.values()].filter(({ atMs }) => atMs >= sinceMs).map((asked) => asked.request)
    const unusable = deliveries.takeUnusable(request, others, isFull ? 0 : UNUSABLE_MS_MAX)
    if (unusable.length === 0) return
    await this.#parts.belt.unstage(unusable.map(({ seq }) => seq))
    for (const { ack } of unusable) ack?.()
  }

  /** There are tasks in the broker, but none arrive: were their messages lost (a purged queue, a worker killed in auto mode)? */
  async #audit(lanes: readonly string[]): Promise<void> {
    const { broker, belt, names } = this.#parts
    const { lostMs = 60_000 } = this.#options
    if (performance.now() - this.#lastAuditMs < Math.min(lostMs, 5000)) return
    this.#lastAuditMs = performance.now()
    const { consumer } = await broker.session()
    for (const lane of lanes) {
      const { messageCount } = await consumer.queueDeclare({ queue: names.work(lane).queue, passive: true })
      if (messageCount === 0) await belt.unstageOld(lane, lostMs)
    }
  }

  fed(): void {
    this.#feeder.fed()
  }

  over(outcomes: readonly (Outcome | Lease)[]): void {
    const died: object[] = []
    for (const outcome of outcomes) {
      const lease = 'lease' in outcome ? outcome.lease : outcome
      this.#intake.deliveries.release(lease.token)
      if ('kind' in outcome && outcome.kind === 'dead') died.push({ ...lease.task, error: outcome.error })
    }
    this.#feeder.tell(died)
  }

  died(letters: readonly object[]): void {
    this.#feeder.tell(letters)
  }

  /** Bounded: a queue that does not answer after its broker was killed must not keep a run from ending. */
  async readToEnd(): Promise<void> {
    const over = new AbortController()
    const late = sleep(READ_MS_MAX, undefined, { signal: over.signal }).catch(() => {})
    try {
      await Promise.race([this.#readQueues(over.signal), late])
    } catch (error) {
      if (!isConnectionLoss(error)) throw error // the next claim waits for the broker
    } finally {
      over.abort()
    }
  }

  async #readQueues(over: AbortSignal): Promise<void> {
    const { broker, names } = this.#parts
    for (let isMore = true; isMore && broker.isOpen && !over.aborted; ) {
      const { consumer } = await broker.session()
      const waiting: string[] = []
      for (const lane of OPEN_LANES) {
        const { messageCount } = await consumer.queueDeclare(names.work(lane)) // returns how many are waiting
        if (messageCount > 0) waiting.push(lane)
      }
      isMore = waiting.length > 0
      if (isMore) {
        await this.#intake.consume(waiting, READ_AT_ONCE)
        await sleep(READ_POLL_MS)
      }
      for (const { ack } of this.#intake.deliveries.takeAll()) ack?.() // hints for tasks that are already settled
      await this.#intake.settled()
    }
  }

  async #rest(): Promise<void> {
    const stranded = await this.#intake.rest()
    if (stranded.length > 0) await this.#parts.belt.unstage(stranded.map(({ seq }) => seq))
  }

  async close({ isFinished }: { isFinished: boolean }): Promise<void> {
    const { broker, names } = this.#parts
    clearInterval(this.#idle)
    if (!broker.isOpen) await broker.close() // releases anyone waiting for it
    const orderly = async () => {
      await this.#feeder.close()
      await this.#rest()
      await this.#intake.settled()
      if (isFinished && broker.isOpen && names.runId !== DEFAULT_RUN) await this.#deleteQueues()
    }
    const timeout = new AbortController()
    const late = sleep(CLOSE_MS_MAX, undefined, { signal: timeout.signal })
    await Promise.race([orderly(), late]).catch(() => {})
    timeout.abort()
    await late.catch(() => {})
    await broker.close()
    await this.#feeder.close()
  }

  async #deleteQueues(): Promise<void> {
    const { broker, names } = this.#parts
    const { consumer, lanes } = await broker.session()
    const queues = [...lanes].map((lane) => names.work(lane).queue)
    for (const queue of [...queues, names.expired.queue]) {
      const { messageCount } = await consumer.queueDeclare({ queue, passive: true })
      if (messageCount === 0) await consumer.queueDelete({ queue }) // quorum queues do not support ifEmpty
    }
  }
}
