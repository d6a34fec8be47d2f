/** The frontier's connection to Redis: scripts on the keys of one run, each call executed once however often it is sent. */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { ScrapeError } from '../../core/errors.ts'
import { Connection, type ConnectionOptions, type EvaluateOptions } from '../../drivers/redis/connection.ts'
import { LOST } from './lua.ts'
import type { Arg, Script } from './script.ts'

export interface LinkOptions extends ConnectionOptions {
  /** The clock of the run. Default: the server's, so that workers need not agree. */
  now?: () => number
}

interface Call {
  /** Number of the call, if it must not be executed twice. */
  op?: string
  /** The ledger keeps its answer until we confirm that we received it. */
  hasAnswer?: boolean
  args?: (isRepeat: boolean) => readonly Arg[]
}

export class Link {
  /** `sluice:{run}:`, the prefix of every key of the run. */
  readonly prefix: string
  readonly runId: string
  readonly #connection: Connection
  readonly #now: (() => number) | undefined
  /**
   * Unique among clients, across all starts of the run. A counter in Redis gave two live clients the same number when the run was
   * started from scratch, or when Redis came back without its last second: leases of one were then valid for the other.
   */
  readonly #client = randomBytes(9).toString('base64url')
  #lastOp = 0
  #heard: string[] = []
  /** Distinguishes this run from earlier ones with the same name, and from a server that lost it. '': not known yet. */
  #epoch = ''

  constructor(url: string, runId: string, { now, ...options }: LinkOptions = {}) {
    this.#connection = new Connection(url, options)
    this.prefix = prefixOf(runId)
    this.runId = runId
    this.#now = now
  }

  get redis(): Redis {
    return this.#connection.redis
  }

  /** `host:port/database`, never with user or password. */
  get place(): string {
    return this.#connection.place
  }

  get epoch(): string {
    return this.#epoch
  }

  /** From now on every script checks that this is still the same run. */
  setEpoch(epoch: string): void {
    this.#epoch = epoch
  }

  /** Called each time the connection is lost: a server that comes back may have forgotten its last second. */
  onLost(listener: () => void): void {
    this.redis.on('close', listener)
  }

  /** For a call that must be executed once; also the number of the leases of a claim. */
  nextOp(): string {
    return `${this.#client}-${++this.#lastOp}`
  }

  /** Runs a script. Without `op` it must be safe to execute twice. */
  async run<T>(script: Script, { op = '', hasAnswer = false, args = () => [] }: Call): Promise<T> {
    let heard: string[] = []
    try {
      return await this.attempt(async (isRepeat) => {
        if (!isRepeat) heard = this.#heard.splice(0)
        const now = this.#now === undefined ? '' : Math.floor(this.#now())
        const all = [this.prefix, now, op, heard.join(), this.#epoch, ...args(isRepeat)]
        const answer = await this.#connection.evaluate(script, all, { keys: 1 })
        if (hasAnswer) this.#heard.push(op)
        return answer as T
      })
    } catch (error) {
      throw error instanceof Error && error.message.startsWith(LOST) ? this.#lost(error) : error
    }
  }

  #lost(cause: Error): ScrapeError {
    return new ScrapeError(
      'E_QUEUE_LOST',
      `the queue of run ${this.runId} is gone: Redis at ${this.place} has lost its data`,
      {
        cause,
      },
    )
  }

  /** Runs a script that concerns more than one run: once, without a retry after an outage. */
  evaluate(script: Script, args: readonly Arg[], options?: EvaluateOptions): Promise<unknown> {
    return this.#connection.evaluate(script, args, options)
  }

  /** For a malformed reply to a plain command: the call is repeated on a new connection. */
  garbled(call: string): Error {
    return this.#connection.garbled(call)
  }

  /** Runs `body` until it succeeds: waits and retries while the server is down. */
  attempt<T>(body: (isRepeat: boolean) => Promise<T>): Promise<T> {
    return this.#connection.attempt(body)
  }

  close(): void {
    this.#connection.close()
  }
}

/** The braces delimit the name of the run: no run's prefix is the prefix of another's. */
export function prefixOf(runId: string): string {
  return `sluice:{${runId}}:`
}
