/** Messages that were delivered but not acknowledged: those a claim may choose from, and those whose tasks are claimed. */
import { hostOf } from '../../core/url.ts'
import type { ClaimRequest } from '../contract.ts'
import { byTurn, type Candidate, deal, isServed, laneGroups } from '../shared/fair-share.ts'
import type { TaskMessage } from './message.ts'

export interface Delivery {
  readonly message: TaskMessage
  readonly seq: string
  readonly lane: string
  /** Undefined if the broker does not wait for an acknowledgement. */
  readonly ack: (() => void) | undefined
  readonly nack: (() => void) | undefined
  readonly receivedMs: number
}

/** Deliveries of one lane, priority and host, like the ready queues of an engine. */
class Queue implements Candidate {
  readonly lane: string
  readonly host: string
  readonly priority: number
  readonly deliveries: Delivery[] = []
  turn: number

  constructor({ lane, message }: Delivery, turn: number) {
    this.lane = lane
    this.host = hostOf(message.url)
    this.priority = message.priority
    this.turn = turn
  }

  get ready(): number {
    return this.deliveries.length
  }
}

export class Deliveries {
  readonly #queues = new Map<string, Queue>()
  readonly #waiting = new Map<string, Delivery>()
  /** By lease token. */
  readonly #held = new Map<string, Delivery>()
  #turn = 0
  readonly #perLane = new Map<string, number>()
  /** Called on each delivery. */
  readonly #waiters = new Set<() => void>()

  /** Number of deliveries of these lanes that no claim has chosen yet. */
  waiting(lanes?: readonly string[]): number {
    if (lanes === undefined) return this.#waiting.size
    let count = 0
    for (const lane of lanes) count += this.#perLane.get(lane) ?? 0
    return count
  }

  get held(): number {
    return this.#held.size
  }

  /** Waits until `isEnough`, as long as messages keep coming: at most `quietMs` after the last one. */
  until(isEnough: () => boolean, quietMs: number): Promise<void> {
    if (quietMs <= 0 || isEnough()) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = () => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
      resolve()
    }
    const timer = setTimeout(end, quietMs)
    const waiter = () => {
      if (isEnough()) end()
      else timer.refresh()
    }
    this.#waiters.add(waiter)
    return promise
  }

  put(delivery: Delivery): void {
    const { seq, lane, message } = delivery
    const name = `${lane} ${message.priority} ${hostOf(message.url)}`
    // Messages may arrive twice; one is enough. (While its task is claimed, a second one may announce the task's next turn.)
    if (this.#waiting.has(seq)) {
      delivery.ack?.()
      return
    }
    this.#waiting.set(seq, delivery)
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = new Queue(delivery, ++this.#turn)
      this.#queues.set(name, queue)
    }
    queue.deliveries.push(delivery)
    this.#count(lane, 1)
    for (const waiter of this.#waiters) waiter()
  }

  /** Takes up to `max`, by the rules of the contract, among those that have arrived. */
  choose({ lanes, avoidHosts }: ClaimRequest, max: number): Delivery[] {
    const avoid = new Set(avoidHosts)
    const queues = [...this.#queues.values()].filter(({ host }) => !avoid.has(host))
    for (const { deliveries } of queues) deliveries.sort((a, b) => Number(a.seq) - Number(b.seq))
    const chosen: Delivery[] = []
    for (const group of laneGroups(new Set(queues.map(({ lane }) => lane)), lanes)) {
      const left = max - chosen.length
      if (left <= 0) break
      const dealt = deal(queues.filter(({ lane }) => group.includes(lane)).sort(byTurn), left)
      for (const queue of dealt) chosen.push(queue.deliveries.shift()!)
      for (const queue of new Set(dealt)) queue.turn = ++this.#turn
    }
    for (const { seq, lane } of chosen) {
      this.#waiting.delete(seq)
      this.#count(lane, -1)
    }
    for (const [name, { ready }] of this.#queues) if (ready === 0) this.#queues.delete(name)
    return chosen
  }

  /** Takes out those older than `ageMs` whose host or lane neither this claim nor another one of the worker can use now. */
  takeUnusable({ lanes, avoidHosts = [] }: ClaimRequest, others: readonly ClaimRequest[], ageMs: number): Delivery[] {
    const beforeMs = performance.now() - ageMs
    return this.#takeOut(({ lane, message, receivedMs }) => {
      const isUsable = isServed(lane, lanes)
        ? !avoidHosts.includes(hostOf(message.url))
        : others.some((other) => isServed(lane, other.lanes))
      return !isUsable && receivedMs <= beforeMs
    })
  }

  takeAll(): Delivery[] {
    return this.#takeOut(() => true)
  }

  /** Its task is claimed: acknowledged when the lease is over. */
  hold(token: string, delivery: Delivery): void {
    if (delivery.ack !== undefined) this.#held.set(token, delivery)
  }

  /** The lease is over. */
  release(token: string): void {
    const delivery = this.#held.get(token)
    if (delivery === undefined) return
    this.#held.delete(token)
    delivery.ack!()
  }

  /** The connection is lost: the broker will redeliver unacknowledged messages, but not those that needed no acknowledgement. */
  forget(): void {
    this.#held.clear()
    const kept = this.takeAll().filter(({ ack }) => ack === undefined)
    for (const delivery of kept) this.put(delivery)
  }

  #count(lane: string, by: number): void {
    this.#perLane.set(lane, (this.#perLane.get(lane) ?? 0) + by)
  }

  #takeOut(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (const [name, queue] of this.#queues) {
      const kept = queue.deliveries.filter((delivery) => !isWanted(delivery))
      if (kept.length === queue.deliveries.length) continue
      taken.push(...queue.deliveries.filter(isWanted))
      queue.deliveries.splice(0, queue.deliveries.length, ...kept)
      if (kept.length === 0) this.#queues.delete(name)
    }
    for (const { seq, lane } of taken) {
      this.#waiting.delete(seq)
      this.#count(lane, -1)
    }
    return taken
  }
}
