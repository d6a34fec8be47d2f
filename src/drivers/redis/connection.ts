/** A connection to a Redis server: calls that wait out an outage, and errors in our own words. */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type BackoffLimits, doubledMs } from '../../core/backoff.ts'
import { ScrapeError } from '../../core/errors.ts'
import { optionalPackage } from '../../core/optional-package.ts'
import { refuseOtherParameters, takeTls, tlsTrouble } from '../../core/server-tls.ts'
import { type Outage, OutageWait } from '../outage.ts'
import { GarbledReply, isBusy, isLate, isOutage, isRefusal, reasonOf } from './outage.ts'
import { type Arg, opened, type Script } from './script.ts'
import { guardReplies } from './surplus-replies.ts'

const ioredis = await optionalPackage('Redis needs', 'ioredis', () => import('ioredis'))

export interface ConnectionOptions {
  /** How long an operation waits for an unreachable server before it fails. Default 60,000; 0: not at all. */
  outageMs?: number
  /** A slower answer counts as an outage, and the call is repeated. Must be well below `outageMs`. Default 15,000. */
  answerMsMax?: number
  /** A connection that is silent for this long after a call is replaced. Default 10,000. */
  silenceMsMax?: number
  /** Called before each wait for an unreachable or busy server, once however many calls wait. */
  onOutage?: (outage: Outage) => void
}

export interface EvaluateOptions {
  /** How many of the arguments are keys. */
  keys?: 0 | 1
  /** The reply contains bytes instead of text. */
  isBinary?: boolean
}

export const DEFAULT_MS = { outageMs: 60_000, answerMsMax: 15_000, silenceMsMax: 10_000 }
const CONNECT_MS_MAX = 5000
const RECONNECT: BackoffLimits = { delayMsMin: 50, delayMsMax: 2000 }
const HINT =
  'A URL of Redis is rediss://user:password@host:port/database, with cacert, cert, key, servername or verify=none; redis:// is plain text.'

export class Connection {
  readonly redis: Redis
  /** `host:port/database`, never with user or password. */
  readonly place: string
  readonly #outageMs: number
  readonly #onOutage: (outage: Outage) => void
  readonly #closing = new AbortController()
  #isOpen = false
  #lastError: Error | undefined
  /** Connection attempts since the last successful one. */
  #attempts = 0
  #busyUntilMs = 0
  readonly #tagPrefix = randomBytes(4).toString('hex')
  #calls = 0

