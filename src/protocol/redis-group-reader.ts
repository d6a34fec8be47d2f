/**
 * One consumer of a consumer group.
 *
 *   (new) ──read──▶ held ──ack, finish──▶ (acknowledged)
 *                   │  ▲
 *                   │  └─ renew, every third of the lease
 *                   └──▶ idle for a lease (its consumer died), or released: another consumer takes it over
 */
import { Connection, type ConnectionOptions } from '../drivers/redis/connection.ts'
import type { Arg, Script } from '../drivers/redis/script.ts'
import { FINISH, HOLD, TRIM } from './redis-lua.ts'
import { entriesByStream, messageOf, type RawEntry } from './redis-replies.ts'
import { ERRORS_KEPT, type StreamNames } from './streams.ts'

interface ReaderOptions extends ConnectionOptions {
  url: string
  names: StreamNames
  /** Streams listed first are emptied first. */
  streams: readonly string[]
  group: string
  consumer: string
  leaseMs: number
}

export interface Entry {
  readonly stream: string
  readonly id: string
  /** Undefined if the entry has no such field. */
  readonly message: string | undefined
  /** How often it was delivered, including this time. */
  readonly deliveries: number
}

/** What is written together with the acknowledgement. */
export interface Finish {
  results?: readonly string[]
  error?: string | undefined
  retry?: { delayed: string; waitMs: number; task: string }
}

const RELEASED_IDLE_MS = 86_400_000
/** The entries of one stream must not keep the others from being seen. */
const TAKEN_AT_ONCE = 100

