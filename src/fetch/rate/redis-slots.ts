/**
 * Fleet slots in Redis: request rates, pauses and requests per minute of hosts, for all workers on one Redis database.
 *
 * For a fleet without PostgreSQL. Only the server's clock counts. It has its own connection: a request for a slot must not wait
 * behind the megabytes of a frontier or a cache.
 */
import { randomUUID } from 'node:crypto'
import { Connection } from '../../drivers/redis/connection.ts'
import type { Arg, Script } from '../../drivers/redis/script.ts'
import {
  type BatchedSlotsOptions,
  type HostAnswer,
  openBatchedSlots,
  SLOT_ANSWER_MS_MAX,
  type SlotAnswer,
  type SlotServer,
} from './batched-slots.ts'
import { slotScripts } from './redis-slots-lua.ts'
import type { FleetSlots, SlotAsk } from './spacing.ts'

interface RedisSlotsOptions extends BatchedSlotsOptions {
  /** `redis://user:password@host:6379/0`, the same for all workers. */
  url: string
  /** Starts per minute and host, across all workers; further ones wait for the next minute. Default 0 = no limit. */
  perMinute?: number
  /** Lua for the milliseconds since 1970. Default: the server's own clock. */
  clock?: string
}

/** Throws `E_SERVICE` if Redis cannot be reached now; later outages are tolerated. */
export async function openRedisSlots(options: RedisSlotsOptions): Promise<FleetSlots> {
  return await openBatchedSlots(new SlotRedis(options), options)
}

class SlotRedis implements SlotServer {
  readonly name = 'the rate limits’ Redis'
  readonly #connection: Connection
  readonly #perMinute: number
  readonly #scripts: ReturnType<typeof slotScripts>
  readonly #workerId = randomUUID()

  constructor({ url, perMinute = 0, clock }: RedisSlotsOptions) {
    this.#connection = new Connection(url, {
      outageMs: 0,
      answerMsMax: SLOT_ANSWER_MS_MAX,
      silenceMsMax: SLOT_ANSWER_MS_MAX * 2,
    })
    this.#perMinute = perMinute
    this.#scripts = slotScripts(clock)
  }

  async take(asks: readonly SlotAsk[]): Promise<SlotAnswer> {
    const questions = asks.flatMap(({ host, intervalMs, earlyMs, count }) => [host, intervalMs, earlyMs, count])
    const [workers, ...answers] = (await this.#run(this.#scripts.take, [this.#perMinute, ...questions])) as (
      | number
      | string
    )[]
    const hosts = asks.map(({ host }, i): [string, HostAnswer] => {
      const [waitMs, taken, pausedMs] = answers.slice(i * 3, i * 3 + 3).map(Number) as [number, number, number]
      return [host, { waitMs, taken, pausedMs }]
    })
    return { hosts: new Map(hosts), workers: Number(workers) }
  }

  async pause(pauses: readonly { host: string; pausedMs: number }[]): Promise<void> {
    const all = pauses.flatMap(({ host, pausedMs }) => [host, pausedMs])
    await this.#run(this.#scripts.pause, all)
  }

  async meet(): Promise<void> {
    await this.#run(this.#scripts.meet, [this.#workerId])
  }

  async leave(): Promise<void> {
    await this.#run(this.#scripts.leave, [this.#workerId])
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  #run(script: Script, args: readonly Arg[]): Promise<unknown> {
    return this.#connection.attempt(() => this.#connection.evaluate(script, args))
  }
}
