/**
 * Throttle: what a 429, a 503 with Retry-After, or a block means for its host and for the task that met it.
 *
 * The host pauses for as long as the server says, up to `retryAfterMsMax`. If it does not say, for 1 s, doubling with every
 * 429 in a row up to 60 s. A server that does say is believed, until an eighth of the doubled pause exceeds its value.
 *
 * The task is retried when the pause is over, without being charged. This must end: from the seventh 429 of a host in a row
 * (with no other response between, each after its own pause), errors no longer name a time, and each costs an attempt. Blocks
 * have separate pauses, see `block-pauses.ts`.
 */

import { LRUCache } from 'lru-cache'
import { type BackoffLimits, doubledMs } from '../../core/backoff.ts'
import { BLOCK_CODES } from '../../core/error-table.ts'
import type { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { pageOf } from '../../core/failed-page.ts'
import type { RateLimit } from '../contract.ts'
import { headerOf } from '../http/http-page.ts'
import { parseRetryAfterMs } from '../http/retry-after.ts'
import { type BlockedRequest, createBlockPauses } from './block-pauses.ts'

interface ThrottleOptions {
  rateLimit: Pick<RateLimit, 'pause'>
  retryAfterMsMax: number
  events?: Pick<EventBus, 'emit'>
  now?: () => number
}

interface Throttle {
  /** The host sent a response other than a request to wait. */
  onAnswer(host: string): void
  /** A request failed. Pauses the host if the error asks for it, and sets in the error for how long. */
  onError(host: string, error: ScrapeError, request: BlockedRequest): void
}

const PAUSE: BackoffLimits = { delayMsMin: 1000, delayMsMax: 60_000 }
/** This many 429s of a host in a row cost no attempt: about a minute of pauses. */
const FREE_IN_A_ROW_MAX = 6
/** Hosts whose 429s are counted; a forgotten one merely starts at one second again. */
const HOSTS_MAX = 10_000

interface HostThrottle {
  inARow: number
  pausedAtMs: number
  untilMs: number
}

export function createThrottle(options: ThrottleOptions): Throttle {
  const now = options.now ?? Date.now
  const hosts = new LRUCache<string, HostThrottle>({ max: HOSTS_MAX })

  function pause(host: string, untilMs: number, reason: string): void {
    options.rateLimit.pause(host, untilMs, reason)
    options.events?.emit({ type: 'throttled', host, untilMs, reason })
  }

  const blocks = createBlockPauses(pause, now)

  function onRateLimited(host: string, error: ScrapeError, startedMs: number): void {
    const nowMs = now()
    const state = hosts.get(host) ?? { inARow: 0, pausedAtMs: Number.NEGATIVE_INFINITY, untilMs: 0 }
    const namedMs = serverWaitMs(error, nowMs)
    // Responses to requests that were in flight when the pause began say nothing new, unless they ask for a longer one.
    if (startedMs > state.pausedAtMs) {
      state.inARow++
      state.pausedAtMs = nowMs
    }
    const ownMs = doubledMs(state.inARow, PAUSE)
    const waitMs = namedMs === undefined ? ownMs : Math.max(namedMs, ownMs / 8)
    const untilMs = nowMs + Math.min(waitMs, options.retryAfterMsMax)
    if (untilMs > state.untilMs && (state.pausedAtMs === nowMs || namedMs !== undefined)) {
      state.untilMs = untilMs
      pause(host, untilMs, namedMs === undefined ? '429' : `429, Retry-After ${Math.round(namedMs / 1000)} s`)
    }
    hosts.set(host, state)
    if (state.inARow > FREE_IN_A_ROW_MAX) delete error.details.retryAfterMs
    else error.details.retryAfterMs = Math.max(namedMs ?? 0, state.untilMs - nowMs)
  }

  return {
    onAnswer(host) {
      if (hosts.size > 0) hosts.delete(host)
      blocks.onAnswer(host)
    },
    onError(host, error, request) {
      const { status, retryAfterMs } = error.details
      if (error.code === 'E_ROBOTS_UNREACHABLE') return // the response to another request, perhaps of another host
      // Some servers ask with another status; without a status, it was our own pause.
      const isAsked = error.code === 'E_RATE_LIMITED' && status !== undefined
      if (status === 429 || isAsked) onRateLimited(host, error, request.startedMs)
      else if (BLOCK_CODES.has(error.code)) {
        hosts.delete(host)
        blocks.onBlocked(host, error, request)
      } else if (status === 503 && retryAfterMs !== undefined) {
        pause(host, now() + Math.min(retryAfterMs, options.retryAfterMsMax), '503 with Retry-After')
      } else if (status !== undefined && status !== 503) this.onAnswer(host)
    },
  }
}

/** The wait the server itself asked for, however long; undefined if it named none. */
function serverWaitMs(error: ScrapeError, nowMs: number): number | undefined {
  const page = pageOf(error)
  if (page === undefined) return error.details.retryAfterMs
  return parseRetryAfterMs(headerOf(page.headers, 'retry-after'), nowMs, Number.POSITIVE_INFINITY)
}