  constructor(url: string, options: ConnectionOptions = {}) {
    const { outageMs = DEFAULT_MS.outageMs, onOutage = () => {} } = options
    const { answerMsMax = DEFAULT_MS.answerMsMax, silenceMsMax = DEFAULT_MS.silenceMsMax } = options
    this.place = placeOf(url)
    this.#outageMs = outageMs
    this.#onOutage = onOutage
    const bare = new URL(url)
    const tls = takeTls(bare, bare.protocol === 'rediss:')
    refuseOtherParameters(bare, [], HINT)
    this.redis = new ioredis.Redis(bare.href, {
      ...(tls === undefined ? {} : { tls }),
      lazyConnect: true,
      connectTimeout: CONNECT_MS_MAX,
      commandTimeout: answerMsMax,
      // A connection may go silent without being closed: a firewall dropped it, or the machine behind it was replaced.
      socketTimeout: silenceMsMax,
      // We repeat calls ourselves, because only we know which may be repeated and how.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: (times) => doubledMs(times, RECONNECT),
      connectionName: 'sluice',
    })
    this.redis.on('error', (error) => {
      this.#lastError = error
    })
    this.redis.on('ready', () => {
      this.#lastError = undefined
      this.#attempts = 0
    })
    // The client handles one error per socket. TLS can cause two: the alert of the server, then the reset that follows it.
    this.redis.on('connect', () => {
      this.redis.stream.on('error', () => {})
      guardReplies(this.redis, () => this.#giveUp(new GarbledReply('no call')))
    })
    this.redis.on('reconnecting', (waitMs: number) => {
      const error = this.#lastError ?? new Error('the connection was closed')
      this.#onOutage({ attempt: ++this.#attempts, error, waitMs })
    })
  }

  /** Runs `body` until it succeeds: waits and retries while the server is down. */
  async attempt<T>(body: (isRepeat: boolean) => Promise<T>): Promise<T> {
    const wait = new OutageWait({ outageMs: this.#outageMs, wasOpen: this.#isOpen, signal: this.#closing.signal })
    for (;;) {
      try {
        if (this.redis.status === 'wait') await this.redis.connect()
        if (!this.#isOpen) await this.#chooseDatabase()
        const result = await body(wait.isRepeat)
        this.#isOpen = true
        return result
      } catch (error) {
        if (isLate(error)) this.#giveUp(error as Error)
        const badTls = tlsTrouble(this.#lastError ?? error, this.place, 'cacert')
        if (badTls !== undefined && !this.#isOpen) throw badTls
        if (!isOutage(error)) throw this.#named(error)
        const cause = this.#lastError ?? (error as Error)
        // While the server is down, the client reports each connection attempt.
        const tell = (outage: Outage) => isBusy(error) && this.#tellOfBusy(outage)
        if (!(await wait.next(error as Error, tell))) throw this.#named(cause)
      }
    }
  }

  /** The client falls back to database 0 if this one does not exist: two systems would share one without knowing. */
  async #chooseDatabase(): Promise<void> {
    const number = Number(/\/(\d+)$/.exec(this.place)?.[1] ?? 0)
    if (number === 0) return
    await this.redis.select(number).catch((error: Error) => {
      if (!/out of range/.test(error.message)) throw error
      throw new ScrapeError('E_SERVICE', `${this.place}: this Redis has no database ${number}`, {
        cause: error,
        fix: 'Name one it has (0 to 15 unless it was told otherwise).',
      })
    })
  }

  /** Once, without a retry after an outage. A reply to any other call closes the connection and is never used. */
  async evaluate(
    script: Script,
    all: readonly Arg[],
    { keys = 0, isBinary = false }: EvaluateOptions = {},
  ): Promise<unknown> {
    const tag = `${this.#tagPrefix}-${++this.#calls}`
    // One array, which the client flattens: 120,000 separate arguments would overflow the stack. (It converts numbers to text.)
    const args = [...all, tag] as (string | Buffer)[]
    const found = opened(await this.#send(script, args, { keys, isBinary }), tag)
    if (found === undefined) throw this.garbled(script.name)
    return found.answer
  }

  async #send(
    script: Script,
    args: (string | Buffer)[],
    { keys, isBinary }: Required<EvaluateOptions>,
  ): Promise<unknown> {
    const { redis } = this
    try {
      return await (isBinary
        ? redis.callBuffer('EVALSHA', [script.sha, keys, ...args])
        : redis.evalsha(script.sha, keys, args))
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await (isBinary
        ? redis.callBuffer('EVAL', [script.lua, keys, ...args])
        : redis.eval(script.lua, keys, args))
    }
  }

  /** For a malformed reply. Thrown within `attempt`, it makes the call repeat on a new connection. */
  garbled(call: string): GarbledReply {
    const error = new GarbledReply(call)
    this.#giveUp(error)
    return error
  }

  /** The next call gets another connection; calls in flight fail as closed and are repeated. */
  #giveUp(error: Error): void {
    if (this.#closing.signal.aborted) return
    this.#lastError = error
    this.redis.stream?.destroy()
  }

  close(): void {
    this.#closing.abort()
    this.redis.disconnect()
  }

  /** Reported once: other calls wait as long as the first one that reported it. */
  #tellOfBusy(outage: Outage): void {
    if (performance.now() < this.#busyUntilMs) return
    this.#busyUntilMs = performance.now() + outage.waitMs
    this.#onOutage(outage)
  }

  #named(error: unknown): unknown {
    if (error instanceof ScrapeError) return error
    const reason = reasonOf(error)
    if (isOutage(error))
      return (
        tlsTrouble(error, this.place, 'cacert') ??
        unreachable(this.place, reason, { tls: this.redis.options.tls, cause: error })
      )
    if (!isRefusal(error)) return error
    return new ScrapeError('E_SERVICE', `${this.place} refuses: ${reason}`, {
      cause: error,
      fix: 'Check the URL of Redis, the rights of its user, and its memory limit.',
    })
  }
}

function unreachable(
  place: string,
  reason: string,
  { tls, cause }: { tls: object | undefined; cause: unknown },
): ScrapeError {
  const hint = hintFor(reason, tls)
  return new ScrapeError('E_SERVICE', `${place} is unreachable: ${reason}`, {
    cause,
    fix: hint === undefined ? undefined : `Start it, or correct its URL; ${hint}`,
  })
}

/**
 * A TLS port closes plain connections without a message; a plain port waits for the rest of what it takes for a command. A server
 * that requires a client certificate says so after the handshake, and its reset may arrive before that message.
 */
function hintFor(reason: string, tls: object | undefined): string | undefined {
  const isSilent = /ETIMEDOUT|timed out/i.test(reason)
  const isCut = /ECONNRESET|EPIPE|closed|hang up/i.test(reason)
  if (tls !== undefined && isSilent) return 'if this port does not speak TLS, name its TLS port.'
  if (tls === undefined && isCut) return 'if this port speaks TLS, write rediss:// instead of redis://.'
  if (tls !== undefined && isCut && !('cert' in tls))
    return 'if the server requires a client certificate, add the certificate and its key to the URL.'
  return undefined
}

function placeOf(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !/^rediss?:$/.test(parsed.protocol)) {
    throw new ScrapeError('E_OPTION', 'the URL of Redis is not one', {
      fix: 'For example redis://user:password@localhost:6379/0; in a password / is %2F, # is %23, @ is %40 and ? is %3F.',
    })
  }
  const { hostname, port, pathname } = parsed
  return `${hostname || 'localhost'}:${port || 6379}${pathname}`
}
