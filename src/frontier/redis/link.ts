/** The frontier's way to Redis: scripts on the keys of one run, each call carried out once however often it is sent. */
import type { Redis } from 'ioredis'
import { Connection, type ConnectionOptions } from '../../redis/connection.ts'
import type { Arg, Script } from './script.ts'

export interface LinkOptions extends Omit<ConnectionOptions, 'silenceMsMax'> {
  /** The clock of the run. Default: that of the server, so that workers need not agree. */
  now?: () => number
}

export interface Call {
  /** Number of the call, when it must not be carried out twice. */
  op?: string
  /** The ledger keeps its answer until it hears that we have it. */
  hasAnswer?: boolean
  args?: (isRepeat: boolean) => readonly Arg[]
}

export class Link {
  /** `sluice:{run}:`, the beginning of every key of the run. */
  readonly prefix: string
  readonly #connection: Connection
  readonly #now: (() => number) | undefined
  #client = ''
  #lastOp = 0
  #heard: string[] = []

  constructor(url: string, runId: string, { now, ...options }: LinkOptions = {}) {
    this.#connection = new Connection(url, options)
    this.prefix = prefixOf(runId)
    this.#now = now
  }

  get redis(): Redis {
    return this.#connection.redis
  }

  /** `host:port/database`, never with user or password. */
  get place(): string {
    return this.#connection.place
  }

  /** Connects, and gets a number no other client of the run has. */
  async open(): Promise<void> {
    this.#client = String(await this.attempt(() => this.redis.hincrby(`${this.prefix}totals`, 'clients', 1)))
  }

  /** For a call that must be carried out once; also the number of the leases of a claim. */
  nextOp(): string {
    return `${this.#client}-${++this.#lastOp}`
  }

  /** Runs a script. Without `op` it must be safe to carry out twice. */
  run<T>(script: Script, { op = '', hasAnswer = false, args = () => [] }: Call): Promise<T> {
    let heard: string[] = []
    return this.attempt(async (isRepeat) => {
      if (!isRepeat) heard = this.#heard.splice(0)
      const now = this.#now === undefined ? '' : Math.floor(this.#now())
      const all = [this.prefix, now, op, heard.join(), ...args(isRepeat)]
      const answer = await this.#connection.evaluate(script, all, 1)
      if (hasAnswer) this.#heard.push(op)
      return answer as T
    })
  }

  /** Runs `body` until it is through: again after a wait while the server is away. */
  attempt<T>(body: (isRepeat: boolean) => Promise<T>): Promise<T> {
    return this.#connection.attempt(body)
  }

  close(): void {
    this.#connection.close()
  }
}

/** Keys of one run have one hash tag: in a cluster a script may touch them all. */
export function prefixOf(runId: string): string {
  return `sluice:{${runId}}:`
}
