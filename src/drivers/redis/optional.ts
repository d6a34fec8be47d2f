/**
 * Redis for optional features: a quick answer, or none.
 *
 *   here ──a call fails──▶ away: calls are skipped, except one try each second ──it succeeds──▶ here
 */
import type { Redis } from 'ioredis'
import { ScrapeError } from '../../core/errors.ts'
import { Connection } from './connection.ts'
import { isForeign, reasonOf } from './outage.ts'
import type { Arg, Script } from './script.ts'

export interface OptionalRedisOptions {
  /** `redis://user:password@host:6379/0`. */
  url: string
  /** Redis is unreachable. Called once, until it is reachable again. */
  onAway?: (error: ScrapeError) => void
  onBack?: () => void
}

const ANSWER_MS_MAX = 1000
const TRY_AGAIN_MS = 1000

export class OptionalRedis {
  readonly #name: string
  readonly #connection: Connection
  readonly #options: OptionalRedisOptions
  #isAway = false
  #tryAtMs = 0

  /** `name` is used in messages: `the cache’s Redis`. */
  constructor(name: string, options: OptionalRedisOptions) {
    this.#name = name
    this.#options = options
    this.#connection = new Connection(options.url, {
      outageMs: 0,
      answerMsMax: ANSWER_MS_MAX,
      silenceMsMax: ANSWER_MS_MAX * 2,
    })
  }

  /** Throws `E_SERVICE` if Redis is unreachable now; later it may come and go. */
  async open(): Promise<void> {
    try {
      await this.#connection.attempt(() => this.#connection.redis.ping())
    } catch (error) {
      this.close()
      throw new ScrapeError('E_SERVICE', `${this.#name} does not answer: ${reasonOf(error)}`, { cause: error })
    }
  }

  get isAway(): boolean {
    return this.#isAway && performance.now() < this.#tryAtMs
  }

  /** Never rejects: undefined if there was no answer. */
  async ask<T>(body: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    if (this.isAway) return undefined
    try {
      const answer = await this.#connection.attempt(() => body(this.#connection.redis))
      if (this.#isAway && this.#tryAtMs < Number.POSITIVE_INFINITY) this.#comeBack()
      return answer
    } catch (error) {
      if (!isForeign(error)) this.#goAway(error)
      return undefined
    }
  }

  run(script: Script, args: readonly Arg[]): Promise<unknown> {
    return this.ask(() => this.#connection.evaluate(script, args))
  }

  /** Later calls get no answer. */
  close(): void {
    this.#isAway = true
    this.#tryAtMs = Number.POSITIVE_INFINITY
    this.#connection.close()
  }

  #comeBack(): void {
    this.#isAway = false
    this.#options.onBack?.()
  }

  #goAway(cause: unknown): void {
    const wasAway = this.#isAway
    this.#isAway = true
    this.#tryAtMs = Math.max(this.#tryAtMs, performance.now() + TRY_AGAIN_MS)
    if (wasAway) return
    const message = `${this.#name} does not answer (${reasonOf(cause)}); continuing without it`
    this.#options.onAway?.(new ScrapeError('E_SERVICE', message, { cause }))
  }
}
