/** The way to Redis: one connection, calls that wait out an outage and are carried out once, and errors in our own words. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { ScrapeError } from '../../core/errors.ts'
import type { Outage } from '../contract.ts'
import { isOutage, isRefusal, reasonOf } from './outage.ts'
import type { Arg, Script } from './script.ts'

export interface LinkOptions {
  /** How long an operation waits for a server that went away before it fails. Default 60,000; 0: not at all. */
  outageMs?: number
  /** An answer that takes longer counts as an outage: the call is repeated. Default 60,000. */
  answerMsMax?: number
  /** Told before each wait, so that somebody can log it. */
  onOutage?: (outage: Outage) => void
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

const CONNECT_MS_MAX = 5000
/** A wrong address should be said at once; a server that is just starting may take this long. */
const OPEN_OUTAGE_MS_MAX = 5000
const WAIT_MS = { min: 50, max: 2000 }

export class Link {
  readonly redis: Redis
  /** `sluice:{run}:`, the beginning of every key of the run. */
  readonly prefix: string
  /** `host:port/database`, never with user or password. */
  readonly place: string
  readonly #outageMs: number
  readonly #onOutage: (outage: Outage) => void
  readonly #now: (() => number) | undefined
  readonly #closing = new AbortController()
  #isOpen = false
  #client = ''
  #lastOp = 0
  #heard: string[] = []
  #lastError: Error | undefined

  constructor(url: string, runId: string, options: LinkOptions = {}) {
    const { outageMs = 60_000, answerMsMax = 60_000, onOutage = () => {}, now } = options
    this.place = placeOf(url)
    this.prefix = prefixOf(runId)
    this.#outageMs = outageMs
    this.#onOutage = onOutage
    this.#now = now
    this.redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_MS_MAX,
      commandTimeout: answerMsMax,
      // We repeat calls ourselves, since only we know which may be repeated and how.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: (times) => Math.min(WAIT_MS.max, WAIT_MS.min * 2 ** Math.min(times - 1, 10)),
      connectionName: 'sluice',
    })
    this.redis.on('error', (error) => {
      this.#lastError = error
    })
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
      const answer = await this.#evaluate(script, all)
      if (hasAnswer) this.#heard.push(op)
      return answer as T
    })
  }

  /** Runs `body` until it is through: again after a wait while the server is away. */
  async attempt<T>(body: (isRepeat: boolean) => Promise<T>): Promise<T> {
    const startMs = performance.now()
    for (let outages = 0; ; ) {
      try {
        if (this.redis.status === 'wait') await this.redis.connect()
        const result = await body(outages > 0)
        this.#isOpen = true
        return result
      } catch (error) {
        if (!isOutage(error) || this.#closing.signal.aborted) throw this.#named(error)
        const waitMs = Math.round((0.5 + Math.random() / 2) * Math.min(WAIT_MS.max, WAIT_MS.min * 2 ** outages++))
        const outageMs = this.#isOpen ? this.#outageMs : Math.min(OPEN_OUTAGE_MS_MAX, this.#outageMs)
        const cause = this.#lastError ?? (error as Error)
        if (performance.now() - startMs + waitMs > outageMs) throw this.#named(cause)
        this.#onOutage({ attempt: outages, error: cause, waitMs })
        await sleep(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {})
      }
    }
  }

  close(): void {
    this.#closing.abort()
    this.redis.disconnect()
  }

  async #evaluate(script: Script, all: readonly Arg[]): Promise<unknown> {
    try {
      return await this.redis.evalsha(script.sha, 1, ...all)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await this.redis.eval(script.lua, 1, ...all)
    }
  }

  #named(error: unknown): unknown {
    if (error instanceof ScrapeError) return error
    const reason = reasonOf(error)
    if (isOutage(error))
      return new ScrapeError('E_SERVICE', `${this.place} is unreachable: ${reason}`, { cause: error })
    if (!isRefusal(error)) return error
    return new ScrapeError('E_SERVICE', `${this.place} refuses: ${reason}`, {
      cause: error,
      fix: 'Check the URL of Redis, the rights of its user, and its memory limit.',
    })
  }
}

/** Keys of one run have one hash tag: in a cluster a script may touch them all. */
export function prefixOf(runId: string): string {
  return `sluice:{${runId}}:`
}

function placeOf(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !/^rediss?:$/.test(parsed.protocol)) {
    throw new ScrapeError('E_OPTION', 'the URL of Redis is not one', {
      fix: 'For example redis://user:password@localhost:6379/0',
    })
  }
  const { hostname, port, pathname } = parsed
  return `${hostname || 'localhost'}:${port || 6379}${pathname}`
}
