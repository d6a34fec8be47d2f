/**
 * Fleet slots in Redis: request rates, pauses and requests a minute of hosts, for all workers on one Redis database.
 *
 * For a fleet without PostgreSQL. Only the server's clock counts. The connection is its own: a question for a slot must not wait
 * behind the megabytes of a frontier or a cache.
 */
import { randomUUID } from 'node:crypto'
import { Connection } from '../redis/connection.ts'
import type { Arg, Script } from '../redis/script.ts'
import {
  type BatchedSlotsOptions,
  type HostAnswer,
  openBatchedSlots,
  SLOT_ANSWER_MS_MAX,
  type SlotAnswer,
  type SlotServer,
} from './batched-slots.ts'
import { LEAVE, MEET, PAUSE, TAKE } from './redis-slots-lua.ts'
import type { FleetSlots, SlotAsk } from './spacing.ts'

export interface RedisSlotsOptions extends BatchedSlotsOptions {
  /** `redis://user:password@host:6379/0`, the same for all workers. */
  url: string
  /** Starts a minute and host, over all workers; what is more waits for the next minute. Default 0 = no limit. */
  perMinute?: number
}

/** Throws `E_SERVICE` when Redis cannot be reached now: later it may come and go. */
export async function openRedisSlots(options: RedisSlotsOptions): Promise<FleetSlots> {
  return await openBatchedSlots(new SlotRedis(options.url, options.perMinute ?? 0), options)
}

class SlotRedis implements SlotServer {
  readonly name = 'the rate limits’ Redis'
  readonly #connection: Connection
  readonly #perMinute: number
  readonly #workerId = randomUUID()

  constructor(url: string, perMinute: number) {
    this.#connection = new Connection(url, {
      outageMs: 0,
      answerMsMax: SLOT_ANSWER_MS_MAX,
      silenceMsMax: SLOT_ANSWER_MS_MAX * 2,
    })
    this.#perMinute = perMinute
  }

  async take(asks: readonly SlotAsk[]): Promise<SlotAnswer> {
    const questions = asks.flatMap(({ host, intervalMs, earlyMs, count }) => [host, intervalMs, earlyMs, count])
    const [workers, ...answers] = (await this.#run(TAKE, [this.#perMinute, ...questions])) as (number | string)[]
    const hosts = asks.map(({ host }, i): [string, HostAnswer] => {
      const [waitMs, taken, pausedMs] = answers.slice(i * 3, i * 3 + 3).map(Number) as [number, number, number]
      return [host, { waitMs, taken, pausedMs }]
    })
    return { hosts: new Map(hosts), workers: Number(workers) }
  }

  async pause(pauses: readonly { host: string; pausedMs: number }[]): Promise<void> {
    const all = pauses.flatMap(({ host, pausedMs }) => [host, pausedMs])
    await this.#run(PAUSE, all)
  }

  async meet(): Promise<void> {
    await this.#run(MEET, [this.#workerId])
  }

  async leave(): Promise<void> {
    await this.#run(LEAVE, [this.#workerId])
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  #run(script: Script, args: readonly Arg[]): Promise<unknown> {
    return this.#connection.attempt(() => this.#connection.evaluate(script, args))
  }
}