export class GroupReader implements Disposable {
  readonly #options: ReaderOptions
  readonly #calls: Connection
  /** Separate, because a blocking read would hold up all other calls. */
  readonly #reads: Connection
  readonly #held = new Map<string, Entry>()

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#calls = new Connection(options.url, options)
    this.#reads = new Connection(options.url, { ...options, onOutage: () => {} })
  }

  /** Not connected, as far as this process knows. */
  get isAway(): boolean {
    return this.#calls.redis.status !== 'ready'
  }

  /** Creates the streams and the group if they are missing. Entries from before the group are read too. */
  async open(): Promise<void> {
    const { streams, group } = this.#options
    for (const stream of streams)
      await this.call('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM').catch((error: Error) => {
        if (!error.message.startsWith('BUSYGROUP')) throw error
      })
  }

  /** For commands that may be executed twice. */
  call(command: string, ...args: Arg[]): Promise<unknown> {
    return this.#calls.attempt(() => this.#calls.redis.call(command, ...args))
  }

  run(script: Script, args: readonly Arg[]): Promise<unknown> {
    return this.#calls.attempt(() => this.#calls.evaluate(script, args))
  }

  /** Up to `max` new entries; waits up to `blockMs` for the first. */
  async read(max: number, blockMs: number): Promise<Entry[]> {
    const { streams } = this.#options
    const found: Entry[] = []
    for (const stream of streams) {
      if (found.length < max) found.push(...(await this.#readNew([stream], max - found.length)))
    }
    return found.length > 0 || blockMs === 0 ? found : await this.#readNew(streams, 1, blockMs)
  }

  async #readNew(streams: readonly string[], max: number, blockMs?: number): Promise<Entry[]> {
    const { group, consumer } = this.#options
    const block = blockMs === undefined ? [] : ['BLOCK', blockMs]
    const words = ['GROUP', group, consumer, 'COUNT', max, ...block, 'STREAMS', ...streams, ...streams.map(() => '>')]
    const connection = blockMs === undefined ? this.#calls : this.#reads
    try {
      const reply = await connection.attempt(() => connection.redis.call('XREADGROUP', ...words))
      return entriesByStream(reply).flatMap(([stream, entries]) => this.#hold(stream, entries, () => 1))
    } catch (error) {
      if (!String((error as Error).message).startsWith('NOGROUP')) throw error
      await this.open() // a Redis that lost its data
      return []
    }
  }

  /** Entries that other consumers left idle for a lease, or released. XAUTOCLAIM does not report the delivery count. */
  async takeOver(max: number): Promise<Entry[]> {
    const { streams, group, consumer, leaseMs } = this.#options
    const taken: Entry[] = []
    for (const stream of streams) {
      const room = Math.min(TAKEN_AT_ONCE, max - taken.length)
      if (room <= 0) break
      const pending = (await this.call('XPENDING', stream, group, 'IDLE', leaseMs, '-', '+', room)) as [
        id: string,
        consumer: string,
        idleMs: number,
        deliveries: number,
      ][]
      const deliveries = new Map(pending.map(([id, , , count]) => [id, Number(count) + 1]))
      const ids = [...deliveries.keys()].filter((id) => !this.#held.has(entryKey({ stream, id })))
      if (ids.length === 0) continue
      const entries = (await this.call('XCLAIM', stream, group, consumer, leaseMs, ...ids)) as RawEntry[]
      taken.push(...this.#hold(stream, entries, (id) => deliveries.get(id) ?? 2))
    }
    return taken
  }

  #hold(stream: string, entries: readonly RawEntry[], deliveriesOf: (id: string) => number): Entry[] {
    return entries.flatMap(([id, fields]) => {
      if (fields === null) return [] // deleted by another program
      const entry = { stream, id, message: messageOf(fields), deliveries: deliveriesOf(id) }
      this.#held.set(entryKey(entry), entry)
      return [entry]
    })
  }

  /** False if another consumer has it by now: nothing was written. */
  async finish(entry: Entry, { results = [], error = '', retry }: Finish): Promise<boolean> {
    const { names, group, consumer } = this.#options
    const again = retry === undefined ? ['', 0, ''] : [retry.delayed, retry.waitMs, retry.task]
    const args = [entry.stream, group, consumer, entry.id, names.results, results.length, ...results]
    const all = [...args, names.errors, ERRORS_KEPT, error, ...again]
    let isRepeat = false
    const done = await this.#calls.attempt(async (isAgain) => {
      isRepeat = isAgain
      return await this.#calls.evaluate(FINISH, all)
    })
    this.#held.delete(entryKey(entry))
    return done === 1 || isRepeat // the first attempt may have succeeded
  }

  async acknowledge(entry: Entry): Promise<void> {
    await this.call('XACK', entry.stream, this.#options.group, entry.id)
    this.#held.delete(entryKey(entry))
  }

  /** Extends held entries by another lease. Returns those that are lost. */
  async renew(): Promise<Entry[]> {
    const held = [...this.#held.values()]
    if (held.length === 0) return []
    const lost = new Set((await this.#runHold(held, 0, () => '')) as string[])
    const gone = held.filter((entry) => lost.has(entryKey(entry)) && this.#held.has(entryKey(entry)))
    for (const entry of gone) this.#held.delete(entryKey(entry))
    return gone
  }

  /** Makes them available to other consumers at once. The delivery to us does not count. */
  async release(entries: readonly Entry[]): Promise<void> {
    if (entries.length > 0) await this.#runHold(entries, RELEASED_IDLE_MS, ({ deliveries }) => deliveries - 1)
    for (const entry of entries) this.#held.delete(entryKey(entry))
  }

  #runHold(entries: readonly Entry[], idleMs: number, deliveries: (entry: Entry) => Arg): Promise<unknown> {
    const { group, consumer } = this.#options
    return this.run(HOLD, [
      group,
      consumer,
      idleMs,
      ...entries.flatMap((entry) => [entry.stream, entry.id, deliveries(entry)]),
    ])
  }

  /** Removes entries that all groups have acknowledged, except those younger than `keepMs`. */
  async trim(keepMs: number): Promise<void> {
    for (const stream of this.#options.streams) await this.run(TRIM, [stream, keepMs])
  }

  [Symbol.dispose](): void {
    this.#calls.close()
    this.#reads.close()
  }
}

/** Two streams may assign the same id. */
export const entryKey = ({ stream, id }: Pick<Entry, 'stream' | 'id'>) => `${stream} ${id}`
