/** Observes a task while it runs: its requests, which sites blocked it, and warnings for the user. */
import { type ErrorRecord, ScrapeError, toErrorRecord } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import type { Page } from '../../core/page.ts'
import { redactText } from '../../core/redact-text.ts'
import { TURNED_AWAY } from '../../crawl/fallback.ts'
import type { Fetcher, FetchRequest } from '../../fetch/contract.ts'
import { identityOf } from '../../fetch/identity/with-identity.ts'
import type { ResultMetadata } from '../../protocol/messages.ts'

export type TaskMetadata = Omit<ResultMetadata, 'memory_usage_mb' | 'worker_id'>

/** In `turned_away`: a request without a browser. */
export const PLAIN_HTTP = 'http'
const WARNINGS_MAX = 20
const WARNING_LENGTH_MAX = 300
const BLOCKS: ReadonlySet<string> = new Set(['E_BLOCKED', 'E_CAPTCHA', 'E_LOGIN_WALL', 'E_FORBIDDEN'])

export class TaskWatch {
  readonly metadata = noMetadata()
  /** Egress on which this or an earlier try was blocked; the next try uses others. */
  readonly turnedAway: Set<string>
  /** The error of the last request, if it failed. */
  lastError: ErrorRecord | undefined
  #answers = 0
  #answerMs = 0

  constructor(turnedAway: readonly string[] = []) {
    this.turnedAway = new Set(turnedAway)
  }

  watched(fetcher: Fetcher): Fetcher {
    const avoid: ReadonlySet<string> = new Set(this.turnedAway)
    return {
      fetch: async (request, signal) => {
        this.metadata.requests_made++
        const startedMs = performance.now()
        try {
          const page = await fetcher.fetch(avoid.size === 0 ? request : { ...request, avoid }, signal)
          this.#onPage(page)
          return page
        } catch (error) {
          if (error instanceof ScrapeError && !signal.aborted) this.#onError(error, request)
          throw error
        } finally {
          this.#answers++
          this.#answerMs += performance.now() - startedMs
        }
      },
      [Symbol.asyncDispose]: async () => {},
    }
  }

  readonly onEvent = (event: RunEvent): void => {
    if (event.type === 'item.invalid') {
      this.metadata.items_invalid++
      this.warn(`an item of ${event.url} is left out: ${event.problems.join('; ')}`)
    }
    if (event.type === 'log' && (event.level === 'warn' || event.level === 'error')) this.warn(event.message)
  }

  warn(message: string): void {
    const { warnings } = this.metadata
    if (warnings.length < WARNINGS_MAX) warnings.push(redactText(message).slice(0, WARNING_LENGTH_MAX))
  }

  averageSeconds(): number {
    return this.#answers === 0 ? 0 : Math.round(this.#answerMs / this.#answers) / 1000
  }

  #onPage(page: Page): void {
    this.lastError = undefined
    this.metadata.proxy_used = identityOf(page)?.proxy?.name ?? this.metadata.proxy_used
  }

  #onError(error: ScrapeError, request: FetchRequest): void {
    const { metadata } = this
    const { code } = error
    this.lastError = toErrorRecord(error)
    if (code === 'E_RATE_LIMITED') metadata.rate_limited = true
    if (code === 'E_CAPTCHA') metadata.captcha_encountered = true
    if (BLOCKS.has(code)) metadata.blocked_requests++
    const { proxy, profile } = identityOf(error) ?? {}
    metadata.proxy_used = proxy?.name ?? metadata.proxy_used
    if (error.verdict !== 'rotate') return
    if (TURNED_AWAY.has(code) && request.browser === undefined) this.turnedAway.add(PLAIN_HTTP)
    for (const way of [proxy, profile]) if (way !== undefined) this.turnedAway.add(way.name)
  }
}

export function noMetadata(): TaskMetadata {
  return {
    proxy_used: null,
    requests_made: 0,
    rate_limited: false,
    captcha_encountered: false,
    pages_scraped: 0,
    pages_failed: 0,
    blocked_requests: 0,
    average_response_time: 0,
    ignored_params: [],
    files_left_out: 0,
    items_invalid: 0,
    warnings: [],
  }
}
