/**
 * Sends waiting deliveries. Each subscription has a separate lane with one request at a time, so a slow or dead receiver holds up
 * no other. Any number of servers may run a worker. Deliveries that were sent but not recorded are sent again, with the same id.
 */

import { ScrapeError } from '../../core/errors.ts'
import { every } from '../../core/every.ts'
import type { Post, WebhookEvent } from './contract.ts'
import type { Claimed, Outbox, Try, Waiting } from './outbox.ts'
import { payloadOf } from './payload.ts'
import { isRefusal, retryWaitMs } from './retry-times.ts'
import { signedHeaders } from './signature.ts'

const LOOK_MS = 500
/** Subscriptions served concurrently. */
const LANES_MAX = 256
const TIMEOUT_MS = 10_000
/** A subscription without a success for this long is disabled. */
const FAILING_MS_MAX = 3 * 24 * 3_600_000
/** How much of an answer is kept. */
const ANSWER_CHARS_MAX = 1024
const GONE = 410

interface DeliveryWorkerParts {
  outbox: Outbox
  post: Post
  say(level: 'info' | 'warn', message: string): void
  /** No other server uses this database. */
  isAlone: boolean
  /** Sends nothing, because another server does. Default false. */
  isPassive?: boolean
  /** How long requests in flight may take to finish when the server stops. Default 3,000. */
  stopMsMax?: number
  now?: () => number
  random?: () => number
}

/** Tries by result; `dead` counts those after which there is no retry. */
interface DeliveryCounts {
  delivered: number
  failed: number
  dead: number
}

export class DeliveryWorker implements AsyncDisposable {
  readonly counts: DeliveryCounts = { delivered: 0, failed: 0, dead: 0 }
  readonly #parts: Required<DeliveryWorkerParts>
  readonly #lanes = new Map<string, Promise<void>>()
  readonly #stop = new AbortController()
  readonly #looking: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined
  #isFresh = true
  #isStopping = false

  constructor(parts: DeliveryWorkerParts) {
    this.#parts = { isPassive: false, stopMsMax: 3_000, now: Date.now, random: Math.random, ...parts }
    if (!this.#parts.isPassive) this.#looking = every(() => this.look(), LOOK_MS)
  }

  /** Called twice a second, and whenever an event was recorded; calls do not overlap. */
  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#parts.say('warn', `webhooks cannot be delivered: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  /** Resolves when nothing is being sent. */
  async idle(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all(this.#lanes.values())
  }

  async #lookOnce(): Promise<void> {
    const { outbox, now, isAlone, isPassive } = this.#parts
    if (this.#isStopping || isPassive) return
    if (isAlone && this.#isFresh) await outbox.releaseAll()
    this.#isFresh = false
    for (const id of await outbox.due(now(), LANES_MAX - this.#lanes.size)) {
      if (this.#lanes.has(id)) continue
      const lane = this.#serve(id)
        .catch((error: Error) => this.#parts.say('warn', `webhook ${id}: ${error.message}`))
        .finally(() => this.#lanes.delete(id))
      this.#lanes.set(id, lane)
    }
  }

  /** Claims again for each request, so that a changed URL or a disabled subscription takes effect with the next one. */
  async #serve(id: string): Promise<void> {
    const { outbox, now } = this.#parts
    try {
      for (;;) {
        if (this.#isStopping) return
        const claimed = await outbox.claim(id, now())
        if (claimed === undefined) return
        if (claimed.mode !== 'instant') await outbox.collectDigest(id, now())
        const head = await outbox.head(id, now())
        if (head === undefined || head.nextAtMs > now()) return
        if (!(await this.#deliver(head, claimed))) return
      }
    } finally {
      await outbox.release(id, now())
    }
  }

  /** True if the next delivery may be sent. */
  async #deliver(head: Waiting, claimed: Claimed): Promise<boolean> {
    const { outbox, now, random, say } = this.#parts
    const tried = await this.#try(head.event, claimed)
    if (tried === undefined) return false
    const { status, error } = tried
    if (error === undefined) {
      this.counts.delivered++
      await outbox.delivered(head, claimed, tried)
      return true
    }
    const reason = this.#whyDisable(tried, claimed)
    if (reason !== undefined) {
      this.counts.dead++
      await outbox.disable(head, claimed, tried, reason)
      say('warn', `webhook ${claimed.name} is turned off: ${reason}`)
      return false
    }
    // The result of a test is what its caller wants: a retry would only hold up the others.
    const isOver = tried.isFinal || head.event.type === 'webhook.test'
    const waitMs = isOver ? undefined : retryWaitMs(head.attempts + 1, { isRefused: isRefusal(status), random })
    this.counts[waitMs === undefined ? 'dead' : 'failed']++
    await outbox.failed(head, claimed, tried, waitMs === undefined ? undefined : now() + waitMs)
    if (waitMs === undefined)
      say('warn', `webhook ${claimed.name}: ${head.event.type} ${head.event.id} is given up: ${error} ${status ?? ''}`)
    return waitMs === undefined
  }

  #whyDisable({ status, error, atMs }: Try, { failingSinceMs }: Claimed): string | undefined {
    if (status === GONE) return 'the receiver answered 410 Gone'
    const isLong = failingSinceMs !== undefined && atMs - failingSinceMs >= FAILING_MS_MAX
    return isLong ? `nothing could be delivered for three days: ${error}` : undefined
  }

  /** Undefined if we were stopped in the meantime: that does not count as a failure. */
  async #try(event: WebhookEvent, { url, secrets }: Claimed): Promise<(Try & { isFinal: boolean }) | undefined> {
    const { post, now } = this.#parts
    const body = JSON.stringify(payloadOf(event))
    const headers = {
      'content-type': 'application/json',
      ...signedHeaders({ id: event.id, atMs: now(), body, secrets }),
    }
    const startedMs = performance.now()
    const ended = (status: number | undefined, answer: string | undefined, error: string | undefined) => ({
      atMs: now(),
      durationMs: performance.now() - startedMs,
      status,
      answer: answer === undefined ? undefined : storable(answer),
      error,
      isFinal: false,
    })
    try {
      const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(TIMEOUT_MS)])
      const answer = await post({ url, headers, body }, signal)
      return ended(answer.status, answer.body, whyRefused(answer.status))
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined
      const isOurs = error instanceof ScrapeError
      const text = isOurs ? `${error.code}: ${error.message}` : `no answer within ${TIMEOUT_MS / 1000} s`
      // An address we may not reach today will not be allowed tomorrow either.
      return { ...ended(undefined, undefined, text), isFinal: isOurs && error.code === 'E_PRIVATE_ADDRESS' }
    }
  }

  /** Deliveries that do not finish in time are sent again by the next server. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking)
    this.#isStopping = true
    await this.#look
    const timer = setTimeout(() => this.#stop.abort(new Error('the server is stopping')), this.#parts.stopMsMax)
    await this.idle()
    clearTimeout(timer)
  }
}

function whyRefused(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return `answered ${status}: redirects are not followed`
  return `answered ${status}`
}

/** PostgreSQL cannot store NUL in text. */
const storable = (answer: string) => answer.replaceAll('\0', '').slice(0, ANSWER_CHARS_MAX)
